"""The data of the series explorer: calls in classic scripts, each with the values of one step in one period.

From `file://` a browser loads scripts only, neither JSON nor modules. A value takes two characters: a number
of steps, of which the range of a series in a period has LEVELS. A period is a year, or a month of the latest
year, so that a further night writes little; files of past periods stay as they are, byte by byte.
"""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, func, select

from history.changes.report import ChangeReport
from history.escaping.characters import visible
from history.metric_words import label_of
from history.series.series import IDS_PER_QUERY, in_environment
from history.store.database import plain_rows
from history.store.records import Environment
from history.store.schema import dropped_rounds, gaps, points, series
from report import addresses
from report.values.catalog import Catalog, NightEntry, PlaceNights, SessionKind
from report.values.night_intervals import NightIntervals
from suites.metrics import METRICS

ALPHABET = "".join(chr(code) for code in range(33, 127) if chr(code) not in '"<\\')
"""The digits of a value; none of them needs an escape in JSON, and none ends a script."""

LEVELS = len(ALPHABET) ** 2
"""The steps between zero and the largest value: one is 0.012 % of it, far below a night's noise."""

NO_VALUE = "  "
_PAIRS = [first + second for first in ALPHABET for second in ALPHABET]

_MINUTE = 60

StepSeries = Mapping[str, Sequence[tuple[int, str, str]]]
"""The id, branch and metric of the series of an environment, by step."""


def call(function: str, *arguments: Any) -> str:
    """Return a script that calls a function of `tidemark` with JSON; nothing in it ends a script element."""
    text = ", ".join(
        json.dumps(_visible(argument), ensure_ascii=True, separators=(",", ":"), sort_keys=True)
        for argument in arguments
    )
    return f"tidemark.{function}({text.replace('<', chr(92) + 'u003c')});\n"


def _visible(value: Any) -> Any:
    """Return a value for JSON without hidden characters: the site's scripts show its texts."""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, Mapping):
        return {_visible(key): _visible(inner) for key, inner in value.items()}
    return [_visible(inner) for inner in value] if isinstance(value, list | tuple) else value


@dataclass(frozen=True)
class Shard:
    """The values of a step in a period."""

    step: str
    content: Mapping[str, Any]


PAST, LATEST = "past", "latest"
"""The files of a step: of its latest month, and of all nights before it."""


