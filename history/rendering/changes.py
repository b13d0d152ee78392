"""Changes as text and as JSON, and notes on boxes as text."""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from itertools import groupby
from typing import Any

from history.changes.acknowledgements import Acknowledgement
from history.changes.boxes.notes import BoxNote, NoiseChange, SharedNight
from history.changes.boxes.shared_steps import NEARBY, SharedStep
from history.changes.confirmation import Confirmation
from history.changes.level_shift import Course, Direction
from history.changes.report import ChangeReport
from history.changes.repository import Member
from history.changes.stored_rules import Muting, Owner
from history.counts import counted
from history.metric_words import label_of
from history.numbers import change_text, rounded
from history.series.series import SHOWN_DIGITS
from history.store.records import ChangeStatus

SHOWN_SERIES = 4
"""The series of a change that the text lists; JSON has all."""

CERTAIN = 0.999
"""A higher confidence is shown as `over` this."""

SHOWN_NIGHTS = 5
"""The shared nights of a metric that are listed; of more the latest."""


def render_changes(reports: Sequence[ChangeReport]) -> Iterator[str]:
    """Yield a few lines for each change."""
    return (line for report in reports for line in _lines(report))


def changes_json(reports: Sequence[ChangeReport]) -> list[dict[str, Any]]:
    """Return all properties of each change."""
    return [_json(report) for report in reports]


def _lines(report: ChangeReport) -> Iterator[str]:
    change = report.change
    against = f" against {report.base}" if report.base else ""
    muted = ", muted," if change.is_muted else ""
    head = f"{change.fingerprint}  {change.status}{muted} {change.direction.phrase}, {change.branch}{against}"
    yield f"{head}, {change.suite}"
    if change.direction is Direction.MIXED or report.course is not Course.STEP:
        yield f"    {report.headline}"
    yield f"    {_range(report)}; found {change.found_at:%Y-%m-%d}"
    if change.reason and not (change.status is ChangeStatus.ACKNOWLEDGED and change.acknowledgements):
        yield f"    {change.reason}"
    yield from (f"    {event}" for event in change.acknowledgements)
    if change.muting is not None:
        yield f"    {change.muting}"
    if change.owners:
        rules = dict.fromkeys(owner.rule for owner in change.owners)
        yield f"    {owners_text(change.owners)}, by {' and '.join(rules)}"
    confirmed = report.confirmation
    if confirmed is not None:
        yield f"    {occasion(confirmed)}, {series_name(confirmed)}: {measurement(confirmed)}"
    for member in report.members[:SHOWN_SERIES]:
        yield f"    {_member(member)}"
    more = len(change.members) - SHOWN_SERIES
    if more > 0:
        yield f"    and {more} more series"
    yield ""


def owners_text(owners: Sequence[Owner]) -> str:
    """Return whose a change is: `owners: alice (assignee), org/storage`."""
    named = (f"{owner.account} (assignee)" if owner.is_assignee else owner.account for owner in owners)
    return f"{'owner' if len(owners) == 1 else 'owners'}: {', '.join(named)}"


def _range(report: ChangeReport) -> str:
    before, after = report.change.last_before, report.change.first_after
    nights = f"between {before.started_at:%Y-%m-%d} and {after.started_at:%Y-%m-%d}"
    measured = [night.measured_at for night in (before, after) if night.measured_at is not None]
    if measured:
        nights += f" (past commits, measured up to {max(measured):%Y-%m-%d})"
    old, new = report.commits
    if old and new:
        return f"{nights}, commits {old[:SHOWN_DIGITS]}..{new[:SHOWN_DIGITS]}"
    return f"{nights}, {before.version} and {after.version}" if before.version != after.version else nights


def _member(member: Member) -> str:
    key = member.key
    name = label_of(key.metric)
    gone = f", gone since {member.gone.started_at:%Y-%m-%d}" if member.gone else ""
    return (
        f"{key.environment.box} ({key.environment.configuration}) {key.step} {name}: "
        f"{change_text(member.ratio, member.ratio_low, member.ratio_high)}, "
        f"confidence {confidence_text(member.confidence)}{gone}"
    )


def confidence_text(value: float) -> str:
    """Return a confidence as text, which is never rounded up to 100 %."""
    return f"over {100 * CERTAIN:.1f} %" if value > CERTAIN else f"{100 * value:.1f} %"


def _json(report: ChangeReport) -> dict[str, Any]:
    change, (old, new) = report.change, report.commits
    return {
        "fingerprint": change.fingerprint,
        "status": change.status,
        "direction": change.direction,
        "headline": report.headline,
        "branch": change.branch,
        "base": report.base,
        "suite": change.suite,
        "reason": change.reason,
        "owners": [vars(owner) for owner in change.owners],
        "muted": _muting_json(change.muting),
        "acknowledgements": [_acknowledgement_json(event) for event in change.acknowledgements],
        "found_at": change.found_at.isoformat(),
        "updated_at": change.updated_at.isoformat(),
        "last_before": {
            "night": change.last_before.started_at.isoformat(),
            "version": change.last_before.version,
            "commit": old,
        },
        "first_after": {
            "night": change.first_after.started_at.isoformat(),
            "version": change.first_after.version,
            "commit": new,
        },
        "series": [_series_json(member) for member in change.members],
    }


def _muting_json(muting: Muting | None) -> dict[str, Any] | None:
    """Return by which mute of the plan nobody is told of a change; None for one that is not muted."""
    if muting is None or not muting.is_in_force:
        return None
    return {
        "rule": muting.rule,
        "reason": muting.reason,
        "until": muting.until.isoformat(),
        "since": muting.muted_at.isoformat(),
    }


