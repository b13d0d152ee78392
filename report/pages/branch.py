"""The page of a branch: a strip of steps by nights and a small chart of each step, for every environment."""

import math
from collections.abc import Sequence

import htpy as h

from history.changes.report import ChangeReport
from history.counts import counted
from report import addresses
from report.charts.nights import NightChart, NightMark, draw
from report.charts.strip import Strip, StripCell, strip_figure
from report.markup.formats import day, metric_name, percent
from report.markup.frame import Page
from report.markup.metrics import described, metric_parts
from report.markup.parts import legend, note, numeric, section, table
from report.pages.changes import CHANGE_HEADS, change_mark, change_rows
from report.values.branch_page import BranchPlace
from report.values.catalog import Catalog
from suites.metrics import METRICS


def branch_page(
    branch: str, places: Sequence[BranchPlace], reports: Sequence[ChangeReport], catalog: Catalog
) -> Page:
    """Return the page of a branch; `reports` are its changes."""
    path = addresses.branch(branch)
    root = addresses.way_to_root(path)
    body: list[h.Node] = []
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
    else:
        body.append(legend())
    nights = [place.matrix.nights[-1].started_at for place in places if place.matrix.nights]
    nights += [
        night.started_at
        for place_nights in catalog.nights_of_branch(branch)
        for night in place_nights.of_branch(branch)[-1:]
    ]
    return Page(path, branch, body, max(nights, default=None), crumbs=(("Branches", addresses.BRANCHES),))


def branches_page(catalog: Catalog) -> Page:
    """Return the list of branches."""
    root = addresses.way_to_root(addresses.BRANCHES)
    rows = []
    for branch in catalog.branches:
        places = catalog.nights_of_branch(branch)
        nights = [night for place in places for night in place.of_branch(branch)]
        last = max(nights, key=lambda night: night.started_at)
        boxes = sorted({catalog.clearance.box(place.place.box) for place in places})
        is_base = all(place.base == branch for place in places)
        rows.append(
            h.tr[
                h.th(scope="row")[h.a(href=f"{root}{addresses.branch(branch)}")[branch]],
                h.td[last.versions[branch]],
                h.td[day(last.started_at)],
                numeric(str(len(nights))),
                h.td[", ".join(sorted({place.place.suite for place in places}))],
                h.td[", ".join(boxes)],
                h.td["base" if is_base else "contender"],
            ]
        )
    heads = ("branch", "latest version", "latest night", "nights", "suites", "boxes", "role")
    body = (
        table(heads, rows, caption="Branches", sortable=True) if rows else note("No night was recorded yet.")
    )
    return Page(addresses.BRANCHES, "Branches", body, catalog.data_until)


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
        f"last {counted(len(drawn.matrix.nights), 'night')}.",
    )


def _strip(branch: str, drawn: BranchPlace, catalog: Catalog, root: str) -> Strip:
    place = catalog.clearance.place(drawn.place)
    nights = [
        (night.started_at, night.version, f"{root}{addresses.session(catalog.by_id[night.session_id].uid)}")
        for night in drawn.matrix.nights
    ]
    rows, links = {}, {}
    for number, (_, step, _) in enumerate(drawn.matrix.series):
        visible = drawn.visible.get(step)
        rows[step] = [_cell(float(ratio), visible) for ratio in drawn.matrix.ratios[number]]
        key = addresses.series_id(
            place.box, place.suite, place.configuration, branch, step, drawn.metric.name
        )
        links[step] = f"{root}{addresses.series(key)}"
    title = f"{branch}, {metric_name(drawn.metric.name)}, {place.suite} on {place.box}"
    return Strip(title, nights, rows, links, drawn.metric.better)


def _cell(ratio: float, visible: float | None) -> StripCell:
    if math.isnan(ratio):
        return StripCell(None, "no value")
    return StripCell(ratio, "", visible is not None and abs(ratio - 1) < visible)


def _multiples(
    branch: str, number: int, drawn: BranchPlace, reports: Sequence[ChangeReport], catalog: Catalog, root: str
) -> h.Node:
    """Return one chart for each step, on the same axes, so that their heights can be compared."""
    known = [float(ratio) for row in drawn.matrix.ratios for ratio in row if not math.isnan(ratio)]
    ends = (min(known), max(known)) if known else ()
    place = catalog.clearance.place(drawn.place)
    charts = []
    for at, (_, step, _) in enumerate(drawn.matrix.series):
        marks = [
            NightMark(
                night.started_at, night.version, None if math.isnan(ratio) else float(ratio), "no value"
            )
            for night, ratio in zip(drawn.matrix.nights, drawn.matrix.ratios[at], strict=True)
        ]
        chart = NightChart(
            f"{step}, {metric_name(drawn.metric.name)}, {branch}",
            marks,
            drawn.metric.better,
            drawn.visible.get(step),
            drawn.threshold,
            changes=[
                change_mark(member, f"{root}{addresses.change(report.change.fingerprint)}")
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
                    h.a(href=f"{root}{addresses.series(key)}")[step], h.span(".last")[f" {percent(last)}"]
                ],
                draw(chart, small=True),
            ]
        )
    return h.div(".multiples")[charts]
