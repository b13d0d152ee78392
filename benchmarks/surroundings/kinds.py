"""The kinds of surroundings, tried one after the other."""

from collections.abc import Iterator
from functools import partial

from benchmarks.surroundings.clocks import CLOCKS, nights_under_wandering_clocks
from benchmarks.surroundings.commands import COMMANDS, READING
from benchmarks.surroundings.environments import ENVIRONMENTS
from benchmarks.surroundings.outcome import Outcome
from benchmarks.surroundings.trials import commands_in
from benchmarks.surroundings.upgrades import recorded_histories, upgraded, write


def surroundings_tried() -> Iterator[Outcome]:
    """Try all commands in all environments and under all clocks, and on the histories of all schemas."""
    newest = partial(write, recorded_histories()[-1])
    yield commands_in("environments", ENVIRONMENTS, COMMANDS, newest)
    yield commands_in("clocks", CLOCKS, READING, newest)
    yield nights_under_wandering_clocks()
    yield upgraded()
