"""The first page: how old the data is, what is open, how each branch stands."""

from collections.abc import Mapping, Sequence

import htpy as h

from history.changes.level_shift import Direction
from history.changes.report import ChangeReport
from history.comparison.verdict import Verdict
from history.counts import counted
from history.store.records import ChangeStatus
from report import addresses
from report.markup.formats import day, metric_name, moment, percent
from report.markup.frame import Page
from report.markup.parts import Heat, commands, facts, heat_cell, legend, note, numeric, section, stat, table
from report.pages.changes import CHANGE_HEADS, change_rows
from report.values.catalog import Catalog
from report.values.overview import BoxState, LatestComparison

SHOWN_CHANGES = 12


def index_page(
    catalog: Catalog,
    reports: Sequence[ChangeReport],
    latest: Sequence[LatestComparison],
    boxes: Sequence[BoxState],
) -> Page:
    """Return the overview."""
    body: h.Node = _empty() if not catalog.sessions else _overview(catalog, reports, latest, boxes)
    return Page(addresses.INDEX, "Overview", body, catalog.data_until)


def _empty() -> h.Node:
    return [
        note("This history is empty: nothing was measured yet."),
        commands(
            ["./tidemark demo", "./tidemark run postgres@17.11 postgres@18.6", "./tidemark report"],
            "To fill it",
        ),
    ]


def _overview(
    catalog: Catalog,
    reports: Sequence[ChangeReport],
    latest: Sequence[LatestComparison],
    boxes: Sequence[BoxState],
) -> h.Node:
    opened = [report for report in reports if report.change.status is ChangeStatus.OPEN]
    undecided, steps = (
        sum(entry.undecided for entry in latest),
        sum(len(entry.comparison.steps) for entry in latest),
    )
    worse = sum(open_report.change.direction is Direction.REGRESSION for open_report in opened)
    return [
        h.ul(".stats")[
            stat(
                str(len(opened)),
                f"open {'change' if len(opened) == 1 else 'changes'}, {counted(worse, 'regression')}",
                "worse" if worse else "",
                addresses.CHANGES,
            ),
            stat(
                f"{undecided}/{steps}", "steps undecided in the latest sessions", "open" if undecided else ""
            ),
            stat(str(len(catalog.branches)), "branches", "", addresses.BRANCHES),
            stat(f"{len(catalog.sessions)}", "sessions", "", addresses.SESSIONS),
            stat(day(catalog.data_until) if catalog.data_until else "–", "data up to (UTC)"),
        ],
        section("Open changes", _changes(opened, catalog)),
        section("Branches in their latest session", _branches(latest, catalog)),
        section("Boxes", _boxes(boxes, catalog)),
    ]


def _changes(opened: Sequence[ChangeReport], catalog: Catalog) -> h.Node:
    if not opened:
        return note("No change is open.")
    shown = sorted(opened, key=lambda report: report.change.found_at, reverse=True)[:SHOWN_CHANGES]
    more = len(opened) - len(shown)
    return [
        table(CHANGE_HEADS, change_rows(shown, catalog.clearance, ""), caption="Open changes, latest first"),
        h.p[h.a(href=addresses.CHANGES)[f"and {more} more"]] if more else None,
    ]


def _branches(latest: Sequence[LatestComparison], catalog: Catalog) -> h.Node:
    if not latest:
        return note("No session has both a base and another version yet, or their rounds were pruned.")
    rows = []
    for entry in latest:
        place = catalog.clearance.place(entry.place)
        steps = entry.comparison.steps
        ladder, mean = addresses.ladder(place.suite, place.box, place.configuration), entry.mean
        rows.append(
            h.tr[
                h.th(scope="row")[
                    h.a(href=f"{addresses.branch(entry.branch)}#metric={entry.metric.name}")[entry.branch]
                ],
                h.td[h.a(href=f"{ladder}#metric={entry.metric.name}")[place.suite]],
                h.td[place.box],
                h.td[entry.night.versions[entry.night.base or ""]],
                h.td[metric_name(entry.metric.name)],
                heat_cell(Heat(mean, None, entry.metric.better, reason="geometric mean of all steps")),
                numeric(percent(mean)),
                [
                    numeric(str(_count(entry, verdict)) or "–")
                    for verdict in (Verdict.REGRESSION, Verdict.IMPROVEMENT, Verdict.UNCHANGED)
                ],
                h.td(class_="n" + (" open-text" if entry.undecided else ""))[
                    f"{entry.undecided} of {len(steps)}"
                ],
                h.td[h.a(href=addresses.session(entry.night.uid))[moment(entry.night.started_at)]],
            ]
        )
    heads = (
        "branch",
        "suite",
        "box",
        "against",
        "metric",
        "mean",
        "change",
        "worse",
        "better",
        "same",
        "undecided",
        "session",
    )
    return [table(heads, rows, caption="Each branch against its base", sortable=True), legend()]


def _count(comparison: LatestComparison, verdict: Verdict) -> int:
    return sum(step.judged.verdict is verdict for step in comparison.comparison.steps)


def _boxes(boxes: Sequence[BoxState], catalog: Catalog) -> h.Node:
    rows = [
        h.tr[
            h.th(scope="row")[
                h.a(href=addresses.machine(catalog.clearance.box(box.box)))[catalog.clearance.box(box.box)]
            ],
            h.td[h.a(href=addresses.session(box.uid))[moment(box.started_at)]],
            h.td[_failures(box.failures, catalog)],
        ]
        for box in boxes
    ]
    return table(("box", "latest session", "what it lacks"), rows, caption="The latest session of each box")


def _failures(failures: Mapping[str, str], catalog: Catalog) -> h.Node:
    if not failures:
        return "nothing"
    return h.details[
        h.summary[counted(len(failures), "failure")],
        facts((where, catalog.clearance.text(why)) for where, why in failures.items()),
    ]
