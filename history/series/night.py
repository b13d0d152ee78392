"""Derivation of a night from the runs of a session that has ended: one value for each series."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Connection, insert, select

from build.engines import ENGINES
from build.version import Version, release_numbers
from history.errors import stored_options, stored_version
from history.stats.bursts import are_alike, blocks_with_bursts
from history.stats.estimators import geometric_mean, mean
from history.store.records import ALL_STEPS, BASE, IMPORTED, STANDS_AT, Run, RunStatus
from history.store.schema import builds, gaps, nights, points, series
from history.store.session_reads import bursts_of, dropped_of
from history.timestamps import from_text, to_text
from suites.additions.variant import KEYS, SETTING
from suites.control_groups.declared import Declared
from suites.metrics import METRICS, OPERATION_TIME, PRIMARIES, PRIMARY, followed_metrics


def not_built(reason: str) -> str:
    """Return the reason of the gap of a version that could not be built."""
    return f"not built: {reason}"


@dataclass(frozen=True)
class SessionVersion:
    """One version of a session."""

    version: str
    branch: str
    build_key: str | None
    """None when the version has no run."""

    is_base: bool


def branch_line(version: Version) -> str:
    """Return the default name of a version's branch.

    A release belongs to a branch line: `postgres@17.11` to `postgres@17`, `mysql@8.0.45` to `mysql@8.0`. The
    branch of an install prefix is its name: `postgres@good` of `postgres@good=0a1b2c3d4e5f`.
    """
    if version.is_install:
        return str(replace(version, ref=version.install_name))
    if version.variant:
        return str(version)
    if version.ref.startswith("git:"):
        return f"{version.engine}@git"
    if not version.is_release:
        return str(version)
    return f"{version.engine}@{ENGINES[version.engine].line(version.ref)}"


def release_branch(version: Version) -> str:
    """Return the branch of a release: `postgres@18` of `postgres@18.6`, `postgres@18#uring` of a variant."""
    line = branch_line(version.plain)
    return f"{line}#{version.variant}" if version.variant else line


def branches(versions: Iterable[str], named: Mapping[str, str]) -> dict[str, str]:
    """Return the branch of each version of a session; `named` are those that the session specifies.

    When several versions belong to the same line, each is a branch of its own.
    """
    lines = {version: named.get(version) or branch_line(stored_version(version)) for version in versions}
    counted = list(lines.values())
    return {version: line if counted.count(line) == 1 else version for version, line in lines.items()}


def configuration_name(session: Mapping[str, Any]) -> str:
    """Return the name of a session's configuration, made of the options that affect its results.

    `session` is a row of `sessions`.
    """
    options = stored_options(session["options"])
    parts = [session["profile"], session["durability"]]
    if options.get("mode", "rounds") != "rounds":
        parts.append(options["mode"])
    if "seconds" in options:
        parts.append(f"{options['seconds']:g}s")
    parts += [f"{name}={value}" for name, value in Declared.of(options).options.items()]
    # The names of keys are part of stored names: another one would begin every series again.
    for key in KEYS.values():
        if key.is_table:
            kind = "" if key is SETTING else f"{key.name} "
            parts += [f"{kind}{name}={value}" for name, value in sorted(options.get(key.field, {}).items())]
    return " ".join(parts)


def insert_night(
    connection: Connection,
    session: Mapping[str, Any],
    options: Mapping[str, Any],
    session_runs: Sequence[Run],
) -> None:
    """Insert the night of a session that has ended, with its points and gaps; it must not exist yet.

    `session` is the row of `sessions`, with the `hostname` of its machine. A past commit stands at the time
    that the options name, everything else at the start of the session.
    """
    session_id = session["id"]
    stands_at = _places(options)
    entries = _session_versions(session_runs, options)
    keys = [entry.build_key for entry in entries if entry.build_key is not None]
    ids = {row.key: row.id for row in connection.execute(select(builds).where(builds.c.key.in_(keys)))}
    where = {
        "box": session["hostname"],
        "suite": session["suite"],
        "configuration": configuration_name(session),
    }
    rows = [
        {
            "session_id": session_id,
            "branch": entry.branch,
            "version": entry.version,
            "build_id": ids.get(entry.build_key),
            "is_base": int(entry.is_base),
            "started_at": stands_at.get(entry.version, session["started_at"]),
            **where,
        }
        for entry in entries
    ]
    if rows:
        connection.execute(insert(nights), rows)
    bursts = bursts_of(connection, session_id, options)
    values = _values(session_runs, entries, bursts, is_imported=bool(options.get(IMPORTED)))
    _insert_points(connection, session_id, where, values)
    disturbed = {round_.step: round_.reason for round_ in dropped_of(connection, session_id)}
    missing = _gaps(session_runs, entries, values, disturbed)
    missing |= {
        (entry.branch, ALL_STEPS): _reason_without_run(entry, session, options)
        for entry in entries
        if entry.build_key is None
    }
    if missing:
        connection.execute(
            insert(gaps),
            [
                {"session_id": session_id, "branch": branch, "step": step, "reason": reason}
                for (branch, step), reason in missing.items()
            ],
        )


def _places(options: Mapping[str, Any]) -> dict[str, str]:
    """Return the places of past commits by version. Raises DamagedTextError for what is not a time."""
    named = options.get(STANDS_AT)
    if not isinstance(named, dict):
        return {}
    return {version: to_text(from_text(text)) for version, text in named.items()}


Values = dict[tuple[str, int, str, str], float]
"""The values by branch, position of the step, step and metric."""


def _session_versions(session_runs: Sequence[Run], options: Mapping[str, Any]) -> list[SessionVersion]:
    keys = {run.version: run.build_key for run in session_runs}
    requested = options.get("versions", ())
    # The first releases of Tidemark did not record the order in which versions were requested.
    ordered = [*requested, *sorted(keys.keys() - set(requested), key=_age)]
    lines = branches(ordered, options.get("branches", {}))
    base = _base(ordered, options)
    return [
        SessionVersion(version, lines[version], keys.get(version), version == base) for version in ordered
    ]


def _base(ordered: Sequence[str], options: Mapping[str, Any]) -> str | None:
    """Return the base of a session, its first version; that of a table is what a person said, or none."""
    return options.get(BASE) if options.get(IMPORTED) else next(iter(ordered), None)


def _age(version: str) -> tuple[str, tuple[int, ...], str]:
    parsed = stored_version(version)
    return parsed.engine, release_numbers(parsed.ref), version


def _values(
    session_runs: Sequence[Run],
    entries: Sequence[SessionVersion],
    bursts: Collection[int],
    is_imported: bool,
) -> Values:
    by_step: defaultdict[tuple[int, str], dict[tuple[str, int], Run]] = defaultdict(dict)
    for run in session_runs:
        if run.status is RunStatus.FINISHED:
            by_step[run.step_position, run.step][run.version, run.repetition] = run
    values_by_key: Values = {}
    for (position, step), finished in by_step.items():
        rounds = _comparable_rounds(finished, bursts)
        recorded = {metric for run in finished.values() for metric in run.values}
        alike = PRIMARIES[1:] if PRIMARY in recorded else ()  # they say the same as it
        followed = [
            name
            for name in followed_metrics()
            if name not in alike and (is_imported or METRICS[name].beside_of != OPERATION_TIME)
        ]
        for entry in entries:
            together = [
                finished[entry.version, number] for number in rounds if (entry.version, number) in finished
            ]
            for metric in followed:
                values = [run.values[metric] for run in together if metric in run.values]
                if values:
                    middle = geometric_mean(values)
                    values_by_key[entry.branch, position, step, metric] = (
                        mean(values) if middle is None else middle
                    )
    return values_by_key


def _comparable_rounds(finished: Mapping[tuple[str, int], Run], bursts: Collection[int]) -> list[int]:
    """Return the rounds in which every version finished that finished the step at least once.

    Those are left out that bursts reached, of which `bursts` has the ids of the runs, unless there are
    versions of several engines.
    """
    versions = {version for version, _ in finished}
    if not are_alike(versions):
        bursts = ()
    rounds = sorted({number for _, number in finished})
    complete = [number for number in rounds if all((version, number) in finished for version in versions)]
    reached = {number for (_, number), run in finished.items() if run.id in bursts}
    left_out = blocks_with_bursts(complete, reached)
    return [number for number in complete if number not in left_out]


def _insert_points(connection: Connection, session_id: int, where: Mapping[str, str], values: Values) -> None:
    series_ids = {
        (row.branch, row.step, row.metric): row.id
        for row in connection.execute(
            select(series).where(*(series.c[name] == value for name, value in where.items()))
        )
    }
    new = [
        {**where, "branch": branch, "step_position": position, "step": step, "metric": metric}
        for branch, position, step, metric in values
        if (branch, step, metric) not in series_ids
    ]
    if new:
        inserted = insert(series).returning(series.c.branch, series.c.step, series.c.metric, series.c.id)
        series_ids |= {tuple(row[:3]): row[3] for row in connection.execute(inserted, new)}
    if values:
        connection.execute(
            insert(points),
            [
                {"series_id": series_ids[branch, step, metric], "session_id": session_id, "value": value}
                for (branch, _, step, metric), value in values.items()
            ],
        )


def _gaps(
    session_runs: Sequence[Run],
    entries: Sequence[SessionVersion],
    values: Values,
    disturbed: Mapping[str, str],
) -> dict[tuple[str, str], str]:
    have = {(branch, step) for branch, _, step, _ in values}
    failures = {(run.version, run.step): run.failure for run in session_runs if run.failure}
    steps = dict.fromkeys(run.step for run in session_runs)
    return {
        (entry.branch, step): failures.get((entry.version, step))
        or (f"disturbed: {disturbed[step]}" if step in disturbed else "no round of all versions")
        for entry in entries
        for step in steps
        if entry.build_key is not None and (entry.branch, step) not in have
    }


def _reason_without_run(entry: SessionVersion, session: Mapping[str, Any], options: Mapping[str, Any]) -> str:
    build_error = options.get("not_built", {}).get(entry.version)
    if build_error:
        return not_built(build_error)
    return f"session {session['status']} before its first run"
