"""The notes below a table: origin of the numbers, how they were judged, and warnings."""

import math
from collections.abc import Iterator
from datetime import datetime

from history.comparison.beside.censored import censored_steps
from history.comparison.beside.curves import Curve, curves, shapes
from history.comparison.beside.open_connections import connection_costs, held_levels
from history.comparison.beside.overhead import overheads
from history.comparison.exact import MAX_PASSES, exact_rule, is_exact
from history.comparison.explanation import Explanation, is_cost
from history.comparison.findings.moved_metrics import SOURCE as METRICS_MOVED
from history.comparison.findings.moved_metrics import unknown_metrics
from history.comparison.findings.plans import ChangedPlan, changed_plans
from history.comparison.pairs import Failure
from history.comparison.result import Comparison, ContenderComparison, Nights, StepComparison
from history.comparison.verdict import Judged, MetricChange, Verdict, verdict_of
from history.comparison.warnings import by_reason, ranges, remeasured_rounds
from history.counts import counted
from history.numbers import amount, bounds, percent, signed_percent
from history.rendering.profiles import gained_lines
from history.series.variants import definition_notes
from history.stats.repeated_intervals import VISIBLE_PROBABILITY
from history.store.records import RESTARTS
from suites.keys.levels import level_of
from suites.metric import Better, Role
from suites.metrics import METRICS, label_of, of_role

MAX_DAYS = 5
"""The nights that are listed for one kind of gap."""


RESTARTED = (
    "Each slice was a run of the load generator of its own: its first second, in which clients connect and "
    "fill their caches, does not count in throughput and costs."
)
"""What sets sessions apart whose load generator cannot pause."""


def notes(comparison: Comparison, contender: ContenderComparison) -> list[str]:
    """Return all notes below the table of a contender: its findings, then what they rest on."""
    found = [*findings_lines(contender), *unknown_lines(contender)]
    return [*found, *basis(comparison, contender)]


def basis(comparison: Comparison, contender: ContenderComparison) -> list[str]:
    """Return what the numbers of a contender rest on, and warnings."""
    session = contender.session
    gaps: dict[tuple[str, str], list[str]] = {}
    for step in contender.steps:
        if step.judged.gap or step.judged.doubts:
            without = "no verdict" if step.judged.gap else "inconclusive"
            gaps.setdefault((without, step.judged.reason), []).append(step.step)
    return [
        *_origin(comparison, contender),
        *(line for curve in curves(contender) for line in _curve(curve)),
        *([RESTARTED] if session.options.get(RESTARTS) is True and not session.only_counted else []),
        *_connections(contender),
        *(line for plan in changed_plans(contender) for line in _plans(plan)),
        *definition_notes(session.options, (contender.base, contender.contender)),
        *contender.builds,
        *_overhead(contender),
        *_same_rows(contender),
        f"History: {comparison.history}",
        *_base_drift(comparison, contender),
        *_measured_again(contender),
        *_set_aside(contender),
        *(
            _unexplained(step)
            for step in contender.steps
            if step.explanation in (Explanation.NONE, Explanation.UNDECIDED)
        ),
        *(line for step in contender.steps for line in gained_lines(step)),
        *(text for step in contender.steps for text in _more_instructions(step)),
        *_of_one_client(contender),
        *(text for step in contender.steps for text in _varies_more(step)),
        *(f"{without}: {', '.join(steps)}: {reason}" for (without, reason), steps in gaps.items()),
        *_censored(contender),
        *map(_failure, contender.failures),
        *(f"warning: {text}" for text in contender.warnings),
    ]


def _origin(comparison: Comparison, contender: ContenderComparison) -> list[str]:
    """Return where the numbers come from, and how wide their intervals are."""
    session, machine = contender.session, contender.session.machine
    place = f"{machine.hostname}, {machine.processor}"
    if contender.nights is None:
        return [
            f"Session {session.uid} ({session.status}), {session.started_at:%Y-%m-%d %H:%M} UTC: suite "
            f"{session.suite}, profile {session.profile}, {_planned(contender)}; {place}.",
            _intervals(comparison, contender),
            *_visible(contender),
        ]
    return [
        f"{_span(contender.nights)}: suite {session.suite}, {contender.nights.configuration}; {place}.",
        "Each night gives one pair, the geometric means of its rounds; base and contender are paired "
        "within a night only, and the interval is over nights.",
        _intervals(comparison, contender),
        *_version_changes(contender.nights),
        *_night_gaps(contender.nights),
    ]


