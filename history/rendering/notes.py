"""What is said below a table: findings, the domain, and notes by subject, a line each."""

import math
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime

from build.progress import in_words
from history.comparison.beside.censored import censored_steps
from history.comparison.beside.curves import Curve, curves, shapes
from history.comparison.beside.domain import domain_of
from history.comparison.beside.open_connections import connection_costs, held_levels
from history.comparison.beside.overhead import overheads
from history.comparison.exact import MAX_PASSES, exact_rule, is_exact
from history.comparison.explanation import Explanation, unknown_costs
from history.comparison.finding import Bearing, Finding, has_left_more
from history.comparison.findings.moved_metrics import SOURCE as METRICS_MOVED
from history.comparison.findings.plans import changed_plans
from history.comparison.findings.unknown_metrics import may_be_worse, unknown_metrics
from history.comparison.pairs import Failure
from history.comparison.query_time import OF_CPU, QueryTime
from history.comparison.result import Comparison, ContenderComparison, Nights, StepComparison
from history.comparison.rounds.steadiness import SOURCE as STEADINESS
from history.comparison.verdict import Judged, MetricChange, Verdict, verdict_of
from history.comparison.warnings import by_reason, ranges, remeasured_rounds
from history.counts import counted
from history.metric_words import label_of
from history.numbers import amount, bounds, share, signed_percent
from history.rendering.commands import as_released, calibrate_again, said
from history.rendering.profiles import gained_lines
from history.series.variants import definition_notes
from history.stats.repeated_intervals import VISIBLE_PROBABILITY
from history.store.records import RESTARTS, RunStatus
from suites.keys.levels import level_of
from suites.metrics import (
    DETRENDED,
    INSTRUCTIONS,
    METRICS,
    PRIMARY,
    RESET_COSTS,
    RESET_LEFT,
    VARIATION,
    Better,
    Role,
    of_role,
)

MAX_DAYS = 5
"""The nights that are listed for one kind of gap."""


Locate = Callable[[str], str]
"""Returns a command as it has to be typed where it is read."""


def origin_lines(comparison: Comparison, contender: ContenderComparison, locate: Locate = str) -> list[str]:
    """Return where the numbers come from, and how wide their intervals are."""
    session, machine = contender.session, contender.session.machine
    place = f"Measured on {machine.hostname}, {machine.processor}."
    if contender.nights is None:
        return [
            f"Session {session.uid} ({session.status}), {session.started_at:%Y-%m-%d %H:%M} UTC: "
            f"{session.suite}, {session.profile}, {_planned(contender)}.",
            place,
            *_warmed_up(contender),
            *_intervals(comparison, contender),
            *_visible(contender, locate),
        ]
    return [
        f"{_span(contender.nights)}: {session.suite}, {contender.nights.configuration}.",
        place,
        "One pair for each night: the geometric means of its rounds; intervals are over nights.",
        *_intervals(comparison, contender),
        *_version_changes(contender.nights),
        *_night_gaps(contender.nights),
    ]


def _warmed_up(contender: ContenderComparison) -> Iterator[str]:
    """Return how long servers warmed up before their first block, and what they had not reached by then."""
    known = contender.session.warmth
    found = {step.step: known[step.step] for step in contender.steps if step.step in known}
    if not found:
        return
    by_seconds: dict[str, list[str]] = {}
    for step, warmth in found.items():
        by_seconds.setdefault(in_words(warmth.seconds), []).append(step)
    steps = "; ".join(f"{seconds} before {', '.join(names)}" for seconds, names in by_seconds.items())
    until = "its cache was full or no longer grew"
    if any(warmth.checkpoint for warmth in found.values()):
        until += ", and a checkpoint was over"
    yield f"Each version warmed up until {until}, or time was up: {steps}."
    for step, warmth in found.items():
        if warmth.lacking:
            yield f"not warm after {in_words(warmth.seconds)}: {step}: {'; '.join(warmth.lacking)}"


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
    least, most = contender.looks or (contender.session.repetitions,) * 2
    if least == most:
        return counted(least, contender.session.round_name) + layouts
    return f"{least} to {most} {contender.session.round_name}s until decided{layouts}"


