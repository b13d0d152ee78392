"""Which versions have a result in an environment, and which failed as they would in every further night."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, FromClause, exists, select

from history.errors import stored_options
from history.series.night import configuration_name
from history.series.series import in_environment
from history.series.variants import definition_in
from history.store.records import (
    CONFIRMS,
    FAILED,
    NO_NIGHT,
    Environment,
    FailureCause,
    SessionStatus,
    VersionFailure,
)
from history.store.schema import machines, nights, points, series, sessions
from history.timestamps import from_text

MAX_PARTIAL = 3
"""The sessions in which the machine kept a version from some of its steps, after which they count as its
result: measured again each night it would take the time of everything else."""


@dataclass(frozen=True)
class KnownResult:
    """What the history knows of a version in an environment: a result, or a failure of its own."""

    version: str
    measured_at: datetime
    failure: str = ""
    """Why it failed; empty when it has a result."""

    definition: Mapping[str, Any] | None = None
    """Of a variant that failed, what it was then."""


def known_results(
    connection: Connection, environment: Environment, versions: Collection[str]
) -> dict[str, KnownResult]:
    """Return what is known of those of the versions that need not be measured again in an environment.

    A result is one beside the base's in a finished session. A version whose steps the machine cut short has
    none yet, nor has one that was not built: what is known not to compile fails at once when it is tried.
    """
    found = own_failures(connection, environment, versions)
    partial: dict[str, int] = {}
    for version, began, options in _measured(connection, environment, versions):
        failure = failures_in(options).get(version)
        if failure is not None and failure.cause is FailureCause.MACHINE:
            partial[version] = partial.get(version, 0) + 1
            if partial[version] < MAX_PARTIAL:
                continue
        found[version] = KnownResult(version, began)
    return found


def was_hindered(options: Mapping[str, Any]) -> bool:
    """Return whether the machine kept any version of a session from being measured, by its options."""
    return any(failure.cause is FailureCause.MACHINE for failure in failures_in(options).values())


def own_failures(
    connection: Connection, environment: Environment, versions: Collection[str]
) -> dict[str, KnownResult]:
    """Return those of the versions whose servers failed because of themselves, with their last failure."""
    return {result.version: result for result in _failures(connection, environment, versions)}


def failures_in(options: Mapping[str, Any]) -> dict[str, VersionFailure]:
    """Return the versions that failed in a session, from its options; empty for those of older Tidemarks."""
    found = {}
    for version, failure in (options.get(FAILED) or {}).items():
        if isinstance(failure, dict) and failure.get("cause") in set(FailureCause):
            found[version] = VersionFailure(FailureCause(failure["cause"]), str(failure.get("reason", "")))
    return found


def _measured(
    connection: Connection, environment: Environment, versions: Collection[str]
) -> Iterator[tuple[str, datetime, Mapping[str, Any]]]:
    """Yield the results of versions in order of time, each with the options of its session."""
    night, base = nights.alias("night"), nights.alias("base")
    query = (
        select(night.c.version, sessions.c.started_at, sessions.c.options)
        .join_from(night, sessions, sessions.c.id == night.c.session_id)
        .join(base, (base.c.session_id == night.c.session_id) & (base.c.is_base == 1))
        .where(
            in_environment(night, environment),
            night.c.version.in_(list(versions)),
            sessions.c.status == SessionStatus.FINISHED,
            has_points(night),
            has_points(base),
        )
        .order_by(sessions.c.started_at)
    )
    for version, began, options in connection.execute(query):
        yield version, from_text(began), stored_options(options)


def has_points(night: FromClause) -> ColumnElement[bool]:
    """Return the condition that a row of `nights`, or of an alias of it, has any value."""
    columns = ("box", "suite", "configuration", "branch")
    return (
        exists()
        .where(points.c.session_id == night.c.session_id, points.c.series_id == series.c.id)
        .where(*(series.c[name] == night.c[name] for name in columns))
    )


def _failures(
    connection: Connection, environment: Environment, versions: Collection[str]
) -> Iterator[KnownResult]:
    """Yield the versions whose servers failed because of themselves, in order of time."""
    query = (
        select(sessions)
        .join_from(sessions, machines, sessions.c.machine_id == machines.c.id)
        .where(
            machines.c.hostname == environment.box,
            sessions.c.suite == environment.suite,
            sessions.c.status.in_((SessionStatus.FINISHED, SessionStatus.FAILED)),
            sessions.c.options.contains(f'"{FAILED}":'),
        )
        .order_by(sessions.c.started_at)
    )
    for row in connection.execute(query).mappings():
        options = stored_options(row["options"])
        is_night = CONFIRMS not in options and not any(options.get(name) for name in NO_NIGHT)
        if not is_night or configuration_name(dict(row)) != environment.configuration:
            continue
        for version, failure in failures_in(options).items():
            is_built = version not in (options.get("not_built") or {})
            if version in versions and is_built and failure.cause is FailureCause.VERSION:
                defined = definition_in(options, version.partition("#")[2])
                yield KnownResult(version, from_text(row["started_at"]), failure.reason, defined)
