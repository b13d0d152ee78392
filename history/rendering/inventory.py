"""The inventory of a history, and one of its series, as text, JSON and CSV."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

from history.changes.hindsight import LevelChange
from history.escaping.csv_cells import csv_text
from history.escaping.json_strings import json_text
from history.numbers import DASH, amount, rounded
from history.rendering.change_points import level_change, level_change_json
from history.rendering.plain_table import BOLD, PlacedField, Screen
from history.rendering.sparkline import SPARKLINE_LEGEND, sparkline
from history.series.inventory import Branch, UnfinishedSession
from history.series.series import SeriesKey
from history.series.timeline import Timeline, TimelineEntry
from suites.metrics import METRICS

SPARKLINE_NIGHTS = 90
"""The nights of the sparkline above a series."""

_CSV_HEADS = (
    *("date", "session_id", "version", "value", "base_version", "base_value", "relative", "gap", "changes"),
    *("measured_at", "commit"),
)


def render_inventory(
    branches: Sequence[Branch],
    failed: Sequence[UnfinishedSession],
    held: Sequence[tuple[SeriesKey, int]],
    screen: Screen,
) -> None:
    """Print the branches of each environment, the given series, and sessions that failed."""
    for environment, group in groupby(branches, key=lambda branch: branch.environment):
        screen.line(f"{environment.box}: {environment.suite}, {environment.configuration}", BOLD)
        heads = ("branch", "nights", "first", "last", "latest version")
        _print_table(screen, heads, map(_branch_cells, group), left=("branch", "latest version"))
        screen.line()
    if held:
        heads = ("step", "metric", "branch", "machine", "nights with a value")
        cells = ((key.step, key.metric, key.branch, key.environment.box, str(count)) for key, count in held)
        _print_table(screen, heads, cells, left=heads[:-1])
        screen.line()
    if failed:
        screen.line("Sessions that did not finish, the latest first:")
        for session in failed:
            start = f"{session.started_at:%Y-%m-%d %H:%M} UTC"
            screen.lines([f"  {start}  {session.uid}  {session.status}  {session.box}  {session.suite}"])


def _branch_cells(branch: Branch) -> Sequence[str]:
    latest = branch.version + (" (base)" if branch.is_base else "")
    return (
        branch.branch,
        str(branch.nights),
        f"{branch.first:%Y-%m-%d}",
        f"{branch.last:%Y-%m-%d}",
        latest,
    )


def render_series(timeline: Timeline, changes: Sequence[LevelChange], screen: Screen) -> None:
    """Print a sparkline, then a line for each night, on which a change of level is noted."""
    levels = {change.first.session_id: f"level {level_change(change)}" for change in changes}
    key = timeline.key
    metric = METRICS[key.metric]
    against = f", relative to {timeline.base}" if timeline.base else ""
    title = f"{key.step}: {key.metric} ({metric.unit}) of {key.branch}{against}"
    screen.line(title, BOLD)
    screen.line(f"{key.environment.box}: {key.environment.suite}, {key.environment.configuration}")
    if timeline.base:
        screen.line(sparkline([entry.point.relative for entry in timeline.entries[-SPARKLINE_NIGHTS:]]))
    heads = ("date", "version", "value", "base", "rel", "notes")
    cells = []
    for entry in timeline.entries:
        point = entry.point
        relative = DASH if point.relative is None else f"{point.relative:.3f}"
        date = f"{point.night.started_at:%Y-%m-%d %H:%M}"
        notes = "; ".join(filter(None, (levels.get(point.night.session_id), *_note_texts(entry))))
        cells.append((date, point.night.shown, amount(point.value), amount(point.base), relative, notes))
    _print_table(screen, heads, cells, left=("date", "version", "notes"), wraps_last=True)
    if timeline.base:
        screen.line(SPARKLINE_LEGEND)


def series_json(timeline: Timeline, changes: Sequence[LevelChange]) -> str:
    """Return the series with its changes of level as one JSON object."""
    key = timeline.key
    whole = {
        **vars(key.environment),
        "branch": key.branch,
        "step": key.step,
        "metric": key.metric,
        "unit": METRICS[key.metric].unit,
        "base": timeline.base,
        "change_points": [level_change_json(change) for change in changes],
        "nights": [dict(zip(_CSV_HEADS, _values(entry), strict=True)) for entry in timeline.entries],
    }
    return json_text(whole, indent=2) + "\n"


def series_csv(timeline: Timeline) -> str:
    """Return the series as CSV, one line for each night; a gap is an empty field and never a zero."""
    nights = (
        ["; ".join(value) if isinstance(value, list) else value for value in _values(entry)]
        for entry in timeline.entries
    )
    return csv_text([_CSV_HEADS, *nights])


def inventory_json(
    branches: Sequence[Branch],
    failed: Sequence[UnfinishedSession],
    held: Sequence[tuple[SeriesKey, int]],
) -> str:
    """Return what the history holds as one JSON object."""
    whole = {
        "branches": [
            {
                **vars(branch.environment),
                **{name: value for name, value in vars(branch).items() if name != "environment"},
                "first": branch.first.isoformat(),
                "last": branch.last.isoformat(),
            }
            for branch in branches
        ],
        "series": [
            {
                **vars(key.environment),
                "branch": key.branch,
                "step": key.step,
                "metric": key.metric,
                "nights": count,
            }
            for key, count in held
        ],
        "unfinished": [{**vars(session), "started_at": session.started_at.isoformat()} for session in failed],
    }
    return json_text(whole, indent=2) + "\n"


def _values(entry: TimelineEntry) -> list[Any]:
    point = entry.point
    return [
        point.night.started_at.isoformat(),
        point.night.session_id,
        point.night.version,
        rounded(point.value),
        entry.base_version,
        rounded(point.base),
        rounded(point.relative),
        point.gap or None,
        list(entry.changes),
        point.night.measured_at and point.night.measured_at.isoformat(),
        point.night.commit or None,
    ]


def _note_texts(entry: TimelineEntry) -> Iterator[str]:
    measured = entry.point.night.measured_at
    if measured is not None:
        yield f"a past commit, measured {measured:%Y-%m-%d}"
    for change in entry.changes:
        subject, _, versions = change.partition(": ")
        yield f"{subject} changed" + (f": {versions}" if versions else "")
    if entry.point.gap:
        yield " ".join(entry.point.gap.split())


def _print_table(
    screen: Screen,
    heads: Sequence[str],
    rows: Iterable[Sequence[str]],
    left: Sequence[str],
    *,
    wraps_last: bool = False,
) -> None:
    placed = [[PlacedField(cell) for cell in row] for row in rows]
    screen.table(heads, [placed], left, gap=2, wraps_last=wraps_last)
