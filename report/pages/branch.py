"""The page of a branch: a strip of steps by nights and a small chart of each step, for every environment."""

import math
from collections.abc import Mapping, Sequence
from datetime import datetime

import htpy as h

from history.changes.report import ChangeReport
from history.counts import counted
from history.series.series import Night
from report import addresses
from report.charts.looks import Look, Sight, look_of
from report.charts.nights import NightChart, NightMark, draw
from report.charts.strip import Strip, StripCell, strip_figure
from report.markup.formats import change_of, day, metric_name
from report.markup.frame import Page
from report.markup.metrics import described, metric_parts
from report.markup.parts import note, numeric, section, table
from report.pages.changes import CHANGE_HEADS, change_mark, change_rows
from report.values.branch_page import BranchPlace, FailingNights
from report.values.catalog import Catalog
from report.values.clearance import Clearance
from suites.metrics import METRICS


def branch_page(
    branch: str, places: Sequence[BranchPlace], reports: Sequence[ChangeReport], catalog: Catalog
) -> Page:
    """Return the page of a branch; `reports` are its changes."""
    path = addresses.branch(branch)
    root = addresses.way_to_root(path)
    body: list[h.Node] = [failure_note(text) for text in failures(places, catalog.clearance)]
    if reports:
        body.append(
            section(
                "Changes",
                table(
                    CHANGE_HEADS,
                    change_rows(reports, catalog.clearance, root),
                    caption="Changes of this branch",
                ),
            )
        )
    by_metric: dict[str, list[h.Node]] = {}
    for number, place in enumerate(places):
        drawn = _place(branch, number, place, reports, catalog, root)
        by_metric.setdefault(place.metric.name, []).append(drawn)
    order = list(METRICS)
    parts = ((METRICS[name], drawn) for name, drawn in by_metric.items())
    body.append(metric_parts(sorted(parts, key=lambda part: (part[0].is_counted, order.index(part[0].name)))))
    if not places:
        body.append(
            note("This branch was never measured against another base: there is nothing relative to show.")
        )
    nights = [place.matrix.nights[-1].started_at for place in places if place.matrix.nights]
    nights += [
        night.started_at
        for place_nights in catalog.nights_of_branch(branch)
        for night in place_nights.of_branch(branch)[-1:]
    ]
    return Page(path, branch, body, max(nights, default=None), crumbs=(("Branches", addresses.BRANCHES),))


def branches_page(catalog: Catalog, failing: Mapping[str, Sequence[str]]) -> Page:
    """Return the list of branches; `failing` are the `failures` of each."""
    root = addresses.way_to_root(addresses.BRANCHES)
    rows = []
    for branch in catalog.branches:
        places = catalog.nights_of_branch(branch)
        nights = [night for place in places for night in place.of_branch(branch)]
        last = max(nights, key=lambda night: night.started_at)
        boxes = sorted({catalog.clearance.box(place.place.box) for place in places})
        counted_nights = sum(map(catalog.is_night, nights))
        role = "base" if not any(branch in place.base_of for place in places) else "contender"
        rows.append(
            h.tr[
                h.th(scope="row")[h.a(href=f"{root}{addresses.branch(branch)}")[branch]],
                h.td[last.versions[branch]],
                h.td[day(last.started_at)],
                numeric(str(counted_nights)),
                h.td[", ".join(sorted({place.place.suite for place in places}))],
                h.td[", ".join(boxes)],
                h.td[role if counted_nights else "calibration"],
                h.td[[failure_note(text) for text in failing.get(branch, ())] or "measured"],
            ]
        )
    heads = ("branch", "latest version", "latest night", "nights", "suites", "boxes", "role", "last night")
    body = (
        table(heads, rows, caption="Branches", sortable=True) if rows else note("No night was recorded yet.")
    )
    trend = h.p[h.a(href=f"{root}{addresses.TREND}")["Trend: the mean of each branch over a year"]]
    return Page(addresses.BRANCHES, "Branches", [trend if rows else None, body], catalog.data_until)


def _place(
    branch: str, number: int, drawn: BranchPlace, reports: Sequence[ChangeReport], catalog: Catalog, root: str
) -> h.Node:
    place = catalog.clearance.place(drawn.place)
    heading = f"{place.suite} on {place.box}"
    if not drawn.matrix.nights or not drawn.matrix.series:
        return section(heading, note(f"No night has a value of {metric_name(drawn.metric.name)} here."))
    return section(
        heading,
        strip_figure(_strip(branch, drawn, catalog, root)),
        _multiples(branch, number, drawn, reports, catalog, root),
        id_=addresses.anchor(f"{place.suite}-{place.box}-{place.configuration}-{drawn.metric.name}"),
        lead=f"{place.configuration}; {described(drawn.metric)}, relative to {drawn.base} in the same night, "
        f"last {counted(len(drawn.matrix.nights) + len(drawn.failed), 'night')}"
        f"{f', {len(drawn.missed)} missing' if drawn.missed else ''}.",
    )


def failures(places: Sequence[BranchPlace], clearance: Clearance) -> list[str]:
    """Return in which environments a branch fails, since when and why: one sentence for each."""
    found = {drawn.place: drawn.failing for drawn in places if drawn.failing is not None}
    return [
        f"{place.suite} on {place.box}: {_failed(failing, clearance)}"
        for place, failing in ((clearance.place(place), failing) for place, failing in found.items())
    ]


