"""The nightly service of a growing team: `./tidemark bench fleet`.

`$TIDEMARK_BENCH_PARTS` selects parts: backfill, writers, judge, compare, faults. Those but the first run a
Postgres server for the history (fleets/): writers record for `$TIDEMARK_BENCH_SECONDS`, judge and compare
read a history of `$TIDEMARK_BENCH_NIGHTS`, and there are `$TIDEMARK_BENCH_MOMENTS` random faults.

Backfill: simulated years with three planted steps are backfilled until nothing is left to do
(simulation/backfill_years.py). Seeds are fixed: (7500, number of the year).
"""

import os
import statistics
from collections.abc import Iterator, Sequence

from benchmarks.fleets.faults import fault_figures
from benchmarks.fleets.reading import NIGHTS, reading_figures
from benchmarks.fleets.writing import writing_figures
from benchmarks.output.figures import Figure, report
from benchmarks.simulation.backfill_years import SIZES, BackfilledYear, SimulatedYear

PARTS = "backfill writers judge compare faults"

WRITING_SECONDS, MOMENTS = 600, 100

YEARS = 20
MOST_SESSIONS = 1.3
"""Times the sessions that perfect knowledge needs."""

HARDER = 1.5
"""The factor of the noise of years that are only shown."""


def main() -> int:
    """Print the figures of all parts, which takes half an hour; return 0 if all targets are met."""
    parts = os.environ.get("TIDEMARK_BENCH_PARTS", PARTS).split()
    figures: list[Figure] = []
    if "backfill" in parts:
        figures += backfill_figures()
    if "writers" in parts:
        figures += writing_figures(float(os.environ.get("TIDEMARK_BENCH_SECONDS", str(WRITING_SECONDS))))
    if read := {"judge", "compare"} & set(parts):
        nights = int(os.environ.get("TIDEMARK_BENCH_NIGHTS", str(NIGHTS)))
        figures += reading_figures(nights, judged="judge" in read, compared="compare" in read)
    if "faults" in parts:
        figures += fault_figures(int(os.environ.get("TIDEMARK_BENCH_MOMENTS", str(MOMENTS))))
    return report(figures)


def backfill_figures() -> Iterator[Figure]:
    """Yield how many sessions a backfill takes, and what it finds."""
    years = [SimulatedYear(seed).backfill() for seed in range(YEARS)]
    yield from _found("planted steps", years)
    ratios = [year.sessions / year.needed for year in years]
    needed = statistics.mean(year.needed for year in years)
    yield Figure(
        "sessions over those of perfect knowledge, worst year",
        max(ratios),
        "",
        at_most=MOST_SESSIONS,
        note=f"mean {statistics.mean(ratios):.2f}; {needed:.0f} needed",
    )
    widths = [width for year in years for width in year.widths]
    yield Figure("commits between the two that were confirmed", statistics.mean(widths), "", note="mean")
    harder = [SimulatedYear(YEARS + seed).backfill(noise=HARDER) for seed in range(YEARS)]
    share = 100 * sum(year.found for year in harder) / (len(SIZES) * YEARS)
    worst = max(year.sessions / year.needed for year in harder)
    yield Figure(f"{HARDER:g} times the noise: steps found", share, "%", note=f"worst year {worst:.2f}")


def _found(what: str, years: Sequence[BackfilledYear]) -> Iterator[Figure]:
    share = 100 * sum(year.found for year in years) / (len(SIZES) * len(years))
    yield Figure(f"{what}: found and confirmed", share, "%", at_least=100, note=f"{len(years)} years")
    yield Figure(f"{what}: confirmed pairs without one", sum(year.false for year in years), "", at_most=0)
