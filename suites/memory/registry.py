"""The generators whose rounds are measured in a way of their own, in place of slices of work."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from suites.generators.load import Generator, Share
from suites.keys.step import Step
from suites.keys.suite_keys import GeneratorName
from suites.measurement import Measurement
from suites.memory.held_connections import hold_connections
from suites.memory.process_memory import require_readable
from suites.server import Server


class RoundOfServers(Protocol):
    """A function that measures servers which have just been started."""

    def __call__(
        self,
        servers: Sequence[Server],
        generator: Generator,
        step: Step,
        share: Share,
        settle_seconds: float,
    ) -> list[Measurement]:
        """Return one measurement per server. Raises ServerDiedError."""


@dataclass(frozen=True)
class OwnRounds:
    """How the rounds of a generator are measured."""

    measure: RoundOfServers
    check_machine: Callable[[], None]
    """Raises TidemarkError if the machine does not show what is measured."""


OWN_ROUNDS: Mapping[GeneratorName, OwnRounds] = {
    GeneratorName.CONNECTIONS: OwnRounds(hold_connections, require_readable),
}
"""The rounds of all other generators are slices of work."""
