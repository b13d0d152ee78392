"""CPU profiles of runs: folded stacks, stored compressed, and read by version and step."""

import json
import zlib
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, FromClause, Select, func, select

from history.errors import DamagedTextError, stored_object
from history.store.schema import counted_profiles, profiles, runs, sessions, wait_profiles
from suites.profiling.stacks import CLIENT_STATES, COUNTED_EVENT, COUNTED_FREQUENCY, StepProfile

COMPRESSION = 9
"""zlib's highest level: stacks are repetitive, and a run has few of them."""


MAX_BYTES = 256 * 1024**2
"""The most that a profile can unpack to, so that a damaged one does not fill the memory."""

MAX_SAMPLES = 10**12
"""Of one stack."""


def profiles_of(
    connection: Connection, session_id: int, step: str, version: str
) -> Mapping[int, StepProfile]:
    """Return the profiles of a version on a step of a session, by round."""
    profile = profiles.c
    columns = (profile.event, profile.frequency, profile.queries, profile.lost, profile.stacks)
    return {
        repetition: StepProfile(event, frequency, queries, lost, unpacked(stacks))
        for repetition, event, frequency, queries, lost, stacks in connection.execute(
            _by_round(profiles, columns, session_id, step, version)
        )
    }


def counted_profiles_of(
    connection: Connection, session_id: int, step: str, version: str
) -> Mapping[int, StepProfile]:
    """Return the counted instructions of a version on a step of a session by function, by round."""
    columns = (counted_profiles.c.queries, counted_profiles.c.stacks, counted_profiles.c.calls)
    return {
        repetition: StepProfile(
            COUNTED_EVENT, COUNTED_FREQUENCY, queries, 0, unpacked(stacks), unpacked(calls)
        )
        for repetition, queries, stacks, calls in connection.execute(
            _by_round(counted_profiles, columns, session_id, step, version)
        )
    }


def steps_that_execute(
    connection: Connection, engine: str, functions: Collection[str]
) -> Mapping[str, Sequence[str]]:
    """Return the steps that executed any of the functions when they were last counted, by suite.

    Functions are named without parameters. What the compiler has put into its callers is not found.
    """
    query = (
        select(sessions.c.suite, runs.c.step, func.max(counted_profiles.c.run_id))
        .join_from(counted_profiles, runs, counted_profiles.c.run_id == runs.c.id)
        .join(sessions, runs.c.session_id == sessions.c.id)
        .where(runs.c.version.startswith(f"{engine}@", autoescape=True))
        .group_by(sessions.c.suite, runs.c.step)
        .order_by(sessions.c.suite, runs.c.step)
    )
    found: defaultdict[str, list[str]] = defaultdict(list)
    for suite, step, run in connection.execute(query).all():
        counted = select(counted_profiles.c.stacks).where(counted_profiles.c.run_id == run)
        stacks = unpacked(connection.execute(counted).scalar_one())
        frames = {frame.partition("(")[0] for stack in stacks for frame in stack.split(";")[1:]}
        if any(frame == name or frame.endswith(f"::{name}") for frame in frames for name in functions):
            found[suite].append(step)
    return found


def wait_profiles_of(
    connection: Connection, session_id: int, step: str, version: str
) -> Mapping[int, StepProfile]:
    """Return what the clients of a version did on a step of a session by round."""
    columns = (wait_profiles.c.frequency, wait_profiles.c.queries, wait_profiles.c.stacks)
    return {
        repetition: StepProfile(CLIENT_STATES, frequency, queries, 0, unpacked(stacks))
        for repetition, frequency, queries, stacks in connection.execute(
            _by_round(wait_profiles, columns, session_id, step, version)
        )
    }


def _by_round(
    table: FromClause, columns: Sequence[ColumnElement[Any]], session_id: int, step: str, version: str
) -> Select[*tuple[Any, ...]]:
    """Return the query of the round and `columns` of a kind of profiles of a version on a step, in order."""
    return (
        select(runs.c.repetition, *columns)
        .join_from(table, runs, table.c.run_id == runs.c.id)
        .where(runs.c.session_id == session_id, runs.c.step == step, runs.c.version == version)
        .order_by(runs.c.position, runs.c.id)
    )


def packed(stacks: Mapping[str, int]) -> bytes:
    """Return stacks as they are stored: JSON compressed by zlib, sorted so that neighbours are similar."""
    return zlib.compress(
        json.dumps(dict(sorted(stacks.items())), separators=(",", ":")).encode(), COMPRESSION
    )


def unpacked(content: bytes) -> Mapping[str, int]:
    """Return the stacks that `packed` has stored. Raises DamagedTextError for anything else."""
    try:
        inflater = zlib.decompressobj()
        plain = inflater.decompress(content, MAX_BYTES)
        if not inflater.eof:
            raise DamagedTextError("a profile is cut off, or too large")
        stacks = stored_object(plain)
    except zlib.error as error:
        raise DamagedTextError(f"a profile cannot be decompressed: {error}") from error
    if not all(type(count) is int and 0 <= count <= MAX_SAMPLES for count in stacks.values()):
        raise DamagedTextError("a profile has a number of samples that is not possible")
    return stacks
