"""The summary of a night as Markdown, from what was measured, detected and compared."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

from build.errors import TidemarkError
from build.version import Version
from history.changes.confirmation import Confirmation, ConfirmationRequest
from history.changes.report import ChangeReport
from history.comparison.verdict import MetricChange, verdict_of
from history.counts import counted
from history.escaping.markdown import Markdown, document, joined, md
from history.rendering.changes import (
    box_note_lines,
    interval,
    measurement,
    occasion,
    owners_text,
    series_name,
)
from history.rendering.summary import render_summary
from history.series.task_states import TaskOutcome
from history.store.records import ChangeStatus, FailureCause
from runners.nightly.confirm import ExaminedSuspicion
from runners.nightly.night_result import NightResult, explained
from runners.nightly.past.backfill import BackfillResult
from runners.nightly.report import NightReport, SessionComparison
from suites.metrics import METRICS, PRIMARY, Better

LONGEST_REASON = 600
"""The most characters of a reason that is shown in full."""


def summary(
    night: NightResult | None,
    report: NightReport | None,
    compared: Iterable[SessionComparison],
    when: datetime,
) -> Markdown:
    """Markdown for a job's summary and for the output folder.

    `night` is None where nothing was measured, `report` where nothing was reported; `compared` are the
    comparisons of the night's sessions, or why there is none.
    """
    lines: list[str] = [md("## Night of {:%Y-%m-%d}", when), ""]
    if night is not None:
        lines += [md("Box {}: {}.", night.box, night.outcome), ""]
        lines += [*_missing(night), ""] if night.missing else []
    if report is not None:
        lines += [*_changes(report), ""]
    if night is not None and night.past is not None:
        lines += [*_past(night.past), ""]
    if night is not None and (night.examined or night.postponed):
        lines += [*_suspicions(night), ""]
    problems = [*(night.problems if night else []), *(report.problems if report else [])]
    lines += [md("- {}", problem) for problem in problems]
    if night is not None and night.releases:
        lines += ["", md("Releases: {}.", "; ".join(night.releases))]
    if night is not None and night.pruned is not None and str(night.pruned):
        lines += ["", md("Disk: {}.", night.pruned)]
    if night is not None:
        lines += ["", *map(_session, compared)]
    return document(lines)


def _missing(night: NightResult) -> Iterator[Markdown]:
    """Why what was to be measured was not, in full; those with the same reason are one item."""
    names: defaultdict[tuple[TaskOutcome, str], list[str]] = defaultdict(list)
    for target in night.missing:
        names[target.outcome, target.reason].append(f"{target.name}, {target.place}")
    for (outcome, reason), several in names.items():
        yield md("- {}: {}", "; ".join(several), explained(outcome, reason, LONGEST_REASON))


def _changes(report: NightReport) -> Iterator[str]:
    yield (
        f"{report.series} series: {counted(len(report.new), 'new change')}, {len(report.reopened)} back, "
        f"{len(report.closed)} gone, {report.open} open{_of_them_muted(report)}."
    )
    for heading, changes in (("new", report.new), ("back", report.reopened), ("gone", report.closed)):
        yield from (md("- {}: {}", heading, _change(change)) for change in changes)
    yield from _muted(report.muted)
    yield from (md("- {}", notice) for notice in report.notices)
    yield from _explained(report.explained)
    yield from (md("- machine: {}", line) for line in box_note_lines(report.notes))
    delivered = report.delivered
    if delivered is not None:
        yield (
            f"Issues: {len(delivered.created)} opened, {len(delivered.updated)} updated, "
            f"{len(delivered.closed)} closed, {len(delivered.muted)} silenced, "
            f"{delivered.waiting} waiting."
        )


def _of_them_muted(report: NightReport) -> str:
    return f", {len(report.muted)} of them muted" if report.muted else ""


def _muted(reports: Iterable[ChangeReport]) -> Iterator[Markdown]:
    """What the plan mutes: an item for each mute, with its end and its reason."""
    by_mute: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for report in reports:
        change, muting = report.change, report.change.muting
        assert muting is not None
        what = f"{change.branch}: {report.headline} ({change.fingerprint})"
        by_mute[str(muting.until), muting.reason].append(what)
    for (until, reason), changes in by_mute.items():
        number = counted(len(changes), "change")
        yield md("- {} muted until {} ({}): {}", number, until, reason, "; ".join(changes))


def _explained(reports: Iterable[ChangeReport]) -> Iterator[Markdown]:
    """What something else explains: what a box did shows in many branches and suites, and is one item."""
    by_reason: defaultdict[str, list[str]] = defaultdict(list)
    for report in reports:
        by_reason[report.change.reason or ""].append(_change(report))
    for reason, changes in by_reason.items():
        yield md("- explained, not alerted: {}: {}", "; ".join(changes), reason)


def _change(report: ChangeReport) -> str:
    change = report.change
    against = f" against {report.base}" if report.base else ""
    line = f"{change.direction.phrase}, {change.branch}{against}: {report.headline} ({change.fingerprint})"
    if change.owners:
        line = f"{line}, {owners_text(change.owners)}"
    if change.muting is not None and change.status is ChangeStatus.OPEN and not change.is_muted:
        line = f"{line}, {change.muting}"
    if report.confirmation is None:
        return line
    return f"{line}, {occasion(report.confirmation)}: {measurement(report.confirmation)}"


def _past(past: BackfillResult) -> Iterator[Markdown]:
    """How far the series of past commits are filled, and what was found between two of them."""
    for place, how_far, is_unfinished in past.state:
        lost = f", {how_far.in_vain} of which cannot be measured" if how_far.in_vain else ""
        left = "to be continued" if is_unfinished else "nothing is left to do"
        filled = f"{how_far.filled} of {how_far.dates} dates have a point{lost}"
        yield md("- past commits of {}: {}; widest gap {} days; {}", place, filled, how_far.widest.days, left)
    for version, why in past.in_vain.items():
        yield md("- left out: {}: {}", version, why)
    for version, why in past.left_open.items():
        yield md("- left out, and tried again by the next run: {}: {}", version, why)
    yield from _examined(past.examined)


def _suspicions(night: NightResult) -> Iterator[Markdown]:
    """What looked changed, and what rounds of its own showed."""
    yield from _examined(night.examined)
    yield from (md("- skipped: {}: {}", night.why_skipped, suspicion) for suspicion in night.postponed)


def _examined(several: Iterable[ExaminedSuspicion]) -> Iterator[Markdown]:
    for examined in several:
        yield md("- looked into: {}", examined.suspicion)
        for version, why in examined.outcome.not_built.items():
            is_open = why.cause is FailureCause.MACHINE
            later = "the next night tries again" if is_open else "only later nights can show it"
            yield md("  - {}", f"{version} could not be built, so that {later}: {why}")
        yield from (md("  - {}", why) for why in examined.outcome.failures)
        for finding in examined.findings:
            if finding.key.metric == PRIMARY or finding.is_step or finding.is_return:
                measured = f"{series_name(finding)}: {interval(finding)}, {finding.rounds} rounds"
                yield md("  - {}: {}", measured, _finding(finding))


def _finding(confirmation: Confirmation) -> str:
    if confirmation.question is ConfirmationRequest.GONE:
        return "gone" if confirmation.is_return else "not surely gone"
    if confirmation.is_step:
        better = METRICS[confirmation.key.metric].better
        return (
            f"confirmed: {verdict_of(confirmation.finding, better)}"
            if better is not Better.NEITHER
            else "confirmed"
        )
    return "no change" if confirmation.finding is MetricChange.SAME else "not confirmed"


def _session(compared: SessionComparison) -> Markdown:
    """The comparison of a session below the branches that it measured."""
    request, task = compared.session.request, compared.session.task
    names = {version: _shown(version, request.branches) for version in compared.versions}
    sides = f"{', '.join(names.values())} against {request.versions[0]}"
    heading = md("### {}, {} {}\n", sides, task.suite, task.profile)
    if isinstance(compared.found, TidemarkError):
        return joined([heading, md("- {}", compared.found)])
    return joined([heading, render_summary(compared.found, names)])


def _shown(version: Version, branches: Mapping[str, str]) -> str:
    """A version as people know it: a tip by its branch, with the commit; a release by itself."""
    branch = branches.get(str(version))
    if branch is None or version.is_release:
        return str(version)
    return f"{branch} ({version.ref.removeprefix('git:')})"