def _curve(curve: Curve) -> Iterator[str]:
    """Return where both curves of a step peak, what a core does there, and how much is lost at the end."""
    for side, shape in zip(("base", "new"), shapes(curve), strict=True):
        if shape is None:
            continue
        text = f"{curve.step}, {side}: peak {amount(shape.peak)} {curve.unit} with {shape.clients} clients"
        text += f", {amount(shape.per_core)} per core"
        less = f"{percent(shape.droop)} less" if shape.droop > 0 else "as many"
        end = "" if shape.clients == shape.most else f"; with {shape.most} clients {less}"
        yield (text + end).replace("%", " %")


def _connections(contender: ContenderComparison) -> Iterator[str]:
    """Return how the memory of connections was measured, in a session that held any."""
    if connection_costs(contender):
        yield (
            "KiB per open connection: slope of PSS without shared memory, with page tables, over "
            f"{held_levels(contender)} connections, and its interval within a round; means of the paired "
            "rounds. RSS counts shared pages once per process."
        )


def _plans(plan: ChangedPlan) -> Iterator[str]:
    """Return both plans of a step whose plan changed, each in one line."""
    for side, text in (("base", plan.base), ("new", plan.contender)):
        lines = (" ".join(line.split()) for line in text.splitlines())
        yield f"{plan.step}, plan of {side}: {'; '.join(filter(None, lines))}"


def _same_rows(contender: ContenderComparison) -> Iterator[str]:
    """Return in which steps both versions hold the same rows after the same work, in one line."""
    steps = [step.step for step in contender.steps]
    proved = [step for step in steps if step in contender.same_rows]
    if proved:
        rows = max(contender.same_rows[step] for step in proved)
        others = [step for step in steps if step not in proved]
        missing = f"; not compared: {', '.join(others)}" if others else ""
        where = "every step" if not others else counted(len(proved), "step")
        yield (
            f"Both hold the same rows, up to {rows:,}, after the same transactions and a crash in {where}"
            f"{missing}."
        )


def findings_lines(contender: ContenderComparison) -> list[str]:
    """Return what is certain beside the verdicts, what is worse first.

    Metrics that moved the same way in a step share a line; every other finding has one.
    """
    found = sorted(
        (found for step in contender.steps for found in step.findings), key=lambda found: not found.is_worse
    )
    traded = {step.step for step in contender.steps if step.is_trade}
    lines: dict[tuple[object, ...], list[str]] = {}
    for number, finding in enumerate(found):
        own = number if finding.source != METRICS_MOVED else None
        end = "; the step is faster" if finding.is_worse and finding.step in traded else ""
        lines.setdefault((finding.step, finding.source, finding.bearing, end, own), []).append(finding.text)
    return [f"{step}: {', '.join(texts)}{end}" for (step, _, _, end, _), texts in lines.items()]


def unknown_lines(contender: ContenderComparison) -> Iterator[str]:
    """Return the metrics beside the verdicts that may be worse by more than their threshold, in one line."""
    verdicts = {step.judged.metric for step in contender.steps}
    unknown = [metric for metric in unknown_metrics(contender.steps) if metric.metric not in verdicts]
    if unknown:
        yield f"may be worse: {', '.join(metric.text for metric in unknown)}"


def _overhead(contender: ContenderComparison) -> Iterator[str]:
    """Return the overhead of each step of a pair, with its interval, in one line."""
    texts = []
    for overhead in overheads(contender):
        text = f"{overhead.step} {100 * overhead.value:.1f} %"
        if overhead.low is not None and overhead.high is not None:
            text += f" ({100 * overhead.low:.1f} to {100 * overhead.high:.1f} %)"
        texts.append(text)
    if texts:
        yield f"overhead, 1 - new/base: {', '.join(texts)}"


def _span(nights: Nights) -> str:
    first, last = nights.started_at[0], nights.started_at[-1]
    past = f", {counted(nights.past, 'past commit')} among them at their dates" if nights.past else ""
    return f"{counted(len(nights.started_at), 'night')}, {first:%Y-%m-%d} to {last:%Y-%m-%d}{past}"


def _version_changes(nights: Nights) -> Iterator[str]:
    """List the versions of base and contender, if there were several over the nights."""
    for side, versions in (("base", nights.bases), ("new", nights.contenders)):
        if len(versions) > 1:
            counts = ", ".join(f"{name} ({counted(count, 'night')})" for name, count in versions.items())
            yield f"{side} was {counts}"


def _night_gaps(nights: Nights) -> Iterator[str]:
    """List the gaps, one line for each reason, branch and set of nights, with their steps."""
    steps: dict[tuple[str, str, tuple[datetime, ...]], list[str]] = {}
    for gap in nights.gaps:
        steps.setdefault((gap.branch, gap.reason, gap.nights), []).append(gap.step or "all steps")
    for (branch, reason, moments), names in steps.items():
        days = [f"{time:%Y-%m-%d}" for time in moments]
        more = f" and {len(days) - MAX_DAYS} more" if len(days) > MAX_DAYS else ""
        days_and_reason = f"{', '.join(days[:MAX_DAYS])}{more}: {' '.join(reason.split())}"
        yield f"no value: {', '.join(names)}, {branch}, {days_and_reason}"


