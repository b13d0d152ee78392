"""The tables of the overview: each branch in its latest session, and each box."""

from collections.abc import Sequence
from datetime import timedelta

import htpy as h

from history.comparison.verdict import Verdict
from history.counts import counted
from history.numbers import two_decimals
from report import addresses
from report.markup.formats import change_of, moment
from report.markup.metrics import named
from report.markup.parts import legend, note, numeric, table
from report.pages.overview.sentence import box_link, lack_link
from report.values.box_states import BoxState, Lack
from report.values.catalog import Catalog
from report.values.overview import LatestComparison, Overview

MAX_LACKS = 3
"""What a box lacks that its row names; the rest can be opened."""


def branches_table(overview: Overview, catalog: Catalog) -> h.Node:
    """Return each branch against its base, in its latest session of each suite and box."""
    if not overview.latest:
        return note("No session has both a base and another version yet, or their rounds were pruned.")
    rows = []
    for entry in overview.latest:
        place = catalog.clearance.place(entry.place)
        steps = entry.comparison.steps
        base = entry.night.base or ""
        ladder, mean = addresses.ladder(place.suite, place.box, place.configuration, base), entry.mean
        rows.append(
            h.tr[
                h.th(scope="row")[
                    h.a(href=f"{addresses.branch(entry.branch)}#metric={entry.metric.name}")[entry.branch]
                ],
                h.td[h.a(href=f"{ladder}#metric={entry.metric.name}")[place.suite]],
                h.td[place.box],
                h.td[entry.night.versions[base]],
                h.td[named(entry.metric.name)],
                numeric(two_decimals(mean)),
                numeric(change_of(mean)),
                numeric(str(entry.worse)),
                numeric(str(entry.count(Verdict.IMPROVEMENT))),
                numeric(str(entry.count(Verdict.UNCHANGED))),
                h.td(class_="n" + (" open-text" if entry.undecided else ""))[
                    f"{entry.undecided} of {len(steps)}"
                ],
                h.td[
                    h.a(href=addresses.session(entry.night.uid))[moment(entry.night.started_at)],
                    _stale(overview, entry),
                ],
            ]
        )
    heads = (
        "branch",
        "suite",
        "box",
        "against",
        "metric",
        "geometric mean",
        "change",
        "worse",
        "better",
        "same",
        "undecided",
        "session",
    )
    return [table(heads, rows, caption="Each branch against its base", sortable=True), legend()]


def _stale(overview: Overview, entry: LatestComparison) -> h.Node:
    """Return how much older than the last night a comparison is; nothing for one of that night."""
    last = overview.last_night
    if last is None or overview.is_of_last_night(entry):
        return None
    return [" ", h.span(".badge.missing")[f"{_age(last - entry.night.started_at)} older"]]


def boxes_table(boxes: Sequence[BoxState], catalog: Catalog) -> h.Node:
    """Return what each box did in its last night or session, how old that is, and what it lacks."""
    newest = max((box.at for box in boxes), default=None)
    rows = [
        h.tr[
            h.th(scope="row")[box_link(box, catalog)],
            h.td[_state(box)],
            h.td[h.a(href=addresses.session(box.uid))[moment(box.at)] if box.uid else moment(box.at)],
            h.td[_age(newest - box.at) if newest is not None else ""],
            h.td[_lacks(box, catalog)],
        ]
        for box in boxes
    ]
    heads = ("box", "state", "last night or session", "older than the newest by", "what it lacks")
    return table(heads, rows, caption="Each box in its last night or session")


def _state(box: BoxState) -> h.Node:
    tone, sign, words = _looks(box)
    return h.span(class_=f"badge {tone}")[h.span(aria_hidden="true")[f"{sign} "], words]


def _looks(box: BoxState) -> tuple[str, str, str]:
    if box.is_retired:
        return "plain", "·", "retired"
    if box.is_missing:
        return "missing", "–", "did not report"
    if box.is_blind:
        return "failed", "✖", f"nothing measured, {counted(box.blind_nights, 'night')}"
    if not box.has_nights:
        return "plain", "·", "has no nights"
    return ("open", "?", "measured in part") if box.lacks else ("same", "=", "measured")


def _age(behind: timedelta) -> str:
    hours = behind // timedelta(hours=1)
    if not behind:
        return "the newest"
    if hours < 1:
        return "under an hour"
    return counted(hours, "hour") if hours < 48 else counted(hours // 24, "day")


def _lacks(box: BoxState, catalog: Catalog) -> h.Node:
    if not box.lacks:
        return "a night" if box.is_missing else "nothing"
    first, rest = box.lacks[:MAX_LACKS], box.lacks[MAX_LACKS:]
    return [
        _lack_list(box, first, catalog),
        h.details[h.summary[f"{len(rest)} more"], _lack_list(box, rest, catalog)] if rest else None,
    ]


def _lack_list(box: BoxState, lacks: Sequence[Lack], catalog: Catalog) -> h.Node:
    return h.ul(".plain-list")[
        (
            h.li[
                lack_link(box, lack, f"{lack.step} of {lack.branch}" if lack.step else lack.branch),
                f": {catalog.clearance.text(lack.reason)}" if lack.reason else None,
            ]
            for lack in lacks
        )
    ]
