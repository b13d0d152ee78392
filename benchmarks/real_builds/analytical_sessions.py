"""Sessions of the suite tpch: one at scale factor 1 for its answers, and small ones with a planted change."""

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from benchmarks.output.figures import Figure
from benchmarks.real_builds.client_share import share_figures
from benchmarks.real_builds.loaded_server import ENGINES
from build.home import Home
from build.progress import Progress
from build.version import Version
from history.comparison.compare import compare
from history.comparison.findings.plans import changed_plans
from history.comparison.options import CompareOptions
from history.comparison.result import ContenderComparison
from history.comparison.verdict import Verdict
from history.open import open_store
from history.series.variants import TWIN
from history.store.records import PLANS, Run, RunStatus
from runners.console import Lines
from runners.measuring.request import Request
from runners.measuring.session import ActiveSession, SessionDriver, run_session
from runners.measuring.variants import Variant
from suites.definition import load_suite
from suites.generators.load import Generator
from suites.generators.queries.sessions import SESSIONS
from suites.plans.trees import difference
from suites.server import Address

SUITE = load_suite("tpch")
QUERIES = tuple(step for step in SUITE.steps if step.reads_only)
BASE = ENGINES[0]
DROPPED_INDEX = "lineitem_part_supp"
SETTING = {"enable_hashjoin": "off"}
ROUNDS = 3


def answer_figures(home: Home, shown: Progress) -> Iterator[Figure]:
    """Yield the right answers of each engine at scale factor 1; a wrong one has no finished run."""
    for version in ENGINES:
        request = Request((version,), SUITE, "short", QUERIES, 1, keep_disturbed=True, seconds=1.0)
        runs = runs_of(request, home, shown)
        right = sum(run.status is RunStatus.FINISHED for run in runs)
        wrong = [f"{run.step}: {run.failure}" for run in runs if run.failure]
        name = f"right answers at scale factor 1, {version}"
        yield Figure(name, right, "", at_least=len(QUERIES), note="; ".join(wrong))


def index_figures(home: Home, shown: Progress) -> Iterator[Figure]:
    """Yield what is flagged when an index is dropped from the schema of one of two equal servers."""
    other = replace(BASE, variant=TWIN)
    request = Request((BASE, other), SUITE, "smoke", QUERIES, ROUNDS, keep_disturbed=True)

    def drive(active: ActiveSession) -> None:
        whole = active.rounds.measurement
        without = _WithoutIndex(whole.generator, "2")
        planted = replace(whole, generator=cast("Generator", without))
        replace(active.rounds, measurement=planted).run(active.builds, active.folder)

    yield from _planted_figures(f"without {DROPPED_INDEX}", request, other, home, shown, drive)


def setting_figures(home: Home, shown: Progress) -> Iterator[Figure]:
    """Yield what is flagged when a variant has another setting of the planner."""
    other = replace(BASE, variant="planted")
    variants = {"planted": Variant(settings=SETTING)}
    request = Request((BASE, other), SUITE, "smoke", QUERIES, ROUNDS, keep_disturbed=True, variants=variants)
    name = ", ".join(f"{key} = {value}" for key, value in SETTING.items())
    yield from _planted_figures(name, request, other, home, shown, None)


@dataclass(frozen=True)
class _WithoutIndex:
    """A load generator that drops an index again on the server whose folder has the name `place`."""

    real: Generator
    place: str

    def load(self, address: Address) -> None:
        """Load as the real one does."""
        self.real.load(address)
        if address.socket.parent.name == self.place:
            with closing(SESSIONS[address.engine](address)) as session:
                session.execute(f"DROP INDEX {DROPPED_INDEX}")

    def __getattr__(self, name: str) -> object:
        """Everything else is the real one's."""
        return getattr(self.real, name)


def _planted_figures(
    what: str, request: Request, other: Version, home: Home, shown: Progress, drive: SessionDriver | None
) -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as folder, open_store(Path(folder) / "h.db") as store:
        run_session(request, home, store, shown, driver=drive)
        (contender,) = compare(store, BASE, (other,), CompareOptions()).contenders
    different = _different(contender, other)
    flagged = {plan.step for plan in changed_plans(contender) if plan.base and plan.contender}
    decided = (Verdict.REGRESSION, Verdict.IMPROVEMENT)
    judged = {step.step for step in contender.steps if step.judged.verdict in decided}
    yield Figure(f"{what}: queries with another plan", len(different), "", at_least=1, note=_names(different))
    missed = different - flagged
    yield Figure(
        f"{what}: of these not shown with both plans", len(missed), "", at_most=0, note=_names(missed)
    )
    wrong = flagged - different
    yield Figure(
        f"{what}: shown although the plan is the same", len(wrong), "", at_most=0, note=_names(wrong)
    )
    false = judged - different
    name = f"{what}: a verdict of a change with the same plan"
    yield Figure(name, len(false), "", at_most=0, note=_names(false))
    yield Figure(f"{what}: a verdict of a change with another plan", len(judged & different), "")


def _different(contender: ContenderComparison, other: Version) -> set[str]:
    """Return the steps whose stored plans differ, as the session has them."""
    plans = contender.session.options[PLANS]
    assert isinstance(plans, dict)
    old, new = plans[str(BASE)], plans[str(other)]
    return {step for step in old if difference(old[step], new[step]) is not None}


def _names(steps: set[str]) -> str:
    return ", ".join(sorted(steps, key=lambda name: int(name[1:])))


def runs_of(request: Request, home: Home, shown: Progress) -> Sequence[Run]:
    """Return the runs of a session of its own, of every version."""
    with tempfile.TemporaryDirectory() as folder, open_store(Path(folder) / "h.db") as store:
        outcome = run_session(request, home, store, shown)
        session = store.latest_session(request.versions, uid=outcome.uid)
        return () if session is None else store.runs(session.id)


PARTS: Mapping[str, Callable[[Home, Lines], Iterator[Figure]]] = {
    "answers": answer_figures,
    "share": share_figures,
    "index": index_figures,
    "setting": setting_figures,
}
"""What is measured, by the name of the part."""
