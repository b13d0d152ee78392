"""The nightly service of a growing team: `./tidemark bench fleet`.

`$TIDEMARK_BENCH_PARTS` selects parts: backfill, pools, writers, judge, compare, faults. The last four run a
Postgres server for the history (fleets/): writers record for `$TIDEMARK_BENCH_SECONDS`, judge and compare
read a history of `$TIDEMARK_BENCH_NIGHTS`, and there are `$TIDEMARK_BENCH_MOMENTS` random faults.

Backfill: simulated years with three planted steps are backfilled until nothing is left to do
(simulation/backfill_years.py). Seeds are fixed: (7500, number of the year).

Pools: simulated nights of boxes that share 60 tasks, and what moves when a box joins or leaves
(simulation/pool_nights.py). Seeds are the numbers of the pools.
"""

import os
import statistics
from collections.abc import Collection, Iterable, Iterator, Sequence

from benchmarks.fleets.faults import fault_figures
from benchmarks.fleets.reading import NIGHTS, reading_figures
from benchmarks.fleets.writing import writing_figures
from benchmarks.output.figures import Figure, report
from benchmarks.output.parts import chosen_parts
from benchmarks.simulation.backfill_years import SIZES, BackfilledYear, SimulatedYear
from benchmarks.simulation.pool_nights import MAX_BOXES, TASKS, SimulatedPool

PARTS = ("backfill", "pools", "writers", "judge", "compare", "faults")

WRITING_SECONDS, MOMENTS = 600, 100

YEARS = 20
MAX_SESSIONS = 1.3
"""Times the sessions that perfect knowledge needs."""

ROUNDING = 1e-9
"""Of sums of minutes in another order."""

POOLS = 50
BOXES = 4
MAX_OF_A_NIGHT = 0.3
"""The length of a night on BOXES boxes, over that on one."""

HARDER = 1.5
"""The factor of the noise of years that are only shown."""


def main() -> int:
    """Print the figures of each part once they are known; return 0 if all targets are met, else 1."""
    return max([report(list(figures)) for figures in _measured(chosen_parts("fleet", PARTS))])


def _measured(parts: Collection[str]) -> Iterator[Iterable[Figure]]:
    if "backfill" in parts:
        yield backfill_figures()
    if "pools" in parts:
        yield pool_figures()
    if "writers" in parts:
        yield writing_figures(float(os.environ.get("TIDEMARK_BENCH_SECONDS", str(WRITING_SECONDS))))
    if read := {"judge", "compare"} & set(parts):
        nights = int(os.environ.get("TIDEMARK_BENCH_NIGHTS", str(NIGHTS)))
        yield reading_figures(nights, judged="judge" in read, compared="compare" in read)
    if "faults" in parts:
        yield fault_figures(int(os.environ.get("TIDEMARK_BENCH_MOMENTS", str(MOMENTS))))


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
        at_most=MAX_SESSIONS,
        note=f"mean {statistics.mean(ratios):.2f}; {needed:.0f} needed",
    )
    widths = [width for year in years for width in year.widths]
    yield Figure("commits between the two that were confirmed", statistics.mean(widths), "", note="mean")
    harder = [SimulatedYear(YEARS + seed).backfill(noise=HARDER) for seed in range(YEARS)]
    share = 100 * sum(year.found for year in harder) / (len(SIZES) * YEARS)
    worst = max(year.sessions / year.needed for year in harder)
    yield Figure(f"{HARDER:g} times the noise: steps found", share, "%", note=f"worst year {worst:.2f}")


def pool_figures() -> Iterator[Figure]:
    """Yield how long nights of a pool take, and what moves when a box joins or leaves."""
    pools = [SimulatedPool(seed) for seed in range(POOLS)]
    yield _night_of(BOXES, pools, f"{TASKS} tasks", at_most=MAX_OF_A_NIGHT)
    for count in (2, MAX_BOXES):
        yield _night_of(count, pools, f"{TASKS} tasks")
    shared = [SimulatedPool(seed, branches=3) for seed in range(POOLS)]
    yield _night_of(BOXES, shared, f"{TASKS // 3} tasks of 3 branches")
    counts = range(2, MAX_BOXES + 1)
    pools = pools[: POOLS // len(counts) + 1]
    joined = [pool.joined(count) for pool in pools for count in counts]
    left = [pool.left(count) for pool in pools for count in counts if count > 2]
    note = f"{len(joined)} pools of 2 to {MAX_BOXES} boxes, worst"
    yield Figure(
        "a box joins: series moved over its share", max(moved.tasks for moved in joined), "", None, 1, note
    )
    most = max(moved.minutes for moved in joined)
    yield Figure("a box joins: minutes moved over its share", most, "", None, 1 + ROUNDING, note)
    most = max(moved.tasks for moved in left)
    yield Figure("a box leaves: series moved over those it had", most, "", None, 1, note)
    others = sum(moved.others for moved in (*joined, *left))
    yield Figure("series moved between two other boxes", others, "", None, 0)


def _night_of(count: int, pools: Sequence[SimulatedPool], what: str, at_most: float | None = None) -> Figure:
    ratios = [pool.ratio(count) for pool in pools]
    note = f"worst of {len(pools)} pools; mean {statistics.mean(ratios):.3f}"
    name = f"{count} boxes, {what}: a night over one box's"
    return Figure(name, max(ratios), "", at_most=at_most, note=note)


def _found(what: str, years: Sequence[BackfilledYear]) -> Iterator[Figure]:
    share = 100 * sum(year.found for year in years) / (len(SIZES) * len(years))
    yield Figure(f"{what}: found and confirmed", share, "%", at_least=100, note=f"{len(years)} years")
    yield Figure(f"{what}: confirmed pairs without one", sum(year.false for year in years), "", at_most=0)