def _intervals(comparison: Comparison, contender: ContenderComparison) -> Iterator[str]:
    """Return the notes on the confidence of the intervals, over how many steps and looks."""
    threshold = f"threshold {_threshold(comparison, contender)}"
    metric = contender.steps[0].judged.metric if contender.steps else PRIMARY
    if contender.nights is None and is_exact(metric):
        rule = exact_rule(metric, contender.engines)
        if metric != INSTRUCTIONS:
            beyond = f"{100 * rule.allowance:g} % beyond"
            yield f"Counted for the same transactions of one client, {beyond}; {threshold}."
            return
        passes = counted(contender.session.counted_passes, "pass")
        what = "Instructions of the client's backend in user code, by callgrind"
        yield f"{what}: {passes} of fixed work a step."
        yield (
            f"Intervals: smallest to largest ratio of a pass, and {100 * rule.allowance:g} % beyond; up to "
            f"{MAX_PASSES} passes in doubt; {threshold}."
        )
        return
    rounds = sorted({step.judged.pairs for step in contender.steps if step.judged.interval})
    unit = f"{contender.session.round_name}s" if contender.nights is None else "nights"
    of_rounds = f", {rounds[0]} to {rounds[-1]} {unit}" if len(rounds) > 1 else ""
    of_rounds = f", {rounds[0]} {unit} each" if len(rounds) == 1 else of_rounds
    looks = "" if contender.looks is None else ", at all looks"
    held = ", for other layouts too" if contender.nights is None and contender.session.layouts else ""
    yield (
        f"Intervals of {contender.judged_steps} of {len(contender.steps)} steps{of_rounds}{looks}: "
        f"{comparison.options.confidence_percent:g} % confidence together, by metric{held}."
    )
    yield f"T{threshold[1:]}{_of_exact(contender)}."


def _threshold(comparison: Comparison, contender: ContenderComparison) -> str:
    """Return the threshold by which the steps were judged; without a step, that which was asked for."""
    by_step = [100 * step.judged.threshold for step in contender.steps]
    return f"{min(by_step, default=comparison.options.threshold_percent):g} %"


def _of_exact(contender: ContenderComparison) -> str:
    """Return the threshold of exact instructions where they stand beside the verdict; empty elsewhere."""
    exact = next((step.exact for step in contender.steps if step.exact), None)
    return f", of exact instructions {100 * exact.threshold:g} %" if exact else ""


def _visible(contender: ContenderComparison, locate: Locate) -> Iterator[str]:
    """Explain the column `sees` and name its calibration, or say how to calibrate."""
    session = contender.session
    judged = contender.steps[0].judged if contender.steps else None
    if judged is None or is_exact(judged.metric) or session.layouts:
        return
    if contender.has_visible:
        worse = "slow-down" if judged.row.role is Role.THROUGHPUT else "worsening"
        by = {noise.session: f"{noise.started_at:%Y-%m-%d}" for noise in contender.calibrations}
        named = ", ".join(f"{uid} of {day}" for uid, day in by.items())
        rounds = f"{session.round_name}s"
        rounds = f"its {rounds}" if contender.looks is None else f"{contender.looks[1]} {rounds}"
        chance = f"{100 * VISIBLE_PROBABILITY:.0f} %"
        yield f"sees: the {worse} that {rounds} flag with {chance} probability; calibration {named}."
    elif judged.better is not Better.NEITHER and not session.is_imported:
        yield f"Not calibrated{_in_line(calibrate_again(contender), locate)}"


def settings_lines(contender: ContenderComparison, locate: Locate = str) -> Iterator[str]:
    """Return which settings are not those of the releases, with the command that measures with theirs."""
    told: dict[str, list[str]] = {}
    for other in contender.other_settings:
        text = f"{other.name} = {other.value} (its release has {other.released})"
        told.setdefault(str(other.version), []).append(text)
    if told:
        settings = "; ".join(f"{version}: {', '.join(texts)}" for version, texts in told.items())
        again = as_released(contender)
        command = f"; as released{_in_line(again, locate)}" if again else ""
        yield f"not the release's settings: {settings}{command}"


def _in_line(lines: Sequence[str], locate: Locate) -> str:
    """Return lines for a shell as the rest of a sentence: what to know, then the command."""
    *remarks, command = lines
    return said(lines, ": ") if command.startswith("#") else f"{said(remarks)}: {locate(command)}"


NAMED_STEPS = 3
"""The steps that are named; more are counted."""

PLANS_SHOWN = "Both plans of each step whose plan changed: --plans."

