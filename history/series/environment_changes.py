"""Changes of machine, base, suite or tools from a night to the next, which may explain a shift of it."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, RowMapping, select

from history.errors import DamagedTextError, stored_object, stored_options, stored_version
from history.series.series import IDS_PER_QUERY, Night
from history.series.variants import definition_in
from history.store.schema import machines, nights, sessions
from suites.additions.variant import described

if TYPE_CHECKING:
    from history.series.matrix import SeriesMatrix

SETTINGS = "settings"
"""The key of a machine's details with what the fingerprint covers besides the columns."""

_FACTS = ("cpu_model", "cores", "memory_bytes", "kernel", "operating_system")
_TOOLS = ("generator",)

MEMORY_TOLERANCE = 0.01
"""The share by which the memory of a machine may differ: what a kernel keeps for itself differs by boot."""


@dataclass(frozen=True)
class Marker:
    """What changed since the night before."""

    box: tuple[str, ...] = ()
    """Of the machine and the tools: whatever it moves, it moves in all series of the box."""

    base: tuple[str, ...] = ()
    """Of the base: it shows in the base's own values."""

    work: tuple[str, ...] = ()
    """Of what is measured, the data of the suite or the variant: it may be in a single series."""

    steps: frozenset[str] = frozenset()
    """The steps that do something else: it is in their series alone."""

    def within(self, steps: Collection[str]) -> "Marker":
        """Return what of it concerns these steps."""
        return replace(self, steps=self.steps.intersection(steps))

    def __bool__(self) -> bool:
        """Return whether anything changed."""
        return self != Marker()

    def __str__(self) -> str:
        """Return all of it as text."""
        steps = [f"what {name} does changed" for name in sorted(self.steps)]
        return "; ".join((*self.box, *self.base, *self.work, *steps))


def markers(connection: Connection, matrix: "SeriesMatrix") -> Mapping[int, Marker]:
    """Return what changed since the night before, by position of the night in the matrix."""
    return changes_between(connection, matrix.nights, matrix.base)


def is_same_memory(before: int, now: int) -> bool:
    """Return whether two sizes of memory, in bytes, are of the same machine as far as they tell."""
    return abs(before - now) <= MEMORY_TOLERANCE * max(before, now)


def changes_between(
    connection: Connection, branch_nights: Sequence[Night], base: str | None
) -> Mapping[int, Marker]:
    """Return what changed since the night before, by position of the night.

    `branch_nights` are nights of one branch in one environment, in order; `base` is their base branch.
    """
    ids = [night.session_id for night in branch_nights]
    rows = _rows(connection, ids, base)
    machine_rows = {
        row["id"]: row for row in _machines(connection, {row["machine_id"] for row in rows.values()})
    }
    definitions = _definitions(connection, branch_nights)
    changes = {}
    before: RowMapping | None = None
    for position, session_id in enumerate(ids):
        now = rows.get(session_id)
        if now is None:
            continue  # a night without the base has no ratio, and therefore no shift
        if before is not None:
            definition = _definition_change(definitions.get(before["id"]), definitions.get(session_id))
            steps = changed_steps(before["suite_digest"], now["suite_digest"])
            marker = Marker(
                (*_machine_changes(before, now, machine_rows), *_tool_changes(before, now)),
                tuple(_base_changes(before, now)),
                (*(["the suite changed"] if steps is None else []), *definition),
                steps or frozenset(),
            )
            if marker:
                changes[position] = marker
        before = now
    return changes


def _definitions(connection: Connection, branch_nights: Sequence[Night]) -> dict[int, Mapping[str, Any]]:
    """Return what the variant of a branch was in its nights, by session; empty for a branch without one."""
    names = {night.session_id: night.version.partition("#")[2] for night in branch_nights}
    ids = [session_id for session_id, name in names.items() if name]
    found: dict[int, Mapping[str, Any]] = {}
    for start in range(0, len(ids), IDS_PER_QUERY):
        query = select(sessions.c.id, sessions.c.options).where(
            sessions.c.id.in_(ids[start : start + IDS_PER_QUERY])
        )
        for row in connection.execute(query):
            found[row.id] = definition_in(stored_options(row.options), names[row.id])
    return found