def _failed(failing: FailingNights, clearance: Clearance) -> str:
    """Return how long a branch has failed, and why."""
    since = f"failed in its last night, {day(failing.since)}"
    if failing.nights > 1:
        since = f"failed {failing.nights} nights in a row, since {day(failing.since)}"
    return f"{since}: {clearance.text(failing.reason)}"


def failure_note(text: str) -> h.Node:
    """Return a sentence of `failures` with its sign."""
    return note(h.span(aria_hidden="true")[f"{Look.FAILED.value} "], text, kind="failed")


def _strip(branch: str, drawn: BranchPlace, catalog: Catalog, root: str) -> Strip:
    place = catalog.clearance.place(drawn.place)
    columns: list[tuple[datetime, str, str, int | None]] = [
        (night.started_at, night.version, _session(night, catalog, root), at)
        for at, night in enumerate(drawn.matrix.nights)
    ]
    columns += [(when, "", "", None) for when in drawn.missed]
    columns += [
        (
            session.entry.started_at,
            session.versions[branch],
            f"{root}{addresses.session(session.entry.uid)}",
            None,
        )
        for session in drawn.failed
    ]
    columns.sort(key=lambda column: column[0])
    failed = {
        session.entry.started_at: catalog.clearance.text(session.reasons[branch]) for session in drawn.failed
    }
    rows, links = {}, {}
    for number, (_, step, _) in enumerate(drawn.matrix.series):
        rows[step] = [
            _cell(drawn, number, step, at, catalog)
            if at is not None
            else StripCell(None, Look.FAILED if when in failed else Look.MISSING, failed.get(when, ""))
            for when, _, _, at in columns
        ]
        key = addresses.series_id(
            place.box, place.suite, place.configuration, branch, step, drawn.metric.name
        )
        links[step] = f"{root}{addresses.series(key)}"
    title = f"{branch}, {metric_name(drawn.metric.name)}, {place.suite} on {place.box}"
    nights = [(when, version, href) for when, version, href, _ in columns]
    return Strip(title, nights, rows, links, drawn.metric.better, drawn.threshold)


def _session(night: Night, catalog: Catalog, root: str) -> str:
    return f"{root}{addresses.session(catalog.by_id[night.session_id].uid)}"


def _cell(drawn: BranchPlace, number: int, step: str, at: int, catalog: Catalog) -> StripCell:
    mark = _mark(drawn, number, step, at, catalog)
    sight = Sight(drawn.metric.better, drawn.threshold, drawn.visible.get(step), mark.is_open, mark.interval)
    return StripCell(mark.ratio, look_of(mark.ratio, mark.gap, sight), mark.gap)


def _mark(drawn: BranchPlace, number: int, step: str, at: int, catalog: Catalog) -> NightMark:
    """Return a step in a night, by their places in the matrix."""
    night, found = drawn.matrix.nights[at], float(drawn.matrix.ratios[number][at])
    key = night.session_id, step
    low, high, is_open = drawn.intervals.get(key, (None, None, None))
    return NightMark(
        night.started_at,
        night.version,
        None if math.isnan(found) else found,
        catalog.clearance.text(drawn.reasons.get(key, "")) if math.isnan(found) else "",
        interval=(low, high) if low is not None and high is not None else None,
        is_open=is_open,
    )


def _multiples(
    branch: str, number: int, drawn: BranchPlace, reports: Sequence[ChangeReport], catalog: Catalog, root: str
) -> h.Node:
    """Return one chart for each step, on the same axes, so that their heights can be compared."""
    known = [float(ratio) for row in drawn.matrix.ratios for ratio in row if not math.isnan(ratio)]
    ends = (min(known), max(known)) if known else ()
    place, nights = catalog.clearance.place(drawn.place), drawn.matrix.nights
    charts = []
    for at, (_, step, _) in enumerate(drawn.matrix.series):
        marks = [_mark(drawn, at, step, index, catalog) for index in range(len(nights))]
        chart = NightChart(
            f"{step}, {metric_name(drawn.metric.name)}, {branch}",
            marks,
            drawn.metric.better,
            drawn.visible.get(step),
            drawn.threshold,
            changes=[
                change_mark(member, report.change, f"{root}{addresses.change(report.change.fingerprint)}")
                for report in reports
                for member in report.change.members
                if member.key.environment == drawn.place
                and member.key.step == step
                and member.key.metric == drawn.metric.name
                and member.first_after.started_at >= marks[0].when
            ],
            name=f"p{number}-{at}",
            y_values=ends,
        )
        last = next((mark.ratio for mark in reversed(marks) if mark.ratio is not None), None)
        key = addresses.series_id(
            place.box, place.suite, place.configuration, branch, step, drawn.metric.name
        )
        charts.append(
            h.figure[
                h.figcaption[
                    h.a(href=f"{root}{addresses.series(key)}")[step], h.span(".last")[f" {change_of(last)}"]
                ],
                draw(chart, small=True),
            ]
        )
    return h.div(".multiples")[charts]
