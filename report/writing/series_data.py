"""The data of the series explorer: classic scripts, each with the values of one step in one year.

From `file://` a browser loads scripts only, neither JSON nor modules. Values are integers with four
significant digits and a common exponent for each series. Files of past years stay as they are, byte by byte.
"""

import json
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, select

from history.changes.report import ChangeReport
from history.series.series import in_environment
from history.store.database import plain_rows
from history.store.records import Environment
from history.store.schema import gaps, points, series
from report import addresses
from report.values.catalog import Catalog, NightEntry, PlaceNights
from suites.metrics import METRICS, label_of

DIGITS = 4
"""The significant digits of a value: a night's noise is in the third."""

_MINUTE = 60


def call(function: str, *arguments: Any) -> str:
    """Return a script that calls a function of `tidemark` with JSON; nothing in it ends a script element."""
    text = ", ".join(
        json.dumps(one, ensure_ascii=True, separators=(",", ":"), sort_keys=True) for one in arguments
    )
    return f"tidemark.{function}({text.replace('<', chr(92) + 'u003c')});\n"


@dataclass(frozen=True)
class Shard:
    """The file of a step in a year."""

    path: str
    text: str


def years_of(nights: PlaceNights) -> Mapping[int, tuple[NightEntry, ...]]:
    """Return the nights of an environment by year."""
    by_year: defaultdict[int, list[NightEntry]] = defaultdict(list)
    for night in nights.nights:
        by_year[night.started_at.year].append(night)
    return {year: tuple(of_year) for year, of_year in by_year.items()}


def signature(nights: Sequence[NightEntry]) -> str:
    """Return what the shards of a year are made of: its sessions, by names that hold in every history."""
    return addresses.digest(*(night.uid for night in nights))


def shards(connection: Connection, catalog: Catalog, nights: PlaceNights, year: int) -> Iterator[Shard]:
    """Yield the shards of a year of an environment."""
    of_year = years_of(nights)[year]
    position = {night.session_id: number for number, night in enumerate(of_year)}
    place = catalog.clearance.place(nights.place)
    query = select(series.c.id, series.c.step, series.c.branch, series.c.metric).where(
        in_environment(series, nights.place)
    )
    by_step: defaultdict[str, list[tuple[int, str, str]]] = defaultdict(list)
    for id_, step, branch, metric in plain_rows(
        connection, query.order_by(series.c.step, series.c.branch, series.c.metric)
    ):
        by_step[step].append((id_, branch, metric))
    lacking = _gaps(connection, catalog, position)
    for step, rows in by_step.items():
        values: defaultdict[str, dict[str, list[Any]]] = defaultdict(dict)
        for id_, branch, metric in rows:
            found = _values(connection, id_, position)
            if found is not None:
                values[branch][metric] = found
        if values:
            reasons = [entry for entry in lacking if entry[2] in ("", step)]
            content = {
                "n": [int(night.started_at.timestamp()) // _MINUTE for night in of_year],
                "u": [addresses.file_name(night.uid) for night in of_year],
                "w": {branch: _versions(of_year, branch) for branch in sorted(values)},
                "v": values,
                "g": [[at, branch, reason] for at, branch, _, reason in reasons],
            }
            path = addresses.shard(place.box, place.suite, place.configuration, step, year)
            yield Shard(path, call("shard", path, content))


def _values(connection: Connection, series_id: int, position: Mapping[int, int]) -> list[Any] | None:
    """Return the exponent and the values of a series by night, None where it has none; None without any."""
    first, last = min(position), max(position)
    query = select(points.c.session_id, points.c.value).where(
        points.c.series_id == series_id, points.c.session_id >= first, points.c.session_id <= last
    )
    row: list[int | None] = [None] * len(position)
    found = [(position[id_], value) for id_, value in plain_rows(connection, query) if id_ in position]
    if not found:
        return None
    largest = max(abs(value) for _, value in found)
    exponent = math.floor(math.log10(largest)) - DIGITS + 1 if largest > 0 else 0
    scale = 10.0**-exponent
    for at, value in found:
        row[at] = round(value * scale)
    return [exponent, row]


def _versions(nights: Sequence[NightEntry], branch: str) -> list[list[Any]]:
    """Return the versions of a branch as pairs of a night and the version from there on, None without it."""
    steps: list[list[Any]] = [[0, None]]
    for at, night in enumerate(nights):
        version = night.versions.get(branch)
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

    A series is numbers into lists of names. Changes, and what steps can see, come with it; `visible` is by
    box, suite, configuration, branch and step.
    """
    names: dict[str, list[str]] = {"place": [], "branch": [], "step": [], "metric": []}
    numbers: dict[tuple[str, Any], int] = {}

    def number(kind: str, value: str) -> int:
        if (kind, value) not in numbers:
            numbers[kind, value] = len(names[kind])
            names[kind].append(value)
        return numbers[kind, value]

    rows = []
    columns = (
        series.c.box,
        series.c.suite,
        series.c.configuration,
        series.c.branch,
        series.c.step,
        series.c.metric,
    )
    for box, suite, configuration, *rest in plain_rows(connection, select(*columns).order_by(*columns)):
        key = _place_key(catalog, Environment(box, suite, configuration))
        name = addresses.series_id(catalog.clearance.box(box), suite, configuration, *rest)
        parts = zip(("branch", "step", "metric"), rest, strict=True)
        rows.append([number("place", key), *(number(kind, value) for kind, value in parts), name])
    content = {
        "places": _places(catalog, names["place"]),
        "branches": names["branch"],
        "steps": [[step, addresses.file_name(step)] for step in names["step"]],
        "metrics": [_metric(name) for name in names["metric"]],
        "series": rows,
        "changes": [_change(one, catalog) for one in changes],
        "sees": [
            [catalog.clearance.box(key[0]), *key[1:], round(value, 4)]
            for key, value in sorted(visible.items())
        ],
    }
    return call("index", content), len(rows)


def _places(catalog: Catalog, keys: Sequence[str]) -> list[list[Any]]:
    """Return box, suite, configuration, base branch, years and folder of each environment."""
    by_key = {_place_key(catalog, one.place): one for one in catalog.places}
    listed = []
    for key in keys:
        nights = by_key.get(key)
        base, years = (nights.base, sorted(years_of(nights))) if nights is not None else (None, [])
        listed.append([*json.loads(key), base, years, _folder(json.loads(key))])
    return listed


def _place_key(catalog: Catalog, place: Environment) -> str:
    return json.dumps([catalog.clearance.box(place.box), place.suite, place.configuration])


def _metric(name: str) -> list[str]:
    """Return name, label, unit and better direction of a metric."""
    known = METRICS.get(name)
    return [name, label_of(name), known.unit if known else "", str(known.better) if known else "neither"]


def _folder(place: Sequence[str]) -> str:
    box, suite, configuration = place
    return f"data/{addresses.digest(box, configuration)}/{addresses.file_name(suite)}"


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