RESTARTED = (
    "Each slice was a run of its own: its first second, with new connections, does not count, and no leak is"
    " seen."
)
"""What sets sessions apart whose load generator cannot pause."""

EXPLAINED_SHARE = 0.8
"""The share of a change of throughput from which on nobody asks for the rest."""


def told(contender: ContenderComparison, *, costs: bool = False) -> list[str]:
    """Return what a table says in words: what is certain beside the verdicts, what is unknown, the domain.

    `costs` says that all costs are in a table beside it, so that no option for them is named.
    """
    domain = domain_of(contender)
    found = [*findings_lines(contender.steps), *unknown_lines(contender, costs=costs)]
    return [*found, *([domain.text] if domain is not None else [])]


def notes(
    comparison: Comparison,
    contender: ContenderComparison,
    legends: Sequence[str] = (),
    *,
    costs: bool = False,
) -> list[str]:
    """Return all that is said below the table of a contender, in order; `costs` as of `told`."""
    return [*told(contender, costs=costs), *basis(comparison, contender, legends)]


def basis(
    comparison: Comparison,
    contender: ContenderComparison,
    legends: Sequence[str] = (),
    locate: Locate = str,
) -> list[str]:
    """Return the notes on a contender, by subject: why steps changed, what is missing, what disturbed rounds,
    and what the numbers rest on, which the `legends` of its tables precede.

    `locate` makes commands those of the reader's folder and home, on whose screen alone they have a place.
    """
    return [
        *_why(contender),
        *_missing(contender),
        *_disturbed(comparison, contender),
        *legends,
        *_rests_on(comparison, contender, locate),
    ]


def _why(contender: ContenderComparison) -> Iterator[str]:
    """Return how far costs explain changes, and the functions that gained."""
    for step in contender.steps:
        yield from explained_lines(step)
        yield from gained_lines(step)
        yield from _more_instructions(step)
        yield from _varies_more(step)


def _missing(contender: ContenderComparison) -> Iterator[str]:
    """Return the steps without a verdict, and the runs that failed, with the reasons."""
    gaps: dict[tuple[str, str], list[str]] = {}
    for step in contender.steps:
        if step.judged.gap or step.judged.doubts:
            without = "no verdict" if step.judged.gap else "inconclusive"
            gaps.setdefault((without, step.judged.reason), []).append(step.step)
    yield from (f"{without}: {', '.join(steps)}: {reason}" for (without, reason), steps in gaps.items())
    yield from _censored(contender)
    what = contender.session.round_name
    yield from _failures(contender.failures, what)


def _disturbed(comparison: Comparison, contender: ContenderComparison) -> Iterator[str]:
    """Return what happened to the machine and to single rounds."""
    yield from _base_drift(comparison, contender)
    yield from _measured_again(contender)
    yield from _set_aside(contender)
    yield from (f"warning: {text}" for text in contender.warnings)


def _rests_on(comparison: Comparison, contender: ContenderComparison, locate: Locate) -> Iterator[str]:
    """Return where the numbers come from."""
    session = contender.session
    yield from origin_lines(comparison, contender, locate)
    yield from (line for curve in curves(contender) for line in _curve(curve))
    if session.options.get(RESTARTS) is True and not session.only_counted:
        yield RESTARTED
    yield from _connections(contender)
    yield from definition_notes(session.options, (contender.base, contender.contender))
    yield from contender.builds
    yield from settings_lines(contender, locate)
    yield from _overhead(contender)
    yield from _same_rows(contender)
    yield from _of_one_client(contender)
    if any(changed_plans(contender)):
        yield PLANS_SHOWN
    yield f"History: {comparison.history}"


def _curve(curve: Curve) -> Iterator[str]:
    """Return where both curves of a step peak, what a core does there, and how much is lost at the end."""
    for side, shape in zip(("base", "new"), shapes(curve), strict=True):
        if shape is None:
            continue
        text = f"{curve.step}, {side}: peak {amount(shape.peak)} {curve.unit} with {shape.clients} clients"
        text += f", {amount(shape.per_core)} per core"
        less = f"{share(shape.droop)} less" if shape.droop > 0 else "as many"
        end = "" if shape.clients == shape.most else f"; with {shape.most} clients {less}"
        yield text + end


