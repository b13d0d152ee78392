"""What an open connection costs each version of a comparison, in a session that held connections."""

from collections.abc import Iterator
from dataclasses import dataclass

from build.version import Version
from history.comparison.result import ContenderComparison, StepComparison
from history.store.records import HELD
from suites.metrics import (
    CONNECTION_HIGH,
    CONNECTION_KIB,
    CONNECTION_LOW,
    CONNECTION_RSS,
    CONNECTION_STATEMENTS,
    CONNECTION_TABLES,
    CONNECTS,
)


@dataclass(frozen=True)
class ConnectionCost:
    """A step of one version: means of the paired rounds, in KiB per connection. None where unknown."""

    step: str
    version: Version
    memory: float | None
    low: float | None
    high: float | None
    page_tables: float | None
    rss: float | None
    connects: float | None
    """Connections per second."""
    statements: float | None
    """Prepared statements of a connection."""


def connection_costs(contender: ContenderComparison) -> list[ConnectionCost]:
    """Return the costs by step, of base and contender; none of a session that held no connections."""
    if contender.session.primary != CONNECTION_KIB:
        return []
    return [cost for step in contender.steps for cost in _costs(contender, step)]


def held_levels(contender: ContenderComparison) -> str:
    """Return the numbers of connections at which memory was read: `0, 25, 50, 100`."""
    held = contender.session.options.get(HELD)
    levels = sorted({tuple(numbers) for numbers in held.values()}) if isinstance(held, dict) else []
    return " and ".join(", ".join(map(str, (0, *level))) for level in levels)


def _costs(contender: ContenderComparison, step: StepComparison) -> Iterator[ConnectionCost]:
    ratios = {ratio.metric: ratio for ratio in step.metrics}
    names = [CONNECTION_KIB, CONNECTION_LOW, CONNECTION_HIGH, CONNECTION_TABLES]
    names += [CONNECTION_RSS, CONNECTS, CONNECTION_STATEMENTS]
    yield ConnectionCost(step.step, contender.base, *(ratios[name].base for name in names))
    yield ConnectionCost(step.step, contender.contender, *(ratios[name].contender for name in names))