def _planned(contender: ContenderComparison) -> str:
    if contender.session.only_counted:
        return counted(contender.session.counted_passes, "pass")
    layouts = f" in {contender.session.layouts} layouts a side" if contender.session.layouts else ""
    if contender.looks is None:
        return counted(contender.session.repetitions, "round") + layouts
    return f"{contender.looks[0]} to {contender.looks[1]} rounds until decided{layouts}"


def _intervals(comparison: Comparison, contender: ContenderComparison) -> str:
    """Return the note on the confidence of the intervals, over how many steps and looks."""
    options, looks = comparison.options, contender.looks
    if contender.nights is None and contender.steps and is_exact(contender.steps[0].judged.metric):
        return _exact(comparison, contender)
    rounds = sorted({step.judged.pairs for step in contender.steps if step.judged.interval})
    unit = "rounds" if contender.nights is None else "nights"
    counted = f", of {rounds[0]} to {rounds[-1]} {unit} each" if len(rounds) > 1 else ""
    if len(rounds) == 1:
        counted = f", of {rounds[0]} {unit} each"
    at_looks = "" if looks is None else f", at all looks from round {looks[0]} to {looks[1]},"
    layouts = contender.session.layouts if contender.nights is None else 0
    held = f" and for other layouts than these {layouts} of each side," if layouts else ""
    return (
        f"Intervals of {contender.judged_steps} of {len(contender.steps)} steps{counted}: they all hold "
        f"together{at_looks}{held} with {options.confidence_percent:g} % confidence, each metric separately; "
        f"threshold {_threshold(comparison, contender)}{_of_exact(contender)}."
    )


def _threshold(comparison: Comparison, contender: ContenderComparison) -> str:
    """Return the threshold by which the steps were judged; without a step, that which was asked for."""
    asked = comparison.options.threshold_percent
    return f"{100 * contender.steps[0].judged.threshold if contender.steps else asked:g} %"


def _of_exact(contender: ContenderComparison) -> str:
    """Return the threshold of exact instructions where they stand beside the verdict; empty elsewhere."""
    exact = next((step.exact for step in contender.steps if step.exact), None)
    return f", of exact instructions {100 * exact.threshold:g} %" if exact else ""


def _exact(comparison: Comparison, contender: ContenderComparison) -> str:
    """Return the note on how counted instructions are judged."""
    rule = exact_rule(contender.steps[0].judged.metric, contender.engines)
    passes = counted(contender.session.counted_passes, "pass")
    return (
        "Instructions of the client's backend in user code under callgrind, counted for fixed work in "
        f"{passes} a step, and up to {MAX_PASSES} where these show a change or disagree: intervals are from "
        f"the smallest to the largest ratio of a pass, and {100 * rule.allowance:g} % beyond; "
        f"threshold {_threshold(comparison, contender)}. They are no time: cache misses, locks, "
        "waiting and I/O are not seen."
    )


def _visible(contender: ContenderComparison) -> Iterator[str]:
    """Explain the column `sees` and name its calibration, or say how to calibrate."""
    session = contender.session
    judged = contender.steps[0].judged if contender.steps else None
    if judged is None or is_exact(judged.metric) or session.layouts:
        return
    if contender.has_visible:
        worse = "slow-down" if judged.row.role is Role.THROUGHPUT else "worsening"
        by = {noise.session: f"{noise.started_at:%Y-%m-%d}" for noise in contender.calibrations}
        named = ", ".join(f"{uid} ({day})" for uid, day in by.items())
        rounds = "its rounds" if contender.looks is None else f"{contender.looks[1]} rounds"
        yield (
            f"sees: the smallest {worse} that a step flags in {rounds} with {VISIBLE_PROBABILITY:.0%} "
            f"probability, as noisy as in calibration {named}.".replace("%", " %")
        )
    elif judged.better is not Better.NEITHER and not session.is_imported:
        yield (
            "The smallest visible change of each step is unknown: ./tidemark calibrate "
            f"--suite {session.suite} --profile {session.profile} {contender.base.plain}"
        )


def _base_drift(comparison: Comparison, contender: ContenderComparison) -> Iterator[str]:
    """Note the largest drift of the base, if it is beyond the threshold; pairs cancel most of it."""
    drifts = {step.step: step.base_drift for step in contender.steps if step.base_drift}
    if not drifts:
        return
    step = max(drifts, key=lambda step: abs(math.log(drifts[step])))
    if abs(drifts[step] - 1) > comparison.options.threshold_percent / 100:
        drift = signed_percent(drifts[step] - 1)
        yield f"the base drifted by {drift} from the first to the last round of {step}"


