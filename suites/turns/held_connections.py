"""Rounds of connections that are held: the memory of a server by their number."""

import contextlib
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from statistics import median

from suites.accounting.proc import ProcessMemory, ProcessMemoryError, server_memory
from suites.generators.connections import AT_ONCE, Connections, HeldConnections
from suites.generators.load import LoadError, Share, blamed_on
from suites.keys.step import Step
from suites.measurement import Measurement
from suites.metrics import (
    CONNECTION_HIGH,
    CONNECTION_KIB,
    CONNECTION_LOW,
    CONNECTION_RSS,
    CONNECTION_STATEMENTS,
    CONNECTION_TABLES,
    CONNECTS,
)
from suites.server import Server
from suites.turns.failures import ServerDiedError, blame, death_soon

CONFIDENCE = 0.9
"""The least confidence of an interval, if there are points enough: four have one of 92 %."""


@dataclass(frozen=True)
class Slope:
    """The slope of a line with its confidence interval, in units of y per unit of x."""

    value: float
    low: float
    high: float


def theil_sen(x: Sequence[float], y: Sequence[float]) -> Slope:
    """Return the median of the slopes between all pairs of points, and Sen's interval for it.

    Pairs with the same `x` have no slope; without any other pair, nothing grew with x and all is 0. The
    interval leaves out as many of the lowest and of the highest slopes as still give CONFIDENCE; with fewer
    than four points it is that of all slopes, and its confidence is lower. P. K. Sen, "Estimates of the
    regression coefficient based on Kendall's tau", Journal of the American Statistical Association 63, 1968.
    """
    points = list(zip(x, y, strict=True))
    slopes = sorted(
        (late[1] - early[1]) / (late[0] - early[0])
        for early, late in combinations(points, 2)
        if late[0] != early[0]
    )
    if not slopes:
        return Slope(0.0, 0.0, 0.0)
    # The distribution is that of points without ties; where there are any, no slope is left out.
    left_out = omitted(len(points)) if len(set(x)) == len(points) else 0
    return Slope(median(slopes), slopes[left_out], slopes[-1 - left_out])


def omitted(points: int) -> int:
    """Return how many slopes at either end lie outside the interval.

    So many slopes are below the true one as pairs of residuals are in the wrong order, which is the number of
    inversions of a random permutation.
    """
    share, below = (1 - CONFIDENCE) / 2 * math.factorial(points), 0
    for place, count in enumerate(inversions(points)):
        below += count
        if below > share:
            return max(0, place - 1)
    return 0


def inversions(size: int) -> list[int]:
    """Return how many permutations of `size` elements have 0, 1, 2, ... inversions (Mahonian numbers)."""
    counts = [1]
    for length in range(2, size + 1):
        counts = [
            sum(counts[max(0, total - length + 1) : total + 1]) for total in range(len(counts) + length - 1)
        ]
    return counts


SAMPLES = 3
"""Samples of a level, of which the median counts: a process that comes and goes is in one of them."""

SAMPLE_SECONDS = 0.5
"""Time between two samples."""


@dataclass
class HeldServer:
    """One server with the connections that it holds, and its memory at the levels so far."""

    server: Server
    generator: Connections
    step: Step
    held: list[HeldConnections] = field(default_factory=list)
    samples: dict[int, list[ProcessMemory]] = field(default_factory=dict)
    """By the number of held connections."""

    def warm(self) -> None:
        """Open the connection that reads all tables and works once, and is held beside all levels.

        What the server allocates once, for the first connection that does something, is no connection's own.
        """
        self.held.append(self.generator.hold(self.server.address, self.step, 1, scan=True))

    @property
    def connections(self) -> int:
        """Connections that are held, without the one that warmed the server up."""
        return sum(group.count for group in self.held[1:])

    def rise_to(self, level: int) -> None:
        """Open connections until so many are held, AT_ONCE at a time. Raises LoadError."""
        while (missing := level - self.connections) > 0:
            count = min(missing, AT_ONCE)
            self.held.append(self.generator.hold(self.server.address, self.step, count))

    def sample(self) -> None:
        """Read the server's memory. Raises LoadError if connections were lost, ProcessMemoryError."""
        self.samples.setdefault(self.connections, []).append(server_memory(self.server.pid))
        for group in self.held:
            group.require_held()

    def values(self) -> Mapping[str, float]:
        """Return the metrics of all levels."""
        levels = sorted(self.samples)

        def medians(name: str) -> list[float]:
            return [median(getattr(sample, name) for sample in self.samples[level]) for level in levels]

        own = theil_sen(levels, medians("own"))
        opened = self.held[1:]
        return {
            CONNECTION_KIB: own.value,
            CONNECTION_LOW: max(0.0, own.low),  # nothing has less memory than none
            CONNECTION_HIGH: own.high,
            CONNECTION_TABLES: theil_sen(levels, medians("page_tables")).value,
            CONNECTION_RSS: theil_sen(levels, medians("rss")).value,
            CONNECTS: self.connections / sum(group.seconds for group in opened),
            CONNECTION_STATEMENTS: float(max(group.prepared for group in opened)),
        }

    def close(self) -> None:
        """End all connections."""
        while self.held:
            self.held.pop().close()


def hold_connections(
    servers: Sequence[Server],
    generator: Connections,
    step: Step,
    share: Share,
    settle_seconds: float,
) -> list[Measurement]:
    """Raise the servers' connections from level to level of `step`, and measure their memory at each.

    Servers take turns in opening, in reverse order at every other level, and then idle together for
    `settle_seconds`. Nothing is reset or profiled. Return one measurement per server. Raises ServerDiedError.
    """
    held = [HeldServer(server, generator, step) for server in servers]
    with contextlib.ExitStack() as stack:
        for holder in held:
            stack.callback(holder.close)
        try:
            for place, holder in enumerate(held):
                with blamed_on(place):
                    holder.warm()
            for number, level in enumerate((0, *step.clients), start=share.round):
                _measure_level(held, level, settle_seconds, forwards=number % 2 == 0)
        except LoadError as error:
            raise blame(servers, step, error) from error
        return [Measurement(holder.values(), ()) for holder in held]


def _measure_level(held: Sequence[HeldServer], level: int, settle_seconds: float, *, forwards: bool) -> None:
    places = range(len(held)) if forwards else reversed(range(len(held)))
    for place in places:
        with blamed_on(place):
            held[place].rise_to(level)
    time.sleep(settle_seconds)
    for number in range(SAMPLES):
        if number:
            time.sleep(SAMPLE_SECONDS)
        for place, holder in enumerate(held):
            _sample(holder, place)


def _sample(held: HeldServer, place: int) -> None:
    """Take a sample; a server that has died is told from a process that cannot be read."""
    try:
        with blamed_on(place):
            held.sample()
    except ProcessMemoryError as error:
        ended = death_soon(held.server)  # its memory is gone before it can be waited for
        what = f"{held.server.build.version} died while it held {held.connections} connections: {ended}"
        raise ServerDiedError(what if ended is not None else str(error), place) from error
