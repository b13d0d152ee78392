"""The charts of a change: its series over nights with its mark, and the same change on every box."""

import htpy as h

from history.changes.repository import Member
from report import addresses
from report.charts.intervals import IntervalRow, interval_figure
from report.charts.nights import ChangeMark, NightChart, NightMark
from report.markup.formats import day, metric_name
from report.markup.parts import section
from report.pages.changes import is_worse, moved
from report.values.catalog import Catalog
from report.values.dossier import Dossier, MemberSeries
from suites.metrics import METRICS, Better


def chart_of(
    one: MemberSeries, dossier: Dossier, catalog: Catalog, root: str, name: str, linked: bool
) -> NightChart:
    """Return the chart of a series of a change."""
    member = one.member
    key = member.key
    box = catalog.clearance.box(key.place.box)
    marks = [
        NightMark(
            point.night.started_at,
            point.night.version,
            point.relative,
            catalog.clearance.text(point.gap),
            f"{root}{addresses.session(catalog.by_id[point.night.session_id].uid)}" if linked else "",
        )
        for point in one.points
    ]
    return NightChart(
        f"{key.step}, {metric_name(key.metric)}, {key.branch} on {box}",
        marks,
        METRICS[key.metric].better if key.metric in METRICS else Better.NEITHER,
        one.visible,
        changes=[change_mark(member, "")],
        notes=[(night.started_at, catalog.clearance.text(text)) for night, text in one.notes],
        name=name,
    )


def change_mark(member: Member, href: str) -> ChangeMark:
    """Return the mark of a change in the chart of one of its series."""
    return ChangeMark(
        member.last_before.started_at,
        member.first_after.started_at,
        member.level_before,
        member.level_after,
        f"{moved(member)}, {day(member.last_before.started_at)} to {day(member.first_after.started_at)}",
        href,
        is_worse(member),
        member.confirmed is not None,
        member.gone.started_at if member.gone else None,
    )


def replication(dossier: Dossier, catalog: Catalog, root: str, linked: bool) -> h.Node:
    """Return the replication strip: the change on every box and step, and the kernel that each box runs."""
    main = dossier.report.main_series
    same = [member for member in dossier.report.change.members if member.key.metric == main.key.metric]
    rows = []
    for member in same[:40]:
        box = catalog.clearance.box(member.key.place.box)
        worse = is_worse(member)
        tone = "plain" if worse is None else "worse" if worse else "better"
        note_text = (
            f"{member.key.place.configuration}; kernel {dossier.kernels.get(member.key.place.box, 'unknown')}"
        )
        address = f"{root}{addresses.machine(box)}" if linked else ""
        rows.append(
            IntervalRow(
                f"{box}: {member.key.step}",
                member.ratio,
                member.ratio_low,
                member.ratio_high,
                tone,
                note_text,
                address,
            )
        )
    boxes = len({member.key.place.box for member in same})
    lead = "One box has it." if boxes == 1 else f"{boxes} boxes have it: it is not one machine's doing."
    return section(
        "Replication: the same change on every box",
        interval_figure(
            rows, f"{metric_name(main.key.metric)}: level after over level before", what="box and step"
        ),
        lead=lead,
    )
