"""What confirmations say against a shift: two commits measured side by side bound every step between them.

A confirmation holds whatever it found. Where its interval has no room for a shift, the shift did not happen
between its two commits: if the shift's nights lie within them, it is refuted; if only some do, the others are
named.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from history.changes.confirmation.request import ConfirmationRequest
from history.changes.confirmation.store import Confirmation
from history.changes.level_shift import Shift
from history.comparison.verdict import MetricChange


def weighed(shifts: Iterable[Shift], confirmed: Iterable[Confirmation]) -> list[Shift]:
    """Return the shifts with the nights that confirmations leave to each; those left none are `refuted`.

    A confirmed shift is returned as it is. A confirmation says nothing about a shift that another one of the
    series followed before its later commit: it measured both together.
    """
    by_series: defaultdict[int, list[Confirmation]] = defaultdict(list)
    for answer in confirmed:
        if answer.question is ConfirmationRequest.NEW:
            by_series[answer.series_id].append(answer)
    all_shifts = list(shifts)
    others: defaultdict[int, list[Shift]] = defaultdict(list)
    for shift in all_shifts:
        others[shift.series_id].append(shift)
    return [_weighed(shift, by_series, others[shift.series_id]) for shift in all_shifts]


def _weighed(shift: Shift, by_series: Mapping[int, Sequence[Confirmation]], others: Sequence[Shift]) -> Shift:
    if shift.confirmed:
        return shift
    against = [
        answer
        for answer in by_series.get(shift.series_id, ())
        if _excludes(answer, shift) and not _holds_another(answer, shift, others)
    ]
    left = shift
    for _ in against:  # what one leaves may lie within another
        for answer in against:
            if _is_within(left, answer):
                interval = f"({answer.low:.3f} to {answer.high:.3f})"
                why = f"measured side by side as {answer.ratio:.3f} times {interval}"
                return replace(shift, refuted=f"{why}: {answer.before.version} and {answer.after.version}")
            left = _without(left, answer)
    return left


def _excludes(confirmation: Confirmation, shift: Shift) -> bool:
    """Return whether the interval of a confirmation has no room for the size of a shift.

    For commits found the same, the estimate of the size counts; for undecided ones also its interval.
    """
    if confirmation.finding is MetricChange.SAME:
        return not confirmation.low <= math.exp(shift.log_size) <= confirmation.high
    return shift.high < confirmation.low or confirmation.high < shift.low


def _holds_another(confirmation: Confirmation, shift: Shift, others: Sequence[Shift]) -> bool:
    begin, end = confirmation.before.started_at, confirmation.after.started_at
    return any(
        other is not shift
        and other.last_before.started_at < end
        and begin < other.first_after.started_at
        and not other.overlaps(shift)
        for other in others
    )


def _is_within(shift: Shift, confirmation: Confirmation) -> bool:
    return (
        confirmation.before.started_at <= shift.last_before.started_at
        and shift.first_after.started_at <= confirmation.after.started_at
    )


def _without(shift: Shift, confirmation: Confirmation) -> Shift:
    """Return a shift without those of its nights, at either end, that a confirmation excludes."""
    begin, end = confirmation.before.started_at, confirmation.after.started_at
    if begin <= shift.last_before.started_at < end < shift.first_after.started_at:
        return replace(shift, last_before=confirmation.after)
    if shift.last_before.started_at < begin < shift.first_after.started_at <= end:
        return replace(shift, first_after=confirmation.before)
    return shift
