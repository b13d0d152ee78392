"""Plans beside verdicts: a step whose statements base and contender carry out differently."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from history.comparison.beside.clients import clients_of
from history.comparison.result import ContenderComparison, StepComparison
from history.numbers import amount
from history.store.records import PLANS, Session
from suites.keys.levels import plain_name
from suites.metrics import PRIMARY
from suites.plans.trees import PlanDifference, difference


@dataclass(frozen=True)
class ChangedPlan:
    """The plans of one step that differ by more than estimates."""

    step: str
    base: str
    contender: str
    difference: PlanDifference
    seconds: tuple[float, float] | None
    """The time of a query in base and contender; None where it was not measured."""

    @property
    def sides(self) -> tuple[tuple[str, str], ...]:
        """The name of each side, and its plan."""
        return ("base", self.base), ("new", self.contender)

    @property
    def text(self) -> str:
        """The first step of the plan that differs, and the time of a query, in one line."""
        text = f"another plan: {self.difference.text}"
        if self.seconds is None:
            return text
        unit, factor = ("s", 1.0) if max(self.seconds) >= 1 else ("ms", 1000.0)
        base, contender = (amount(float(f"{seconds * factor:.3g}")) for seconds in self.seconds)
        return f"{text}; {base} -> {contender} {unit}"


def changed_plans(contender: ContenderComparison) -> Iterator[ChangedPlan]:
    """Yield the steps whose plan changed, within one session and engine, whatever their verdict."""
    if contender.nights is not None or len(contender.engines) > 1:
        return
    old, new = _plans(contender)
    for step in contender.steps:
        base, other = (side.get(plain_name(step.step)) for side in (old, new))
        if not (isinstance(base, str) and isinstance(other, str)):
            continue
        found = difference(base, other)
        if found is not None:
            yield ChangedPlan(step.step, base, other, found, _seconds(contender.session, step))


def why_no_plans(contender: ContenderComparison) -> str:
    """Return why no changed plan can be shown; empty if one can."""
    if contender.nights is not None:
        return "No plans: they are compared within one session, not over nights."
    if len(contender.engines) > 1:
        return "No plans: those of two engines are not compared."
    if not all(_plans(contender)):
        return (
            "No plans: the session has none of both versions. Suites with plans = true and files of plain "
            "SQL (--generator queries) record them; pgbench does not print the statements of its scripts."
        )
    return "" if any(changed_plans(contender)) else "No plan changed."


def _plans(contender: ContenderComparison) -> tuple[Mapping[str, object], Mapping[str, object]]:
    """Return the plans of base and contender by step; empty where none were recorded."""
    plans = contender.session.options.get(PLANS)
    of_version = plans if isinstance(plans, dict) else {}
    old, new = (of_version.get(str(version)) for version in (contender.base, contender.contender))
    return old if isinstance(old, dict) else {}, new if isinstance(new, dict) else {}


def _seconds(session: Session, step: StepComparison) -> tuple[float, float] | None:
    """Return the time of a query on both sides: clients over throughput."""
    rate, clients = step.by(PRIMARY), clients_of(session, step.step)
    if rate is None or not (rate.base and rate.contender and clients):
        return None
    return clients / rate.base, clients / rate.contender
