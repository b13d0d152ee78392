"""Where the numbers of a table come from: session or nights, intervals, thresholds, calibration."""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime

from build.progress import in_words
from history.comparison.exact import MAX_PASSES, exact_rule, is_exact
from history.comparison.result import Comparison, ContenderComparison, Nights
from history.counts import counted
from history.rendering.commands import as_released, calibrate_again, said
from history.stats.repeated_intervals import VISIBLE_PROBABILITY
from suites.metrics import INSTRUCTIONS, PRIMARY, Better, Role

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