def files_of(periods: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
    """Return the files of a step in an environment, oldest first, with the periods in each."""
    years = tuple(sorted(period for period in periods if "-" not in period))
    months = tuple(sorted(period for period in periods if "-" in period))
    files = {PAST: (*years, *months[:-1]), LATEST: months[-1:]}
    return {name: file for name, file in files.items() if file}


def periods_of(nights: PlaceNights) -> Mapping[str, tuple[NightEntry, ...]]:
    """Return the nights of an environment by period: months of its latest year, and years before it."""
    latest = max((night.started_at.year for night in nights.nights), default=0)
    by_period: defaultdict[str, list[NightEntry]] = defaultdict(list)
    for night in nights.nights:
        when = night.started_at
        by_period[f"{when:%Y-%m}" if when.year == latest else f"{when:%Y}"].append(night)
    return {period: tuple(of_period) for period, of_period in by_period.items()}


def step_series(connection: Connection, place: Environment) -> StepSeries:
    """Return the series of an environment by step."""
    query = select(series.c.id, series.c.step, series.c.branch, series.c.metric).where(
        in_environment(series, place)
    )
    by_step: defaultdict[str, list[tuple[int, str, str]]] = defaultdict(list)
    for id_, step, branch, metric in plain_rows(
        connection, query.order_by(series.c.step, series.c.branch, series.c.metric)
    ):
        by_step[step].append((id_, branch, metric))
    return by_step


def shards(
    connection: Connection,
    catalog: Catalog,
    place: Environment,
    steps: StepSeries,
    nights: Sequence[NightEntry],
    intervals: Sequence[NightIntervals],
) -> Iterator[Shard]:
    """Yield the shards of an environment in the period of `nights`; `intervals` are those of each night."""
    position = {night.session_id: number for number, night in enumerate(nights)}
    lacking = _gaps(connection, catalog, position)
    dropped = _dropped(connection, position)
    for step, rows in steps.items():
        found = _values(connection, [id_ for id_, _, _ in rows], position)
        values: defaultdict[str, dict[str, list[Any]]] = defaultdict(dict)
        for id_, branch, metric in rows:
            if id_ in found:
                values[branch][metric] = packed(found[id_], len(nights))
        if values:
            content = {
                "n": [int(night.started_at.timestamp()) // _MINUTE for night in nights],
                "u": [addresses.file_name(night.uid) for night in nights],
                "w": {branch: _versions(nights, branch) for branch in sorted(values)},
                "v": values,
                "g": [[at, branch, reason] for at, branch, of, reason in lacking if of in ("", step)],
                "i": _intervals(catalog, nights, intervals, step),
                "d": dropped.get(step, []),
            }
            yield Shard(step, content)


def _values(
    connection: Connection, ids: Sequence[int], position: Mapping[int, int]
) -> Mapping[int, list[tuple[int, float]]]:
    """Return the values of several series by id, each with the number of its night."""
    found: defaultdict[int, list[tuple[int, float]]] = defaultdict(list)
    for start in range(0, len(ids), IDS_PER_QUERY):
        query = select(points.c.series_id, points.c.session_id, points.c.value).where(
            points.c.series_id.in_(ids[start : start + IDS_PER_QUERY]),
            points.c.session_id.between(min(position), max(position)),
        )
        for series_id, session_id, value in plain_rows(connection, query):
            at = position.get(session_id)
            if at is not None:
                found[series_id].append((at, value))
    return found


def packed(found: Sequence[tuple[int, float]], nights: int) -> list[Any]:
    """Return the lowest value, the size of a step and two characters for each night, spaces without a value.

    The lowest value is zero unless there are negative ones. There must be a value.
    """
    values = [value for _, value in found]
    low = min(0.0, *values)
    step = (max(values) - low) / (LEVELS - 1) or 1.0
    row = [NO_VALUE] * nights
    for at, value in found:
        row[at] = _PAIRS[round((value - low) / step)]
    return [low, float(f"{step:.12g}"), "".join(row)]


def _intervals(
    catalog: Catalog, nights: Sequence[NightEntry], intervals: Sequence[NightIntervals], step: str
) -> dict[str, dict[str, list[list[Any]]]]:
    """Return night, low, high and whether the verdict is open, by the metric of the night and by branch."""
    found: dict[str, dict[str, list[list[Any]]]] = {}
    for at, (night, of_night) in enumerate(zip(nights, intervals, strict=True)):
        by_branch = found.setdefault(catalog.by_id[night.session_id].judged_by, {})
        for branch, steps in of_night.items():
            if step in steps:
                by_branch.setdefault(branch, []).append([at, *steps[step]])
    return {metric: by_branch for metric, by_branch in found.items() if by_branch}


def _dropped(connection: Connection, position: Mapping[int, int]) -> dict[str, list[list[int]]]:
    """Return the nights with dropped rounds, and their number, by step."""
    table = dropped_rounds.c
    query = (
        select(table.step, table.session_id, func.count())
        .where(table.session_id.between(min(position), max(position)))
        .group_by(table.step, table.session_id)
    )
    by_step: defaultdict[str, list[list[int]]] = defaultdict(list)
    for step, session_id, count in plain_rows(connection, query):
        if session_id in position:
            by_step[step].append([position[session_id], count])
    return {step: sorted(rows) for step, rows in by_step.items()}


def _versions(nights: Sequence[NightEntry], branch: str) -> list[list[Any]]:
    """Return the versions of a branch as pairs of a night and the version from there on, None without it."""
    steps: list[list[Any]] = [[0, None]]
    for at, night in enumerate(nights):
        version = night.shown_version(branch)
        if steps[-1][1] != version:
            steps.append([at, version])
    return steps


def _gaps(
    connection: Connection, catalog: Catalog, position: Mapping[int, int]
) -> list[tuple[int, str, str, str]]:
    query = select(gaps.c.session_id, gaps.c.branch, gaps.c.step, gaps.c.reason).where(
        gaps.c.session_id >= min(position), gaps.c.session_id <= max(position)
    )
    rows = plain_rows(connection, query.order_by(gaps.c.session_id, gaps.c.branch, gaps.c.step))
    return [
        (position[id_], branch, step, catalog.clearance.text(reason)[:200])
        for id_, branch, step, reason in rows
        if id_ in position
    ]


def series_index(
    connection: Connection,
    catalog: Catalog,
    changes: Sequence[ChangeReport],
    visible: Mapping[tuple[str, ...], float],
) -> tuple[str, int]:
    """Return the list of all series as a script, and their number.

    A series is numbers into lists of names; those of a step are together, with their ids in one text. Changes
    and what steps can see come with it; `visible` is by box, suite, configuration, branch, step and metric.
    """
    names: dict[str, list[str]] = {"place": [], "branch": [], "step": [], "metric": []}
    numbers: dict[tuple[str, Any], int] = {}

    def number(kind: str, value: str) -> int:
        if (kind, value) not in numbers:
            numbers[kind, value] = len(names[kind])
            names[kind].append(value)
        return numbers[kind, value]

    rows: dict[tuple[int, int, int], tuple[list[int], list[str]]] = {}
    columns = (
        series.c.box,
        series.c.suite,
        series.c.configuration,
        series.c.branch,
        series.c.step,
        series.c.metric,
    )
    for box, suite, configuration, *rest in plain_rows(connection, select(*columns).order_by(*columns)):
        place = Environment(box, suite, configuration)
        key, public = _place_key(catalog, place), catalog.clearance.place(place)
        name = addresses.series_id(public.box, public.suite, public.configuration, *rest)
        parts = zip(("branch", "step", "metric"), rest, strict=True)
        branch, step, metric = (number(kind, value) for kind, value in parts)
        metrics, ids = rows.setdefault((number("place", key), branch, step), ([], []))
        metrics.append(metric)
        ids.append(name)
    content = {
        "places": _places(catalog, names["place"]),
        "branches": names["branch"],
        "steps": [[step, addresses.file_name(step)] for step in names["step"]],
        "metrics": [_metric(name, catalog) for name in names["metric"]],
        "series": [[*step, metrics, "".join(ids)] for step, (metrics, ids) in rows.items()],
        "changes": [_change(change, catalog) for change in changes],
        "compared": _compared(catalog),
        "sees": [
            [*json.loads(_place_key(catalog, Environment(*key[:3]))), *key[3:], round(value, 4)]
            for key, value in sorted(visible.items())
        ],
    }
    return call("index", content), sum(len(metrics) for metrics, _ in rows.values())


def _compared(catalog: Catalog) -> list[list[Any]]:
    """Return the sessions besides nights that measured versions side by side, latest first."""
    return [
        [addresses.file_name(entry.uid), catalog.clearance.box(entry.box), entry.suite, list(entry.versions)]
        for entry in reversed(list(catalog.sessions.values()))
        if entry.kind not in (SessionKind.NIGHT, SessionKind.CALIBRATION) and len(entry.versions) > 1
    ]


def _places(catalog: Catalog, keys: Sequence[str]) -> list[list[Any]]:
    """Return box, suite, configuration, bases by branch, files with periods, and folder of each environment.

    The last column is the metric by which its latest night is judged.
    """
    by_key = {_place_key(catalog, place_nights.place): place_nights for place_nights in catalog.places}
    listed = []
    for key in keys:
        nights = by_key.get(key)
        bases, files = (
            (nights.base_of, files_of(list(periods_of(nights)))) if nights is not None else ({}, {})
        )
        place = json.loads(key)
        judged_by = catalog.by_id[nights.nights[-1].session_id].judged_by if nights is not None else ""
        listed.append([*place, bases, list(files.items()), addresses.shard_folder(*place), judged_by])
    return listed


def _place_key(catalog: Catalog, place: Environment) -> str:
    public = catalog.clearance.place(place)
    return json.dumps([public.box, public.suite, public.configuration])


def _metric(name: str, catalog: Catalog) -> list[Any]:
    """Return name, label, unit, better direction and threshold of a metric, and whether it is counted."""
    known = METRICS.get(name)
    row = [known.unit, str(known.better)] if known else ["", "neither"]
    return [name, label_of(name), *row, catalog.threshold_of(name), known is not None and known.is_counted]


def _change(report: ChangeReport, catalog: Catalog) -> list[Any]:
    change = report.change
    members = []
    for member in change.members:
        key = member.key
        place = catalog.clearance.place(key.environment)
        name = addresses.series_id(
            place.box, place.suite, place.configuration, key.branch, key.step, key.metric
        )
        members.append(
            [
                name,
                _minutes(member.last_before.started_at),
                _minutes(member.first_after.started_at),
                round(member.ratio, 4),
                member.confirmed is not None,
            ]
        )
    return [change.fingerprint, addresses.change(change.fingerprint), str(change.direction), members]


def _minutes(when: datetime) -> int:
    return int(when.astimezone(UTC).timestamp()) // _MINUTE
