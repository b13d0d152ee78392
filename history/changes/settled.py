"""What was confirmed in its own night, for the judge: shifts and returns that need not be looked for."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from history.changes.confirmation import Confirmation, latest_by_nights
from history.changes.level_shift import Return, Shift
from history.series.matrix import Panel
from history.stats.change_points import Known

WHOLE_NIGHTS = 60
"""Nights at the beginning of what is looked back on in which the watch may not find again what it found: of
those, what is remembered of a change counts, and what was confirmed neither."""


@dataclass(frozen=True)
class KnownShifts:
    """What was confirmed in the series of a panel."""

    events: tuple[Shift | Return, ...]
    """In the order of the nights."""

    known: tuple[Known, ...]
    """The same as levels, for the watch."""


def settled(panel: Panel, confirmed: Iterable[Confirmation], looked_back: int) -> KnownShifts:
    """What was confirmed in a panel's series, in nights that the panel has.

    `looked_back` are the nights that a panel has at most: a full one has lost its past.
    """
    row = {series_id: number for number, (series_id, _, _) in enumerate(panel.series)}
    column = {night.session_id: number for number, night in enumerate(panel.nights)}
    first = WHOLE_NIGHTS if len(panel.nights) >= looked_back else 0
    its = [
        each
        for each in latest_by_nights(list(confirmed))
        if each.series_id in row
        and column.get(each.after.session_id, -1) >= first
        and (each.is_step or each.is_return)
    ]
    return KnownShifts(
        tuple(_shift(each) if each.is_step else _return(each) for each in its),
        tuple(
            Known(row[each.series_id], column[each.after.session_id], math.log(each.level_after))
            for each in its
        ),
    )


def without_known(found: Iterable[Shift], confirmed: Sequence[Shift | Return]) -> list[Shift]:
    """The shifts that are not one which was confirmed, as the watch saw it too."""
    steps = [each for each in confirmed if isinstance(each, Shift)]
    return [
        shift
        for shift in found
        if not any(
            each.series_id == shift.series_id and each.overlaps(shift) and each.log_size * shift.log_size > 0
            for each in steps
        )
    ]


def _shift(each: Confirmation) -> Shift:
    return Shift(
        each.series_id,
        each.key.place,
        each.key.branch,
        each.key.step,
        each.key.metric,
        last_before=each.before,
        first_after=each.after,
        raised=each.after,
        before=each.level_before,
        after=each.level_after,
        low=each.low,
        high=each.high,
        confidence=each.confidence,
        confirmed=True,
    )


def _return(each: Confirmation) -> Return:
    return Return(each.series_id, each.before, each.after)