def _acknowledgement_json(event: Acknowledgement) -> dict[str, Any]:
    return {
        "kind": event.kind,
        "who": event.who,
        "reason": event.reason,
        "until": event.until and event.until.isoformat(),
        "happened_at": event.happened_at.isoformat(),
    }


def _series_json(member: Member) -> dict[str, Any]:
    key = member.key
    return {
        "box": key.environment.box,
        "configuration": key.environment.configuration,
        "step": key.step,
        "metric": key.metric,
        "level_before": rounded(member.level_before),
        "level_after": rounded(member.level_after),
        "ratio_low": rounded(member.ratio_low),
        "ratio_high": rounded(member.ratio_high),
        "confidence": rounded(member.confidence),
        "last_before": member.last_before.started_at.isoformat(),
        "first_after": member.first_after.started_at.isoformat(),
        "raised": member.raised.started_at.isoformat(),
        "gone": member.gone and member.gone.started_at.isoformat(),
        "confirmed": _confirmed_json(member.confirmed),
        "gone_confirmed": _confirmed_json(member.gone_confirmed),
    }


def _confirmed_json(confirmed: Confirmation | None) -> dict[str, Any] | None:
    """Return the ratio of the new version to the old one in a confirmation; None without one."""
    if confirmed is None:
        return None
    return {
        "session": confirmed.uid,
        "versions": [confirmed.before.version, confirmed.after.version],
        "rounds": confirmed.rounds,
        "ratio": rounded(confirmed.ratio),
        "low": rounded(confirmed.low),
        "high": rounded(confirmed.high),
        "confidence": rounded(confirmed.confidence),
    }


def box_note_lines(notes: Sequence[BoxNote]) -> Iterator[str]:
    """Return a line for each cause of shared steps, change of noise, and metric with shared nights."""
    yield from _shared_steps([note for note in notes if isinstance(note, SharedStep)])
    yield from (_noise(note) for note in notes if isinstance(note, NoiseChange))
    shared = [note for note in notes if isinstance(note, SharedNight)]
    for _, group in groupby(shared, key=lambda note: (note.environment, note.branch, note.metric)):
        yield _shared(list(group))


def _shared_steps(steps: Sequence[SharedStep]) -> Iterator[str]:
    """Yield a line for the steps of about one night, over all boxes and metrics that show them."""
    left = sorted(steps, key=lambda step: step.since.started_at)
    while left:
        first = left[0]
        end = first.since.started_at + timedelta(days=NEARBY + 0.5)
        together = [step for step in left if step.since.started_at <= end and step.what == first.what]
        left = [step for step in left if step not in together]
        yield _together(together)


def _together(steps: Sequence[SharedStep]) -> str:
    boxes = list(dict.fromkeys(step.environment.box for step in steps))
    suites = list(dict.fromkeys(step.environment.suite for step in steps if step.suites == 1))
    within = f" ({suites[0]})" if len(suites) == 1 and all(step.suites == 1 for step in steps) else ""
    by_box = [
        (f"{box} " if len(boxes) > 1 else "")
        + ", ".join(step.amounts for step in steps if step.environment.box == box)
        for box in boxes
    ]
    since = f"{steps[0].since.started_at:%Y-%m-%d}"
    where = f"{'box' if len(boxes) == 1 else 'boxes'} {', '.join(boxes)}{within}"
    return f"{where}: {steps[0].what}, since {since}: {'; '.join(by_box)}; no issue is opened"


def _noise(note: NoiseChange) -> str:
    return (
        f"{_where(note)}: the noise is {note.factor:.1f} times what it was, since "
        f"{note.since.started_at:%Y-%m-%d}, over {note.series} series"
    )


def _shared(notes: Sequence[SharedNight]) -> str:
    listed = ", ".join(
        f"{note.night.started_at:%Y-%m-%d} {100 * note.move:+.1f} %" for note in notes[-SHOWN_NIGHTS:]
    )
    more = f", and {len(notes) - SHOWN_NIGHTS} earlier nights" if len(notes) > SHOWN_NIGHTS else ""
    return f"{_where(notes[0])}: most series of {label_of(notes[0].metric)} moved together: {listed}{more}"


def _where(note: NoiseChange | SharedNight) -> str:
    where = note.environment
    return f"box {where.box} ({where.suite}, {where.configuration}), {note.branch}"


def measurement(confirmed: Confirmation) -> str:
    """Return rounds, versions and result: `7 interleaved rounds, X against Y: -7.1 % (-8.0 to -6.2)`."""
    return (
        f"{counted_rounds(confirmed)}, {confirmed.before.version} against "
        f"{confirmed.after.version}: {interval(confirmed)}"
    )


def occasion(confirmed: Confirmation) -> str:
    """Return when and where: `confirmed the same night`, `replicated on db2`, another box, as of old."""
    if confirmed.replicated_on:
        return f"replicated on {confirmed.replicated_on}"
    return "confirmed the same night"


def counted_rounds(confirmed: Confirmation) -> str:
    """Return what was measured: `7 interleaved rounds`, in long mode `blocks`; `2 counted passes of each`."""
    if confirmed.is_counted:
        return f"{confirmed.rounds} counted passes of each"
    return counted(confirmed.rounds, f"interleaved {confirmed.round_name}")


def interval(confirmed: Confirmation) -> str:
    """Return the change from the old version to the new one: `-7.1 % (-8.0 to -6.2)`."""
    return change_text(confirmed.ratio, confirmed.low, confirmed.high)


def series_name(confirmed: Confirmation) -> str:
    """Return step and metric: `insert qps`."""
    return f"{confirmed.key.step} {label_of(confirmed.key.metric)}"
