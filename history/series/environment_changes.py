"""What else changed from one night to the next: machine, base, suite, tools. It explains a shift of then."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, RowMapping, select

from build.version import parse_version
from history.errors import DamagedTextError, stored_object
from history.series.matrix import SeriesMatrix
from history.series.series import AT_ONCE, Night
from history.store.schema import machines, nights, sessions

SETTINGS = "settings"
"""In a machine's details: what the fingerprint covers besides its columns."""

_FACTS = ("cpu_model", "cores", "memory_bytes", "kernel", "operating_system")
_TOOLS = ("generator",)


def markers(connection: Connection, matrix: SeriesMatrix) -> Mapping[int, str]:
    """Position of a night in the matrix -> what changed since the night before it."""
    return changes_between(connection, matrix.nights, matrix.base)


def changes_between(connection: Connection, its_nights: Sequence[Night], base: str) -> Mapping[int, str]:
    """Position of a night of a branch at one place -> what changed since the night before it.

    The nights are in order; `base` is the branch that was their base.
    """
    ids = [night.session_id for night in its_nights]
    rows = _rows(connection, ids, base)
    known = {row["id"]: row for row in _machines(connection, {row["machine_id"] for row in rows.values()})}
    found = {}
    before: RowMapping | None = None
    for place, session_id in enumerate(ids):
        now = rows.get(session_id)
        if now is None:
            continue  # a night without the base has no ratio, and so no shift
        if before is not None:
            said = [*_machine_changes(before, now, known), *_others(before, now)]
            if said:
                found[place] = "; ".join(said)
        before = now
    return found


def _rows(connection: Connection, ids: Sequence[int], base: str) -> dict[int, RowMapping]:
    found: dict[int, RowMapping] = {}
    for start in range(0, len(ids), AT_ONCE):
        query = (
            select(
                sessions.c.id,
                sessions.c.machine_id,
                sessions.c.suite_digest,
                sessions.c.tools,
                nights.c.version,
                nights.c.build_id,
            )
            .join_from(sessions, nights, nights.c.session_id == sessions.c.id)
            .where(sessions.c.id.in_(ids[start : start + AT_ONCE]), nights.c.branch == base)
        )
        found |= {row["id"]: row for row in connection.execute(query).mappings()}
    return found


def _machines(connection: Connection, ids: set[int]) -> Sequence[RowMapping]:
    return connection.execute(select(machines).where(machines.c.id.in_(ids))).mappings().all()


def _machine_changes(before: RowMapping, now: RowMapping, known: Mapping[int, RowMapping]) -> list[str]:
    if before["machine_id"] == now["machine_id"]:
        return []
    old, new = _described(known[before["machine_id"]]), _described(known[now["machine_id"]])
    names = sorted(name for name in old.keys() | new.keys() if old.get(name) != new.get(name))
    said = ", ".join(f"{name} {old.get(name, 'unknown')} -> {new.get(name, 'unknown')}" for name in names)
    return [f"the machine changed: {said or 'its fingerprint'}"]


def _described(machine: RowMapping) -> dict[str, Any]:
    settings = stored_object(machine["details"]).get(SETTINGS, {})
    if not isinstance(settings, dict):
        raise DamagedTextError(f"the settings of machine {machine['hostname']} are no JSON object")
    return {name.replace("_", " "): machine[name] for name in _FACTS} | dict(settings)


def _others(before: RowMapping, now: RowMapping) -> list[str]:
    said = []
    if before["version"] != now["version"]:
        said.append(f"the base changed: {before['version']} -> {now['version']}")
    elif before["build_id"] != now["build_id"] and parse_version(now["version"]).is_release:
        # A branch is another build whenever it moved: that is no reason to look away.
        said.append(f"the base {now['version']} is another build")
    if before["suite_digest"] != now["suite_digest"]:
        said.append("the suite's files changed")
    old, new = stored_object(before["tools"]), stored_object(now["tools"])
    said += [
        f"{name} changed: {old[name]} -> {new[name]}"
        for name in _TOOLS
        if name in old and name in new and old[name] != new[name]
    ]
    return said
