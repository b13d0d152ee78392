"""The list of changes, and the sentence that says what a change is."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime

import htpy as h

from history.changes.level_shift import Direction
from history.changes.report import ChangeReport
from history.changes.repository import Change, Member
from history.counts import counted
from history.metric_words import label_of, moved_by
from history.numbers import size_text
from history.series.series import Night, SeriesKey
from history.store.records import ChangeStatus
from report import addresses
from report.charts.intervals import IntervalRow, interval_figure
from report.charts.nights import ChangeMark, NightChart, NightMark
from report.markup.formats import SHORT_HASH, change_of, change_text, day, metric_name, probability, typeset
from report.markup.frame import Page
from report.markup.parts import filtered_by, filters, note, section, stat, table
from report.values.catalog import Catalog
from report.values.change_details import ChangeDetails, MemberSeries
from report.values.clearance import Clearance
from suites.metrics import METRICS, Better

CHANGE_FILTERS = ("status", "kind", "branch", "suite", "box", "metric")
CHANGE_HEADS = ("change", "by", "step", "branch", "between the nights", "suite", "boxes", "status")

_SIGNS = {
    Direction.WORSE: ("worse", "▾"),
    Direction.BETTER: ("better", "▴"),
    Direction.MIXED: ("mixed", "◆"),
    Direction.SHIFT: ("plain", "◇"),
}


def changes_page(reports: Sequence[ChangeReport], clearance: Clearance, until: datetime | None) -> Page:
    """Return the list of all changes, with filters by status."""
    counts = Counter(report.change.status for report in reports)
    root = addresses.way_to_root(addresses.CHANGES)
    ordered = sorted(
        reports,
        key=lambda found: (found.change.status is not ChangeStatus.OPEN, -found.change.found_at.timestamp()),
    )
    body: h.Node = note(
        "No change is recorded: nightly and ./tidemark history judge search nights, and record what they "
        "find; ./tidemark history change-points shows what a search would find."
    )
    if reports:
        body = [
            h.ul(".stats")[(stat(str(counts[status]), str(status)) for status in ChangeStatus)],
            filters("changes", CHANGE_FILTERS),
            table(
                CHANGE_HEADS,
                change_rows(ordered, clearance, root),
                caption="Changes, open ones first",
                sortable=True,
                class_="filtered",
            ),
        ]
    return Page(addresses.CHANGES, "Changes", body, until)


def change_rows(reports: Sequence[ChangeReport], clearance: Clearance, root: str) -> Iterator[h.Node]:
    """Yield a row for each change."""
    for report in reports:
        change, main = report.change, report.main_series
        boxes = sorted({clearance.box(member.key.environment.box) for member in change.members})
        attributes = filtered_by(
            status=str(change.status),
            kind=str(change.direction),
            branch=change.branch,
            suite=change.suite,
            box=boxes,
            metric=(label_of(member.key.metric) for member in change.members),
            day=day(change.first_after.started_at),
        )
        yield h.tr(attributes)[
            h.th(scope="row")[
                h.a(href=f"{root}{addresses.change(change.fingerprint)}")[
                    direction_sign(change.direction), " ", change.fingerprint[:12]
                ]
            ],
            h.td(".n")[f"{change_of(main.ratio)} ", h.span(".quiet")[label_of(main.key.metric)]],
            h.td(title=", ".join(sorted({member.key.step for member in change.members})))[headline(report)],
            h.td[h.a(href=f"{root}{addresses.branch(change.branch)}")[change.branch]],
            h.td[f"{day(change.last_before.started_at)} to {day(change.first_after.started_at)}"],
            h.td[change.suite],
            h.td[", ".join(boxes)],
            h.td[
                h.span(class_=f"badge status-{change.status}")[str(change.status)],
                _decision(change, clearance),
            ],
        ]


def _decision(change: Change, clearance: Clearance) -> h.Node:
    """Who acknowledged a change or what mutes it, why and until when; None if nobody and nothing does."""
    if change.is_muted and change.muting is not None:
        return h.span(".quiet")[f" {clearance.muting(change.muting)}"]
    if change.status is not ChangeStatus.ACKNOWLEDGED or not change.acknowledgements:
        return None
    said = str(clearance.acknowledgement(change.acknowledgements[-1]))
    return h.span(".quiet")[f" {said.removeprefix('acknowledged ')}"]


def direction_sign(direction: Direction) -> h.Node:
    """Return the coloured sign of a change, with its word for readers without eyes or colours."""
    class_, sign = _SIGNS[direction]
    return [h.span(class_=f"sign {class_}", aria_hidden="true")[sign], h.span(".hidden")[str(direction)]]


def headline(report: ChangeReport) -> str:
    """Return what a change is: `insert and 3 more 12.3 % slower`."""
    return typeset(report.headline)


def moved(member: Member) -> str:
    """Return how a series moved: `12.3 % slower`, `4.5 % more CPU time`."""
    return f"{size_text(member.ratio)} {moved_by(member.key.metric, member.ratio)}"


def is_worse(member: Member) -> bool | None:
    """Return whether a series got worse; None for a metric without a better direction."""
    better = METRICS[member.key.metric].better if member.key.metric in METRICS else Better.NEITHER
    return None if better is Better.NEITHER else better.gain(member.ratio - 1) < 0


def change_sentence(report: ChangeReport, clearance: Clearance) -> str:
    """Return one sentence with what changed, by how much where most, and between which nights."""
    change, main = report.change, report.main_series
    sure = confidence(main.confidence)
    nights = (
        f"between the nights of {day(change.last_before.started_at)} and {day(change.first_after.started_at)}"
    )
    steps = len({member.key.step for member in change.members})
    boxes = len({member.key.environment.box for member in change.members})
    against = f" against {report.base}" if report.base else ""
    where = f"{counted(steps, 'step')} on {counted(boxes, 'box')}"
    size = change_text(main.ratio, main.ratio_low, main.ratio_high)
    return (
        f"{change.branch}{against}: {headline(report)} {nights}. {_kind_of(report)}"
        f"{size} in {series_name(main.key, clearance)}, confidence {sure}; it shows in "
        f"{counted(len(change.members), 'series', 'series')}, {where}."
    )


def _kind_of(report: ChangeReport) -> str:
    """Return what a change with series in both directions is, and how many are on each side."""
    if report.change.direction is not Direction.MIXED:
        return ""
    sides = (len(report.change.leading), len(report.change.opposite))
    worse, better = (counted(count, "series", "series") for count in sides)
    return f"A trade: {worse} for the worse, {better} for the better. "


def series_name(key: SeriesKey, clearance: Clearance) -> str:
    """Return the metric, step, suite and box of a series: `qps of insert, write-heavy on db1`."""
    place = clearance.place(key.environment)
    return f"{metric_name(key.metric)} of {key.step}, {place.suite} on {place.box}"


def commits_text(report: ChangeReport) -> str:
    """Return the range of commits or versions in which a change lies."""
    old, new = report.commits
    if old and new:
        return f"{old[:SHORT_HASH]}..{new[:SHORT_HASH]}"
    before, after = report.change.last_before.version, report.change.first_after.version
    return before if before == after else f"{before} to {after}"


def confidence(value: float) -> str:
    """Return a confidence in percent."""
    return probability(value) if math.isfinite(value) else "unknown"


def _version(night: Night) -> str:
    """Return the version of a night; of a past commit also the day on which it was measured."""
    return f"{night.version}, measured {day(night.measured_at)}" if night.measured_at else night.version


def chart_of(
    series: MemberSeries, details: ChangeDetails, catalog: Catalog, root: str, name: str, linked: bool
) -> NightChart:
    """Return the chart of a series of a change."""
    member = series.member
    key = member.key
    place = catalog.clearance.place(key.environment)
    marks = []
    for point in series.points:
        low, high, is_open = series.intervals.get(point.night.session_id, (None, None, None))
        marks.append(
            NightMark(
                point.night.started_at,
                _version(point.night),
                point.relative,
                catalog.clearance.text(point.gap),
                f"{root}{addresses.session(catalog.by_id[point.night.session_id].uid)}" if linked else "",
                (low, high) if low is not None and high is not None else None,
                is_open,
            )
        )
    return NightChart(
        f"{key.step}, {metric_name(key.metric)}, {key.branch}, {place.suite} on {place.box}",
        marks,
        METRICS[key.metric].better if key.metric in METRICS else Better.NEITHER,
        series.visible,
        catalog.threshold_of(key.metric),
        changes=[change_mark(member, details.report.change, "")],
        notes=[(night.started_at, typeset(catalog.clearance.text(text))) for night, text in series.notes],
        name=name,
    )


def change_mark(member: Member, change: Change, href: str) -> ChangeMark:
    """Return the mark of a change in the chart of one of its series."""
    nights = f"{day(member.last_before.started_at)} to {day(member.first_after.started_at)}"
    muted = f", muted until {change.muting.until}" if change.is_muted and change.muting is not None else ""
    return ChangeMark(
        member.last_before.started_at,
        member.first_after.started_at,
        member.level_before,
        member.level_after,
        f"{moved(member)}, {nights}{muted}",
        href,
        is_worse(member),
        member.confirmed is not None,
        member.gone.started_at if member.gone else None,
    )


def replication(details: ChangeDetails, catalog: Catalog, root: str, linked: bool) -> h.Node:
    """Return the replication strip: the change on every box and step, and the kernel that each box runs."""
    main = details.report.main_series
    metrics = {main.key.metric}
    if details.report.change.opposite:
        metrics.add(max(details.report.change.opposite, key=lambda member: abs(member.ratio - 1)).key.metric)
    by_metric = {metric: f", {metric_name(metric)}" if len(metrics) > 1 else "" for metric in metrics}
    same = [member for member in details.report.members if member.key.metric in metrics]
    rows = []
    for member in same[:40]:
        box = catalog.clearance.box(member.key.environment.box)
        worse = is_worse(member)
        tone = "plain" if worse is None else "worse" if worse else "better"
        key = member.key.environment
        configuration = catalog.clearance.place(key).configuration
        note_text = f"{configuration}; kernel {details.kernels.get(key.box, 'unknown')}"
        address = f"{root}{addresses.machine(box)}" if linked else ""
        rows.append(
            IntervalRow(
                f"{box}: {member.key.step}{by_metric[member.key.metric]}",
                member.ratio,
                member.ratio_low,
                member.ratio_high,
                tone,
                note_text,
                address,
            )
        )
    replicated = {member.confirmed.replicated_on for member in same if member.confirmed} - {""}
    boxes = len({member.key.environment.box for member in same} | replicated)
    lead = "One box has it." if boxes == 1 else f"{boxes} boxes have it: it is not one machine's doing."
    return section(
        "Replication: the same change on every box",
        interval_figure(
            rows,
            f"{' and '.join(map(metric_name, sorted(metrics)))}: level after over level before",
            what="box and step",
        ),
        lead=lead,
    )