def _measured_again(contender: ContenderComparison) -> Iterator[str]:
    if contender.dropped:
        reasons = by_reason(remeasured_rounds(contender.dropped))
        times = counted(len(contender.dropped), "round")
        was = "was" if len(contender.dropped) == 1 else "were"
        yield f"{times} {was} disturbed and measured again: {'; '.join(reasons)}"


def _set_aside(contender: ContenderComparison) -> Iterator[str]:
    """List the steps whose interval ignores stalled rounds."""
    stalled = [
        f"{step.step} {step.judged.pairs - step.judged.interval.n} of {step.judged.pairs}"
        for step in contender.steps
        if step.judged.interval is not None and step.judged.interval.n < step.judged.pairs
    ]
    if stalled:
        unit = "rounds" if contender.nights is None else "nights"
        yield f"{unit} far from all others, left out as stalled: {', '.join(stalled)}"


def _unexplained(step: StepComparison) -> str:
    """Return the note on a verdict that no cost explains, with the change of every cost."""
    costs = [cost for cost in step.beside if is_cost(cost.metric) and cost.pairs]
    same = [label_of(cost.metric) for cost in costs if cost.change is MetricChange.SAME]
    other_way = [
        label_of(cost.metric) for cost in costs if cost.change in (MetricChange.MORE, MetricChange.LESS)
    ]
    unknown = [_with_amounts(cost) for cost in costs if cost.change is MetricChange.UNKNOWN]
    kinds = {"the same per query": same, "moved the other way": other_way, "unknown": unknown}
    change = signed_percent((step.judged.value or 1) - 1)
    parts = [
        f"{step.step}, {change}",
        *(f"{what}: {', '.join(names)}" for what, names in kinds.items() if names),
    ]
    begin = "not explained by cost" if step.is_unexplained else "undecided whether a cost explains it"
    waited = "perhaps it waited" if step.client_time is None else "no sampled wait is most of it"
    return f"{begin}: {'; '.join(parts)}; {waited}: see its per-second throughput"


def _with_amounts(ratio: Judged) -> str:
    """Return the name of a cost, with its absolute values if there is no ratio."""
    name = label_of(ratio.metric)
    if ratio.value is not None:
        return name
    return f"{name} ({amount(ratio.base)} -> {amount(ratio.contender)} {METRICS[ratio.metric].unit})"


def _more_instructions(step: StepComparison) -> Iterator[str]:
    """Note a change of instructions where throughput is undecided: a finding of its own, not of speed."""
    exact = step.exact
    if exact is None or not step.is_open or exact.value is None:
        return
    if exact.change in (MetricChange.MORE, MetricChange.LESS):
        amounts = f"{amount(exact.base)} -> {amount(exact.contender)}"
        percent = f"{100 * abs(exact.value - 1):.1f} % {exact.change}"
        judged = METRICS[step.judged.metric]
        what = "throughput" if judged.role is Role.THROUGHPUT else judged.name
        yield f"{step.step}: {percent} instructions per query ({amounts}); {what} undecided"


def _of_one_client(contender: ContenderComparison) -> Iterator[str]:
    """Note the steps whose rounds have several clients, of which counted passes have one."""
    levels = [
        step.step
        for step in contender.steps
        if level_of(step.step) not in ("", "1") and (step.exact or is_exact(step.judged.metric))
    ]
    if levels:
        yield f"instructions are those of one client: {', '.join(levels)}"


def _varies_more(step: StepComparison) -> Iterator[str]:
    varying = of_role(Role.VARIATION)
    for ratio in step.metrics:
        if ratio.metric in varying and ratio.interval is not None and ratio.value is not None:
            verdict = verdict_of(ratio.change, METRICS[ratio.metric].better)
            if verdict is Verdict.REGRESSION:
                values = f"{label_of(ratio.metric)} {ratio.base:.2g} -> {ratio.contender:.2g}"
                yield f"varies more: {step.step}, {values} ({ratio.value:.2f}x, {bounds(ratio.interval)})"


def _censored(contender: ContenderComparison) -> Iterator[str]:
    """Note the steps that are in no mean, and what the means are without them."""
    found = censored_steps(contender)
    if found is not None:
        bound = f"{found.bound} what they show" if found.bound else "unknown: they are not bounds of it"
        yield f"over the limit: {', '.join(found.steps)}; of all steps the geometric means are {bound}"


def _failure(failure: Failure) -> str:
    rounds = ranges(failure.repetitions)
    reason = " ".join(failure.reason.split())
    return f"{failure.status}: {failure.step}, {failure.version}, round {rounds}: {reason}"
