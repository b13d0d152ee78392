"""A planted contention: a lock that is held a microsecond longer, at one client and at many.

Where nobody waits for the lock, it costs a microsecond of a transaction. The patch gives up the core while it
holds the lock, since on a few cores others hardly ever ask for a lock that is held by somebody who runs.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from benchmarks.output.figures import Figure
from build.home import Home
from build.make import provide
from build.progress import Progress
from build.version import parse_version
from history.comparison.compare import compare
from history.comparison.options import CompareOptions
from history.comparison.verdict import Verdict
from history.open import open_store
from runners.measuring.request import Request
from runners.measuring.session import run_session
from runners.measuring.variants import Variant
from suites.definition import load_suite

BASE = parse_version("postgres@18.6")
HELD = replace(BASE, variant="held")
PATCH = Path(__file__).with_name("held_lock.patch")
"""Holds ProcArrayLock longer, which every commit that has written takes, and every snapshot."""

SUITE, PROFILE, STEP = "write-heavy", "smoke", "write-only"
FEW, MANY = 1, 16
ROUNDS = 10


def contention_figures(home: Home, folder: Path, shown: Progress) -> Iterator[Figure]:
    """Yield whether the planted contention is flagged, at FEW clients and at MANY."""
    suite = load_suite(SUITE)
    build = replace(provide(BASE, home, shown, patches=(PATCH,)), version=HELD)
    steps = suite.select((STEP,), PROFILE, (FEW, MANY))
    variants = {HELD.variant: Variant(patches=(PATCH,))}
    request = Request((BASE, HELD), suite, PROFILE, steps, ROUNDS, variants=variants)
    with open_store(folder / "contention.db") as store:
        outcome = run_session(request, home, store, shown, {HELD: build})
        (compared,) = compare(store, BASE, (HELD,), CompareOptions(session=outcome.uid)).contenders
    by_step = {step.step: step for step in compared.steps}
    for clients, wanted in ((FEW, 0), (MANY, 1)):
        step = by_step[f"{STEP}@{clients}"]
        interval, ratios = step.judged.interval, {metric.metric: metric.value for metric in step.metrics}
        between = f"{interval.low:.3f} to {interval.high:.3f}" if interval else "no interval"
        switches = ratios.get("server_cs_per_op")
        note = f"{step.judged.verdict}; ratio of qps {step.judged.value or 0:.3f} ({between})"
        note += f", of context switches {switches:.2f}" if switches else ""
        flagged = int(step.judged.verdict is Verdict.REGRESSION)
        name = f"a lock held longer, {clients} client{'' if clients == 1 else 's'}: flagged"
        yield Figure(name, flagged, "", at_least=wanted, at_most=wanted, note=note)
