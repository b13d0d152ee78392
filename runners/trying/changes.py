"""What a try changed, step by step: functions by counted instructions, what a query costs, and its waits."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from history.comparison.explanation import is_cost
from history.comparison.findings.moved_metrics import moved_text
from history.comparison.profile_diff import FunctionChange, differential
from history.comparison.result import Comparison, StepComparison
from history.comparison.verdict import Judged, MetricChange, Verdict
from history.rendering.profiles import named_events, shortened
from history.store.reader import Reader
from suites.metrics import INSTRUCTIONS

MAX_FUNCTIONS = 4
"""The functions that a line names."""

MIN_SHARE_NAMED = 0.05
"""The share of the change of all instructions per query below which a function is not named."""

_CHANGED = (Verdict.REGRESSION, Verdict.IMPROVEMENT)


@dataclass(frozen=True)
class StepChange:
    """What changed in one step."""

    step: str
    functions: tuple[FunctionChange, ...]
    """The functions whose counted instructions changed most, largest change first."""

    resources: tuple[Judged, ...]
    """The costs of a query that moved, instructions and what findings tell aside."""

    waits: str = ""
    """The wait events that moved with its throughput, as one line of text."""

    @property
    def text(self) -> str:
        """The change in one line."""
        named = (f"{shortened(function.name)} {_amount(function.own_change)}" for function in self.functions)
        moved = map(moved_text, self.resources)
        parts = [f"functions: {', '.join(named)} instructions per query"] * bool(self.functions)
        parts += [f"resources per query: {', '.join(moved)}"] * bool(self.resources)
        parts += [f"waits: {self.waits}"] * bool(self.waits)
        return f"{self.step}: {'; '.join(parts)}"


def changes_of(store: Reader, counted: Comparison | None, timed: Comparison | None) -> tuple[StepChange, ...]:
    """Return what changed in each step in which anything did, in suite order: functions, costs and waits.

    Functions are those of steps with more or fewer counted instructions, where counted passes have profiles.
    """
    by_step: dict[str, StepChange] = {}
    passes, rounds = _by_step(counted), _by_step(timed)
    for name in dict.fromkeys((*rounds, *passes)):
        functions: tuple[FunctionChange, ...] = ()
        if counted is not None and name in passes and passes[name].judged.verdict in _CHANGED:
            functions = _functions(store, counted, name)
        sides = [steps[name] for steps in (rounds, passes) if name in steps]
        waits = named_events(rounds[name]) if name in rounds else ""
        change = StepChange(name, functions, tuple(_resources(sides)), waits)
        if change.functions or change.resources or change.waits:
            by_step[name] = change
    return tuple(by_step.values())


def _functions(store: Reader, counted: Comparison, step: str) -> tuple[FunctionChange, ...]:
    (contender,) = counted.contenders
    sides = (contender.base, contender.contender)
    rounds = [store.counted_profiles(contender.session.id, step, version) for version in sides]
    if not all(rounds):
        return ()
    found = differential(*rounds)
    least = MIN_SHARE_NAMED * abs(found.contender_total - found.base_total)
    largest = (function for function in found.functions if abs(function.own_change) >= max(least, 1.0))
    return tuple(largest)[:MAX_FUNCTIONS]


def _resources(sides: Sequence[StepComparison]) -> Iterator[Judged]:
    seen = {INSTRUCTIONS, *(found.metric for step in sides for found in step.findings)}
    for cost in (cost for step in sides for cost in step.beside):
        moved = cost.change in (MetricChange.MORE, MetricChange.LESS)
        if cost.pairs and moved and is_cost(cost.metric) and cost.metric not in seen:
            seen.add(cost.metric)
            yield cost


def _by_step(comparison: Comparison | None) -> Mapping[str, StepComparison]:
    steps: Sequence[StepComparison] = () if comparison is None else comparison.contenders[0].steps
    return {step.step: step for step in steps}


def _amount(change: float) -> str:
    return f"{change:+,.0f}" if abs(change) >= 10 else f"{change:+.1f}"