def _connections(contender: ContenderComparison) -> Iterator[str]:
    """Return how the memory of connections was measured, in a session that held any."""
    if connection_costs(contender):
        levels = held_levels(contender)
        rounds = f"{contender.session.round_name}s"
        yield f"KiB per open connection: slope of PSS over {levels} connections, mean of the {rounds}."
        yield "It has page tables, and no shared memory; RSS counts shared pages once per process."


def _same_rows(contender: ContenderComparison) -> Iterator[str]:
    """Return in which steps both versions hold the same rows after the same work, in one line."""
    steps = [step.step for step in contender.steps]
    proved = [step for step in steps if step in contender.same_rows]
    if proved:
        rows = max(contender.same_rows[step] for step in proved)
        others = [step for step in steps if step not in proved]
        missing = f"; not compared: {', '.join(others)}" if others else ""
        where = "every step" if not others else counted(len(proved), "step")
        yield f"The same rows, up to {rows:,}, after the same transactions and a crash in {where}{missing}."


def findings_lines(steps: Sequence[StepComparison]) -> list[str]:
    """Return what is certain beside the verdicts on steps, what is worse first.

    Metrics that moved the same way in a step share a line; every other finding has one.
    """
    found = sorted((found for step in steps for found in step.findings), key=lambda found: not found.is_worse)
    faster = {step.step for step in steps if step.judged.verdict is Verdict.IMPROVEMENT}
    leaving = {step.step for step in steps if has_left_more(step.findings)}
    lines: dict[tuple[object, ...], list[str]] = {}
    for number, finding in enumerate(found):
        own = number if finding.source != METRICS_MOVED else None
        end = _ending(finding, is_faster=finding.step in faster, leaves_more=finding.step in leaving)
        lines.setdefault((finding.where, finding.source, finding.bearing, end, own), []).append(finding.text)
    return [f"{where}: {', '.join(texts)}{end}" for (where, _, _, end, _), texts in lines.items()]


def _ending(finding: Finding, *, is_faster: bool, leaves_more: bool) -> str:
    """Return the other half of a trade: what its step gained, or what its reset left undone."""
    if finding.is_worse and is_faster:
        return "; the step is faster"
    if leaves_more and finding.is_worse and finding.metric in RESET_LEFT:
        return "; the reset costs less"
    is_saved = finding.bearing is Bearing.BETTER and finding.metric in RESET_COSTS
    return "; the reset leaves more" if leaves_more and is_saved else ""


def unknown_lines(contender: ContenderComparison, *, costs: bool = False) -> Iterator[str]:
    """Return the metrics beside the verdicts that may be worse by more than their threshold, in one line.

    It ends with the option that shows the others, unless their `costs` are shown.
    """
    verdicts = {step.judged.metric for step in contender.steps}
    unknown = [metric for metric in unknown_metrics(contender.steps) if metric.metric not in verdicts]
    if unknown:
        line = may_be_worse(unknown)
        yield f"{line}: --costs" if line.endswith(" more") and not costs else line


def _overhead(contender: ContenderComparison) -> Iterator[str]:
    """Return the overhead of each step of a pair, with its interval, in one line; a faster step has none."""
    texts, faster = [], []
    for overhead in overheads(contender):
        if overhead.is_none:
            faster.append(overhead.step)
            continue
        text = f"{overhead.step} {100 * overhead.value:+.1f} %"
        if overhead.low is not None and overhead.high is not None:
            text += f" ({100 * overhead.low:+.1f} to {100 * overhead.high:+.1f})"
        texts.append(text)
    if faster:
        texts.append(f"none in {', '.join(faster)}, which {'is' if len(faster) == 1 else 'are'} faster")
    if texts:
        yield f"overhead, 1 - new/base: {', '.join(texts)}"


def _base_drift(comparison: Comparison, contender: ContenderComparison) -> Iterator[str]:
    """Note the largest drift of the base, if it is beyond the threshold; pairs cancel most of it."""
    drifts = {step.step: step.base_drift for step in contender.steps if step.base_drift}
    if not drifts:
        return
    step = max(drifts, key=lambda step: abs(math.log(drifts[step])))
    if abs(drifts[step] - 1) > comparison.options.threshold_percent / 100:
        drift = signed_percent(drifts[step] - 1)
        rounds = f"{contender.session.round_name}s"
        yield f"the base drifted by {drift} from the first to the last third of the {rounds} of {step}"


