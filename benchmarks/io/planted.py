"""Whether profile io finds a server that writes 5 % more for an operation, and one that is 5 % slower.

Postgres is compiled with two patches, which do nothing by themselves. With `tidemark.planted_bytes`, each
commit writes as many further bytes to the log; with TIDEMARK_BURN_NS, each update busy-waits for so long.
What is 5 % follows from a session of the base alone: how long an operation takes, and what it writes.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean

from benchmarks.output.figures import Figure
from benchmarks.real_builds import real_verdicts
from build.home import Home
from build.progress import Progress
from build.version import parse_version
from history.comparison.compare import compare
from history.comparison.options import CompareOptions
from history.comparison.result import StepComparison
from history.comparison.verdict import Verdict
from history.numbers import signed_percent
from history.open import open_store
from history.store.records import RunStatus
from history.store.writer import Store
from runners.console import Lines
from runners.measuring.request import Request
from runners.measuring.session import run_session
from runners.measuring.variants import Variant
from suites.definition import Suite, load_suite
from suites.metric_names import PRIMARY
from suites.sizing import sizes, this_machine

BASE = parse_version("postgres@18.6")
SUITE, PROFILE, STEP = "write-heavy", "io", "update-index"
PATCHES = (real_verdicts.PATCH, Path(__file__).with_name("larger_commits.patch"))

SHARE = 0.05
"""By how much more is written, and by how much fewer operations there are."""

WRITES_MORE_MINUTES, SLOWED_MINUTES = 10, 45
"""The budgets of both sessions, which begin with the first block: loading comes before."""

COUNTED_BLOCKS = 3
"""The blocks of the session of the base alone."""

WRITTEN = "server_written_kb_per_op"
BYTES = (WRITTEN, "wal_bytes_per_op")
"""The metrics of which any may tell of the bytes: what reaches the disk, and the log that is part of it."""


class UnfinishedSessionError(Exception):
    """A session has failures, which are its arguments."""


@dataclass(frozen=True)
class Operations:
    """What operations of the base are like."""

    seconds: float
    """For one of a client."""

    written_bytes: float
    """By one, to the disk."""

    @property
    def planted_bytes(self) -> int:
        """The bytes that are SHARE of what an operation writes."""
        return round(SHARE * self.written_bytes)

    @property
    def burnt_nanoseconds(self) -> int:
        """How much longer one takes where there are fewer by SHARE: a client waits for its own."""
        return round(1e9 * self.seconds * SHARE / (1 - SHARE))


def planted_figures(home: Home) -> Iterator[Figure]:
    """Yield whether the bytes were found in ten minutes, and the throughput in 45."""
    folder = home.path / "io" / "planted"
    folder.mkdir(parents=True, exist_ok=True)
    suite, shown = load_suite(SUITE), Lines()
    base = Request((BASE,), suite, PROFILE, suite.select((STEP,)), COUNTED_BLOCKS, blocks=COUNTED_BLOCKS)
    with open_store(folder / "history.db") as store:
        try:
            uid, _ = _measured(base, home, store, shown)
            operations = operations_of(store, uid, suite)
            settings = {"tidemark.planted_bytes": str(operations.planted_bytes)}
            request = _against_base(base, "writes-more", Variant(settings, patches=PATCHES))
            request = replace(request, budget_seconds=WRITES_MORE_MINUTES * 60)
            uid, minutes = _measured(request, home, store, shown)
            note = f"{operations.planted_bytes} bytes a commit, {minutes:.0f} min with loading"
            yield bytes_figure(compared_step(store, uid, request), note)
            request = _against_base(base, "slowed", Variant(patches=PATCHES))
            request = replace(request, budget_seconds=SLOWED_MINUTES * 60)
            with real_verdicts.burning(operations.burnt_nanoseconds):
                uid, minutes = _measured(request, home, store, shown)
            note = f"{operations.burnt_nanoseconds} ns an update, {minutes:.0f} min with loading"
            yield throughput_figure(compared_step(store, uid, request), note)
        except UnfinishedSessionError as error:
            yield Figure("planted: failures", len(error.args), "", at_most=0, note="; ".join(error.args))


def operations_of(store: Store, uid: str, suite: Suite) -> Operations:
    """Return what operations were like in the session of the base alone."""
    session = store.latest_session((), uid=uid)
    assert session is not None
    runs = [run.values for run in store.runs(session.id) if run.status is RunStatus.FINISHED]
    clients = sizes(suite, suite.profile(PROFILE), this_machine()).threads
    return Operations(
        clients / fmean(values[PRIMARY] for values in runs),
        1024 * fmean(values[WRITTEN] for values in runs),
    )


def compared_step(store: Store, uid: str, request: Request) -> StepComparison:
    """Return the comparison of the step in a session of the base and another version."""
    base, contender = request.versions
    (found,) = compare(store, base, (contender,), CompareOptions(session=uid)).contenders
    (step,) = found.steps
    return step


def bytes_figure(step: StepComparison, note: str) -> Figure:
    """Return how many findings for the worse are about bytes; what was planted is in the `note`."""
    found = [finding.text for finding in step.findings if finding.is_worse and finding.metric in BYTES]
    changes = [
        f"{judged.row.label} {signed_percent(judged.value - 1)}"
        for judged in step.beside
        if judged.metric in BYTES and judged.value is not None
    ]
    said = "; ".join([*(found or changes), note])
    return Figure(f"{100 * SHARE:.0f} % more written: found by bytes", len(found), "", at_least=1, note=said)


def throughput_figure(step: StepComparison, note: str) -> Figure:
    """Return whether the step is told to be slower; what was planted is in the `note`."""
    judged = step.judged
    found = judged.verdict is Verdict.REGRESSION
    interval = judged.interval
    ratio = (
        f"{interval.estimate:.3f} ({interval.low:.3f} to {interval.high:.3f})" if interval else "no interval"
    )
    said = f"{ratio} after {judged.pairs} blocks; {note}"
    return Figure(f"{100 * SHARE:.0f} % less throughput: found", float(found), "", at_least=1, note=said)


def _against_base(base: Request, name: str, variant: Variant) -> Request:
    versions = (BASE, replace(BASE, variant=name))
    least = base.profile.repetitions
    return replace(
        base, versions=versions, repetitions=least, blocks=None, until_decided=True, variants={name: variant}
    )


def _measured(request: Request, home: Home, store: Store, shown: Progress) -> tuple[str, float]:
    """Return the uid of a session, and its minutes. Raises UnfinishedSessionError."""
    began = time.monotonic()
    outcome = run_session(request, home, store, shown)
    if not outcome.whole:
        raise UnfinishedSessionError(*outcome.failures, *map(str, outcome.not_built.values()))
    return outcome.uid, (time.monotonic() - began) / 60
