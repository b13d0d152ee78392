"""`./tidemark bench robustness`: damaged inputs for every parser, killed sessions, and odd surroundings.

`$TIDEMARK_BENCH_PARTS` has parts: parsers, kills, surroundings. `$TIDEMARK_BENCH_INPUTS` is how many inputs
each parser gets, `$TIDEMARK_BENCH_KILLS` how often sessions are killed. The inputs of a parser are always the
same sequence, so that an input is found again by its number.
"""

import multiprocessing
import os
import signal
import time
from collections.abc import Iterator

from benchmarks.fuzzing.campaign import Surprise, first_surprise
from benchmarks.fuzzing.kills import KilledSessions, kill_sessions
from benchmarks.fuzzing.targets import TARGETS
from benchmarks.output.figures import Figure, report
from benchmarks.output.parts import chosen_parts
from benchmarks.surroundings.kinds import surroundings_tried
from benchmarks.surroundings.outcome import Outcome
from build.errors import TidemarkError
from build.home import locate
from build.host import cores
from build.make import lookup, provide
from build.version import parse_version
from runners.console import Lines

PARTS = ("parsers", "kills", "surroundings")

INPUTS = 1_000_000
"""For each parser."""

CHUNK = 5_000
"""Inputs that one process tries before it says what came of them."""

KILLS = 100
SEED = 20261122
POSTGRES = ("postgres@17.11", "postgres@18.6")
MYSQL = ("mysql@9.7.2",)

Chunk = tuple[str, range]


def main() -> int:
    """Print the figures beside their targets; 0 when nothing was surprising, else 1 with the first input."""
    parts = chosen_parts("robustness", PARTS)
    figures: list[Figure] = []
    if "parsers" in parts:
        began = time.perf_counter()
        inputs = _number("TIDEMARK_BENCH_INPUTS", INPUTS)
        surprise = tried(inputs)
        if surprise is not None:
            print(surprise)
        note = f"{inputs:,} inputs for each of {len(TARGETS)} parsers, {time.perf_counter() - began:.0f} s"
        figures.append(Figure("parsers: surprises", surprise is not None, "", at_most=0, note=note))
    if "kills" in parts:
        figures += _kill_figures(_number("TIDEMARK_BENCH_KILLS", KILLS))
    if "surroundings" in parts:
        figures += map(_surroundings_figure, surroundings_tried())
    return report(figures)


def tried(inputs: int) -> Surprise | None:
    """Try the inputs of all parsers on all cores; return the first surprise, after which nothing is tried."""
    chunks = [
        (name, range(begin, min(begin + CHUNK, inputs)))
        for begin in range(0, inputs, CHUNK)
        for name in TARGETS
    ]
    # A fresh Python for each process: a fork would inherit open databases, and a signal mask.
    context = multiprocessing.get_context("spawn")
    with context.Pool(cores(), initializer=_ignore_interrupts) as pool:
        for place, surprise in enumerate(pool.imap(_tried, chunks), start=1):
            if surprise is not None:
                return surprise
            if place % len(TARGETS) == 0:
                print(f"{min(place // len(TARGETS) * CHUNK, inputs):,} inputs for each parser", flush=True)
    return None


def _ignore_interrupts() -> None:
    """Ctrl-C is for the process that waits for the others, and ends them."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _tried(chunk: Chunk) -> Surprise | None:
    name, numbers = chunk
    return first_surprise(TARGETS[name], numbers)


def _kill_figures(kills: int) -> Iterator[Figure]:
    """A half of the kills for each engine; all for Postgres where MySQL is not compiled."""
    home = locate()
    with_mysql = lookup(parse_version(MYSQL[0]), home) is not None
    sets = (POSTGRES, MYSQL) if with_mysql else (POSTGRES,)
    if not with_mysql:
        print(f"{MYSQL[0]} is not compiled, so that only Postgres is killed: ./tidemark build {MYSQL[0]}")
    for place, versions in enumerate(sets):
        for version in versions:
            provide(parse_version(version), home, Lines())
        share = kills // len(sets) + (kills % len(sets) if place == 0 else 0)
        done = kill_sessions(home, versions, share, SEED)
        for fault in done.faults:
            print(fault)
        yield _kill_figure(done)


def _kill_figure(done: KilledSessions) -> Figure:
    note = f"{done.kills} kills, {done.finished} sessions finished after them"
    return Figure(f"kills, {' '.join(done.versions)}: faults", len(done.faults), "", at_most=0, note=note)


def _surroundings_figure(outcome: Outcome) -> Figure:
    for fault in outcome.faults:
        print(fault, flush=True)
    skipped = "".join(f"; not {name}: {why}" for name, why in outcome.skipped.items())
    note = f"{outcome.tried} tried{skipped}"
    return Figure(f"{outcome.kind}: failed", outcome.failed, "", at_most=0, note=note)


def _number(variable: str, default: int) -> int:
    """The number in an environment variable. Raises TidemarkError for anything else."""
    text = os.environ.get(variable, str(default))
    if not (text.isascii() and text.isdigit() and 0 < len(text) < 10 and int(text) > 0):
        raise TidemarkError(f"${variable} is '{text[:40]}'", hint="set it to a whole number of at least 1")
    return int(text)