def _measured_again(contender: ContenderComparison) -> Iterator[str]:
    for reason, rounds in by_reason(remeasured_rounds(contender.dropped)).items():
        yield f"measured again, {counted(len(rounds), contender.session.round_name)}: {reason}"


def _set_aside(contender: ContenderComparison) -> Iterator[str]:
    """List the steps whose interval ignores stalled rounds."""
    reached = {step.step: len(step.left_out(contender.session.judged_by)) for step in contender.paired}
    stalled = [
        f"{step.step} {number} of {step.judged.pairs}"
        for step in contender.steps
        if step.judged.interval is not None
        and (number := step.judged.pairs - step.judged.interval.n - reached.get(step.step, 0)) > 0
    ]
    if stalled:
        unit = f"{contender.session.round_name}s" if contender.nights is None else "nights"
        yield f"{unit} far from all others, left out as stalled: {', '.join(stalled)}"


def explained_lines(step: StepComparison) -> Iterator[str]:
    """Return how far costs explain a change of throughput, unless they explain nearly all of it."""
    found, time = step.explanation, step.query_time
    if found is None or found is Explanation.PROFILE:
        return
    change = f"{step.step}: {signed_percent((step.judged.value or 1) - 1)}"
    if time is not None:
        change = f"{step.step}: time per query {signed_percent(time.longer)}"
    parts = [] if time is None else [*_explained_parts(time), *_without_size(step, time)]
    if found is Explanation.UNDECIDED:
        known = f"{', '.join(parts)}; " if parts else ""
        what = "the rest" if time is not None and time.explained else "it"
        unknown = [_with_amounts(cost) for cost in unknown_costs(step.explained_by, step.beside, time)]
        names = " or ".join(filter(None, (", ".join(unknown[:-1]), *unknown[-1:])))
        yield f"{change}: {known}not known whether {what} is due to {names or 'a function'}"
    elif time is None and found is Explanation.NONE:
        yield f"{change}: no cost explains it: perhaps it waited"
    elif time is not None and time.explained_share < EXPLAINED_SHARE:
        rest = f"{_size(time.rest)} is {'waiting' if time.longer > 0 else 'less waiting'}"
        yield f"{change}: {', '.join(parts) or 'no cost explains it'}; {rest}"


def _explained_parts(time: QueryTime) -> list[str]:
    """Return what each cost explains of a change: `server CPU +19 % explains 4 of 14 %`."""
    return [
        f"{label_of(metric)} {signed_percent(own)} explains {_share(part)} of {_size(time.longer)}"
        for metric, (own, part) in time.explained.items()
    ]


def _without_size(step: StepComparison, time: QueryTime) -> Iterator[str]:
    """Yield the costs that moved as the time of a query did, of which no share of it is known."""
    others = [label_of(metric) for metric in step.explained_by or () if metric not in OF_CPU]
    if others:
        yield f"with {', '.join(others)} {'up' if time.longer > 0 else 'down'}"


def _size(share: float) -> str:
    return f"{_share(share)} %"


def _share(share: float) -> str:
    return f"{100 * abs(share):.0f}"


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
    if any(finding.source == STEADINESS for finding in step.findings):
        return
    # A slow drift is no variation: what is told is without the trend where that is known.
    with_trend = any(ratio.metric == DETRENDED and ratio.pairs for ratio in step.metrics)
    varying = {*of_role(Role.VARIATION)} - ({VARIATION} if with_trend else set())
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


def _failures(failures: Sequence[Failure], what: str) -> Iterator[str]:
    """Yield a line for steps that failed in the same rounds for one reason; `what`: a round, or a pass."""
    repetitions: dict[tuple[RunStatus, str, str, str], set[int]] = {}
    for failure in failures:
        key = failure.status, failure.version, failure.gist, failure.step
        repetitions.setdefault(key, set()).update(failure.repetitions)
    groups: dict[tuple[RunStatus, str, str, str], list[str]] = {}
    for (status, version, reason, step), numbers in repetitions.items():
        unit = what if len(numbers) == 1 else f"{what}s"
        groups.setdefault((status, version, f"{unit} {ranges(numbers)}", reason), []).append(step)
    for (status, version, where, reason), steps in groups.items():
        named = ", ".join(steps) if len(steps) <= NAMED_STEPS else counted(len(steps), "step")
        yield f"{status}: {named}, {version}, {where}: {reason}"
