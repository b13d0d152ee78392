"""The inventory of a history, and one of its series, as text, JSON and CSV."""

import csv
import io
import json
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from history.changes.hindsight import LevelChange
from history.placement.pool import HandOver
from history.rendering.changes import level_change, level_change_json
from history.rendering.numbers import DASH, amount, rounded
from history.rendering.sparkline import SPARKLINE_LEGEND, sparkline
from history.series.inventory import Branch, UnfinishedSession
from history.series.series import SeriesKey
from history.series.timeline import Timeline, TimelineEntry
from suites.metrics import METRICS

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

SPARKLINE_NIGHTS = 90
"""The nights of the sparkline above a series."""

SHOWN_HAND_OVERS = 20
"""The hand-overs that the inventory lists."""

_CSV_HEADS = (
    *("date", "session_id", "version", "value", "base_version", "base_value", "relative", "gap", "changes"),
    "measured_at",
)


def render_inventory(
    branches: Sequence[Branch],
    failed: Sequence[UnfinishedSession],
    held: Sequence[tuple[SeriesKey, int]],
    handed_over: Sequence[HandOver],
    console: "Console",
) -> None:
    """Print the branches of each environment, the given series, hand-overs, and sessions that failed."""
    for environment, group in groupby(branches, key=lambda branch: branch.environment):
        console.print(
            f"{environment.box}: {environment.suite}, {environment.configuration}", style="bold", markup=False
        )
        table = _table("branch", "nights", "first", "last", "latest version", left=(0, 4))
        for branch in group:
            latest = branch.version + (" (base)" if branch.is_base else "")
            days = (f"{branch.first:%Y-%m-%d}", f"{branch.last:%Y-%m-%d}")
            _add(table, branch.branch, str(branch.nights), *days, latest)
        console.print(table)
        console.print()
    if held:
        table = _table("step", "metric", "branch", "machine", "nights with a value", left=(0, 1, 2, 3))
        for key, count in held:
            _add(table, key.step, key.metric, key.branch, key.environment.box, str(count))
        console.print(table)
        console.print()
    if handed_over:
        _print_hand_overs(handed_over, console)
    if failed:
        console.print("Sessions that did not finish, the latest first:", markup=False)
        for session in failed:
            start = f"{session.started_at:%Y-%m-%d %H:%M} UTC"
            line = f"  {start}  {session.uid}  {session.status}  {session.box}  {session.suite}"
            console.print(line, markup=False, highlight=False)


def _print_hand_overs(handed_over: Sequence[HandOver], console: "Console") -> None:
    head = "Handed on in a pool, the latest first; the series begin anew on their new box:"
    console.print(head, markup=False, highlight=False)
    for each in handed_over[:SHOWN_HAND_OVERS]:
        line = f"  {each.placed_at:%Y-%m-%d %H:%M} UTC  {each}"
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    if len(handed_over) > SHOWN_HAND_OVERS:
        more = f"  and {len(handed_over) - SHOWN_HAND_OVERS} earlier ones"
        console.print(more, markup=False, highlight=False)
    console.print()


def render_series(timeline: Timeline, changes: Sequence[LevelChange], console: "Console") -> None:
    """Print a sparkline, then a line for each night, on which a change of level is noted."""
    levels = {change.first.session_id: f"level {level_change(change)}" for change in changes}
    key = timeline.key
    metric = METRICS[key.metric]
    against = f", relative to {timeline.base}" if timeline.base else ""
    title = f"{key.step}: {key.metric} ({metric.unit}) of {key.branch}{against}"
    console.print(title, style="bold", markup=False)
    where = f"{key.environment.box}: {key.environment.suite}, {key.environment.configuration}"
    console.print(where, markup=False, highlight=False)
    if timeline.base:
        bars = sparkline([entry.point.relative for entry in timeline.entries[-SPARKLINE_NIGHTS:]])
        console.print(bars, markup=False, highlight=False)
    table = _table("date", "version", "value", "base", "rel", "notes", left=(0, 1, 5), wraps=5)
    for entry in timeline.entries:
        point = entry.point
        relative = DASH if point.relative is None else f"{point.relative:.3f}"
        date = f"{point.night.started_at:%Y-%m-%d %H:%M}"
        notes = "; ".join(filter(None, (levels.get(point.night.session_id), *_note_texts(entry))))
        _add(table, date, point.night.version, amount(point.value), amount(point.base), relative, notes)
    console.print(table)
    if timeline.base:
        console.print(SPARKLINE_LEGEND, markup=False, highlight=False)


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
    return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"


def series_csv(timeline: Timeline) -> str:
    """Return the series as CSV, one line for each night; a gap is an empty field and never a zero."""
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(_CSV_HEADS)
    lines.writerows(
        ["; ".join(value) if isinstance(value, list) else value for value in _values(entry)]
        for entry in timeline.entries
    )
    return text.getvalue()


def inventory_json(
    branches: Sequence[Branch],
    failed: Sequence[UnfinishedSession],
    held: Sequence[tuple[SeriesKey, int]],
    handed_over: Sequence[HandOver],
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
        "handed_over": [
            {
                "at": each.placed_at.isoformat(),
                "pool": each.pool,
                **vars(each.task),
                "before": each.before,
                "after": each.after,
                "reason": each.reason,
            }
            for each in handed_over
        ],
        "unfinished": [{**vars(session), "started_at": session.started_at.isoformat()} for session in failed],
    }
    return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"


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


def _table(*heads: str, left: Sequence[int], wraps: int = -1) -> "Table":
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
    for position, head in enumerate(heads):
        side = "left" if position in left else "right"
        table.add_column(head, justify=side, no_wrap=position != wraps)  # type: ignore[arg-type]
    return table


def _add(table: "Table", *cells: str) -> None:
    """Add a row of literal cells, because rich would interpret markup in them."""
    from rich.text import Text

    table.add_row(*map(Text, cells))
