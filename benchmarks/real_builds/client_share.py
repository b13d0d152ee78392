"""What the client of long queries costs, beside the queries."""

import os
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.output.figures import Figure
from benchmarks.real_builds.loaded_server import ENGINES, loaded_server
from build.home import Home
from build.progress import Progress
from runners.measuring.cleanup import data_folder
from runners.measuring.machine_lock import measuring_alone
from suites.definition import load_suite
from suites.generators.load import Share
from suites.generators.registry import make_generator
from suites.sizing import sizes, this_machine
from suites.slices import Schedule

SUITE = load_suite("tpch")

LONG_MS = 10.0
"""From so many milliseconds on a query's share of the client counts."""

SLICES = Share(Schedule(0.1, (0,) * 11, warming=1), 1, limit_seconds=60)
"""As in smoke, but for a second."""

MAX_SHARE = 2.0
"""Percent of a query's time that is the client's own CPU time, at most."""


@dataclass
class ClientClock:
    """An observer: the CPU time of the client during its load.

    Of the process's CPU-time clock (clock_getcpuclockid(3)), which counts in nanoseconds: /proc counts in
    ticks of 10 ms, of which a query of that length has one at most.
    """

    seconds: float = 0.0

    def begin(self, pid: int) -> None:
        """Start measuring."""
        self.seconds = -self._now(pid)

    def end(self, pid: int) -> None:
        """Stop measuring."""
        self.seconds += self._now(pid)

    def _now(self, pid: int) -> float:
        return time.clock_gettime(~pid << 3 | 2)


def share_figures(home: Home, shown: Progress) -> Iterator[Figure]:
    """Yield the largest share of the client's CPU time in the time of a query, and its query."""
    for version in ENGINES:
        shares: dict[str, float] = {}
        with (
            measuring_alone(home),
            data_folder(home, f"b{os.getpid()}") as folder,
            loaded_server(SUITE, version, home, folder / "1") as server,
        ):
            server.reset()
            room = sizes(SUITE, SUITE.profile("smoke"), this_machine(), SUITE.steps)
            generator = make_generator(SUITE, room, [server.build])
            for step in SUITE.steps:
                if not step.reads_only:
                    continue
                clock = ClientClock()
                (load,) = generator.alternate([server.address], step, SLICES, [clock])
                milliseconds = load.latency_ms["mean"]
                if milliseconds >= LONG_MS:
                    shares[step.name] = 100 * 1000 * clock.seconds / (load.watched_queries * milliseconds)
        worst = max(shares, key=lambda name: shares[name])
        name = f"share of the client, {version}, queries from {LONG_MS:g} ms on"
        note = f"{worst}; of {len(shares)} queries; {statistics.mean(shares.values()):.2f} % in the mean"
        yield Figure(name, shares[worst], "%", at_most=MAX_SHARE, note=note)
