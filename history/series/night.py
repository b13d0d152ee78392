"""From the runs of a session that ended to one value for each series: a night."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, insert, select

from build.engines import ENGINES
from build.version import Version, parse_version, release_numbers
from history.errors import stored_options
from history.stats.estimators import geometric_mean, mean
from history.store.records import ALL_STEPS, Run, RunStatus
from history.store.schema import builds, gaps, nights, points, series
from history.store.session_reads import dropped_of
from suites.metrics import followed_metrics


@dataclass(frozen=True)
class SessionVersion:
    """One version of a session."""

    version: str
    branch: str
    build_key: str | None
    """None when it has no run."""

    is_base: bool


def branch_line(version: Version) -> str:
    """What a version's branch is called when nothing else in its session has that name.

    A release belongs to a line: `postgres@17.11` to `postgres@17`, `mysql@8.0.45` to `mysql@8.0`.
    """
    if version.variant:
        return str(version)
    if version.ref.startswith("git:"):
        return f"{version.engine}@git"
    if not version.is_release:
        return str(version)
    return f"{version.engine}@{ENGINES[version.engine].line(version.ref)}"


def branches(versions: Iterable[str], named: Mapping[str, str]) -> dict[str, str]:
    """The branch of each version of a session; `named` are those that were chosen for it.

    Of several versions of one line none can stand for it: each is a branch of its own.
    """
    lines = {each: named.get(each) or branch_line(parse_version(each)) for each in versions}
    counted = list(lines.values())
    return {each: line if counted.count(line) == 1 else each for each, line in lines.items()}


def configuration_name(session: Mapping[str, Any]) -> str:
    """What a series' configuration is called: the choices of a session (a row) that move its results."""
    options = stored_options(session["options"])
    parts = [session["profile"], session["durability"]]
    if options.get("mode", "rounds") != "rounds":
        parts.append(options["mode"])
    if "seconds" in options:
        parts.append(f"{options['seconds']:g}s")
    parts += [f"{name}={value}" for name, value in sorted(options.get("settings", {}).items())]
    return " ".join(parts)


def insert_night(
    connection: Connection, session: Mapping[str, Any], options: Mapping[str, Any], its_runs: Sequence[Run]
) -> None:
    """Write the night of a session that ended, with its points and gaps; it must not be there yet.

    `session` is the session's row, and `hostname` of its machine.
    """
    session_id = session["id"]
    entries = _entries(its_runs, options)
    keys = [each.build_key for each in entries if each.build_key is not None]
    ids = {row.key: row.id for row in connection.execute(select(builds).where(builds.c.key.in_(keys)))}
    where = {
        "box": session["hostname"],
        "suite": session["suite"],
        "configuration": configuration_name(session),
    }
    rows = [
        {
            "session_id": session_id,
            "branch": each.branch,
            "version": each.version,
            "build_id": ids.get(each.build_key),
            "is_base": int(each.is_base),
            "started_at": session["started_at"],
            **where,
        }
        for each in entries
    ]
    if rows:
        connection.execute(insert(nights), rows)
    values = _values(its_runs, entries)
    _insert_points(connection, session_id, where, values)
    disturbed = {each.step: each.reason for each in dropped_of(connection, session_id)}
    missing = _gaps(its_runs, entries, values, disturbed)
    missing |= {
        (each.branch, ALL_STEPS): _why_no_run(each, session, options)
        for each in entries
        if each.build_key is None
    }
    if missing:
        connection.execute(
            insert(gaps),
            [
                {"session_id": session_id, "branch": branch, "step": step, "reason": reason}
                for (branch, step), reason in missing.items()
            ],
        )


Values = dict[tuple[str, int, str, str], float]
"""Branch, position of the step, step and metric -> value."""


def _entries(its_runs: Sequence[Run], options: Mapping[str, Any]) -> list[SessionVersion]:
    keys = {run.version: run.build_key for run in its_runs}
    asked = options.get("versions", ())
    # Sessions of the first Tidemarks do not say the order in which versions were asked for.
    ordered = [*asked, *sorted(keys.keys() - set(asked), key=_age)]
    lines = branches(ordered, options.get("branches", {}))
    return [
        SessionVersion(each, lines[each], keys.get(each), place == 0) for place, each in enumerate(ordered)
    ]


def _age(version: str) -> tuple[str, tuple[int, ...], str]:
    parsed = parse_version(version)
    return parsed.engine, release_numbers(parsed.ref), version


def _values(its_runs: Sequence[Run], entries: Sequence[SessionVersion]) -> Values:
    by_step: defaultdict[tuple[int, str], dict[tuple[str, int], Run]] = defaultdict(dict)
    for run in its_runs:
        if run.status is RunStatus.FINISHED:
            by_step[run.step_position, run.step][run.version, run.repetition] = run
    found: Values = {}
    for (position, step), finished in by_step.items():
        rounds = _whole_rounds(finished)
        for entry in entries:
            together = [finished[entry.version, each] for each in rounds if (entry.version, each) in finished]
            for metric in followed_metrics():
                values = [run.values[metric] for run in together if metric in run.values]
                if values:
                    middle = geometric_mean(values)
                    found[entry.branch, position, step, metric] = mean(values) if middle is None else middle
    return found


def _whole_rounds(finished: Mapping[tuple[str, int], Run]) -> list[int]:
    """Rounds in which every version finished that finished the step at all: only these can be compared."""
    versions = {version for version, _ in finished}
    rounds = {each for _, each in finished}
    return sorted(each for each in rounds if all((version, each) in finished for version in versions))


def _insert_points(connection: Connection, session_id: int, where: Mapping[str, str], values: Values) -> None:
    known = {
        (row.branch, row.step, row.metric): row.id
        for row in connection.execute(
            select(series).where(*(series.c[name] == value for name, value in where.items()))
        )
    }
    new = [
        {**where, "branch": branch, "step_position": position, "step": step, "metric": metric}
        for branch, position, step, metric in values
        if (branch, step, metric) not in known
    ]
    if new:
        inserted = insert(series).returning(series.c.branch, series.c.step, series.c.metric, series.c.id)
        known |= {tuple(row[:3]): row[3] for row in connection.execute(inserted, new)}
    if values:
        connection.execute(
            insert(points),
            [
                {"series_id": known[branch, step, metric], "session_id": session_id, "value": value}
                for (branch, _, step, metric), value in values.items()
            ],
        )


def _gaps(
    its_runs: Sequence[Run], entries: Sequence[SessionVersion], values: Values, disturbed: Mapping[str, str]
) -> dict[tuple[str, str], str]:
    have = {(branch, step) for branch, _, step, _ in values}
    failures = {(run.version, run.step): run.failure for run in its_runs if run.failure}
    steps = dict.fromkeys(run.step for run in its_runs)
    return {
        (entry.branch, step): failures.get((entry.version, step))
        or (f"disturbed: {disturbed[step]}" if step in disturbed else "no round of all versions")
        for entry in entries
        for step in steps
        if entry.build_key is not None and (entry.branch, step) not in have
    }


def _why_no_run(entry: SessionVersion, session: Mapping[str, Any], options: Mapping[str, Any]) -> str:
    refused = options.get("not_built", {}).get(entry.version)
    return f"not built: {refused}" if refused else f"session {session['status']} before its first run"
