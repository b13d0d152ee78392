"""Sessions of the insert benchmark: whether writers hold their rates, and rows stay as many as they were."""

from collections.abc import Iterator

from benchmarks.output.figures import Figure
from benchmarks.real_builds.analytical_sessions import runs_of
from benchmarks.real_builds.loaded_server import ENGINES
from build.home import Home
from build.progress import Progress
from history.store.records import RunStatus
from runners.measuring.request import Request
from suites.definition import load_suite

SUITE = load_suite("insert-benchmark")
MIN_SHARE = 0.95
"""Of the transactions that are due in the background, what writers carry out where the server can."""

MAX_APART = 8
"""Statements by which inserts and deletes may be apart."""


def ingest_figures(home: Home, shown: Progress) -> Iterator[Figure]:
    """Yield, for each engine, a round of every step of smoke: its writers, its rows, inserts and deletes."""
    steps = SUITE.select((), "smoke")
    for version in ENGINES:
        request = Request((version,), SUITE, "smoke", steps, 1, keep_disturbed=True)
        runs = runs_of(request, home, shown)
        finished = [run for run in runs if run.status is RunStatus.FINISHED]
        failed = "; ".join(f"{run.step}: {run.failure}" for run in runs if run.failure)
        # A check that finds other rows fails its step.
        name = f"steps with rows constant within 0.1 %, {version}"
        yield Figure(name, len(finished), "", at_least=len(steps), note=failed)
        shares = {
            run.step: run.values["background_share"] for run in finished if "background_share" in run.values
        }
        slowest = min(shares, key=lambda step: shares[step], default="")
        name = f"share of their rate that writers hold, {version}"
        yield Figure(name, shares.get(slowest, 0.0), "", at_least=MIN_SHARE, note=slowest)
        apart = {run.step: run.values["most_apart"] for run in finished if "most_apart" in run.values}
        widest = max(apart, key=lambda step: apart[step], default="")
        name = f"statements that inserts and deletes are apart, {version}"
        yield Figure(name, apart.get(widest, float("inf")), "", at_most=MAX_APART, note=widest)