def _definition_change(old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> list[str]:
    if old is None or new is None or old == new:
        return []
    return [f"the variant changed: {described(old) or 'nothing'} -> {described(new) or 'nothing'}"]


def _rows(connection: Connection, ids: Sequence[int], base: str | None) -> dict[int, RowMapping]:
    rows: dict[int, RowMapping] = {}
    for start in range(0, len(ids), IDS_PER_QUERY):
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
            .where(sessions.c.id.in_(ids[start : start + IDS_PER_QUERY]), nights.c.branch == base)
        )
        rows |= {row["id"]: row for row in connection.execute(query).mappings()}
    return rows


def _machines(connection: Connection, ids: set[int]) -> Sequence[RowMapping]:
    return connection.execute(select(machines).where(machines.c.id.in_(ids))).mappings().all()


def _machine_changes(
    before: RowMapping, now: RowMapping, machine_rows: Mapping[int, RowMapping]
) -> list[str]:
    if before["machine_id"] == now["machine_id"]:
        return []
    rows = [machine_rows[session["machine_id"]] for session in (before, now)]
    old, new = map(_properties, rows)
    if is_same_memory(*(row["memory_bytes"] for row in rows)):
        old["memory bytes"] = new["memory bytes"]
        if old == new and rows[0]["memory_bytes"] != rows[1]["memory_bytes"]:
            return []
    names = sorted(name for name in old.keys() | new.keys() if old.get(name) != new.get(name))
    names = ["cpu model"] if "cpu model" in names else names  # another machine differs in much that follows
    text = ", ".join(f"{name} {old.get(name, 'unknown')} -> {new.get(name, 'unknown')}" for name in names)
    return [f"the machine changed: {text or 'its fingerprint'}"]


def _properties(machine: RowMapping) -> dict[str, Any]:
    settings = stored_object(machine["details"]).get(SETTINGS, {})
    if not isinstance(settings, dict):
        raise DamagedTextError(f"the settings of machine {machine['hostname']} are not a JSON object")
    return {name.replace("_", " "): machine[name] for name in _FACTS} | dict(settings)


def _base_changes(before: RowMapping, now: RowMapping) -> list[str]:
    if before["version"] != now["version"]:
        return [f"the base changed: {before['version']} -> {now['version']}"]
    if before["build_id"] != now["build_id"] and stored_version(now["version"]).is_release:
        # A base branch is another build after every commit, which does not explain a shift.
        return [f"the base {now['version']} is another build"]
    return []


def changed_steps(before: str, now: str) -> frozenset[str] | None:
    """Return the steps that do something else than in a session before; None for all, on other data.

    `before` and `now` are what sessions record of their suite (Suite.work_digests). The digest of all files,
    which older sessions have, tells nothing beside one of what is done: to update Tidemark changes no work.
    """
    if before == now:
        return frozenset()
    knows = [text.startswith("{") for text in (before, now)]
    if not all(knows):
        return frozenset() if any(knows) else None
    old, new = map(stored_object, (before, now))
    if old.get("data") != new.get("data"):
        return None
    steps, others = _steps_of(old), _steps_of(new)
    return frozenset(name for name in steps.keys() & others.keys() if steps[name] != others[name])


def _steps_of(work: Mapping[str, Any]) -> Mapping[str, Any]:
    steps = work.get("steps")
    return steps if isinstance(steps, dict) else {}


def _tool_changes(before: RowMapping, now: RowMapping) -> list[str]:
    old, new = stored_object(before["tools"]), stored_object(now["tools"])
    return [
        f"{name} changed: {old[name]} -> {new[name]}"
        for name in _TOOLS
        if name in old and name in new and old[name] != new[name]
    ]
