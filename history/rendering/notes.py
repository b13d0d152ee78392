"""The lines below a table: where the numbers come from, how they were judged, and what to doubt in them."""

from collections.abc import Iterator

from history.comparison import Comparison, ContenderComparison, StepComparison
from history.explaining import COSTS, VARIATION
from history.judging import Change, Ratio, Verdict, verdict_of
from history.pairing import Failure
from history.rendering.numbers import amount, bounds
from history.rendering.table import NAMES
from suites.measurement import METRICS


def notes(comparison: Comparison, contender: ContenderComparison) -> list[str]:
    """All of them, one text each."""
    session, options, machine = contender.session, comparison.options, contender.session.machine
    gaps: dict[str, list[str]] = {}
    for step in contender.steps:
        if step.judgement.gap:
            gaps.setdefault(step.judgement.reason, []).append(step.step)
    return [
        f"Session {session.uid} ({session.status}), {session.started_at:%Y-%m-%d %H:%M} UTC: suite "
        f"{session.suite}, profile {session.profile}, {session.repetitions} repetitions; "
        f"{machine.hostname}, {machine.cpu_model}, {machine.cores} cores.",
        f"Intervals of {contender.judged_steps} of {len(contender.steps)} steps, which all hold together "
        f"with {options.confidence_percent:g} % confidence, each metric for itself; "
        f"threshold {options.threshold_percent:g} %.",
        f"History: {comparison.history}",
        *(_unexplained(step) for step in contender.steps if step.is_unexplained),
        *(text for step in contender.steps for text in _varies_more(step)),
        *(f"no verdict: {', '.join(steps)}: {reason}" for reason, steps in gaps.items()),
        *map(_failure, contender.failures),
        *(f"warning: {text}" for text in contender.warnings),
    ]


def _unexplained(step: StepComparison) -> str:
    """Which costs are known not to explain the verdict, and which are merely not known to."""
    costs = [each for each in step.beside if each.metric in COSTS and each.pairs]
    same = [NAMES[each.metric] for each in costs if each.change is Change.SAME]
    other_way = [NAMES[each.metric] for each in costs if each.change in (Change.MORE, Change.LESS)]
    unknown = [_with_amounts(each) for each in costs if each.change is Change.UNKNOWN]
    said = {"the same per query": same, "moved the other way": other_way, "unknown": unknown}
    change = f"{(step.judged.value or 1) - 1:+.0%}".replace("%", " %")
    parts = [
        f"{step.step}, {change}",
        *(f"{what}: {', '.join(names)}" for what, names in said.items() if names),
    ]
    return f"not explained by cost: {'; '.join(parts)}; it may have waited, look at its seconds"


def _with_amounts(ratio: Ratio) -> str:
    """A cost by name; without a ratio the absolute values say whether it may explain something after all."""
    name = NAMES[ratio.metric]
    if ratio.value is not None:
        return name
    return f"{name} ({amount(ratio.base)} -> {amount(ratio.contender)} {METRICS[ratio.metric].unit})"


def _varies_more(step: StepComparison) -> Iterator[str]:
    for each in step.metrics:
        if each.metric in VARIATION and each.interval is not None and each.value is not None:
            verdict = verdict_of(each.change, METRICS[each.metric].better)
            if verdict is Verdict.REGRESSION:
                values = f"{NAMES[each.metric]} {each.base:.2g} -> {each.contender:.2g}"
                yield f"varies more: {step.step}, {values} ({each.value:.2f}x, {bounds(each.interval)})"


def _failure(failure: Failure) -> str:
    repetitions = ", ".join(map(str, failure.repetitions))
    reason = " ".join(failure.reason.split())
    return f"{failure.status}: {failure.step}, {failure.version}, repetition {repetitions}: {reason}"
