"""Which session is compared: the latest that holds all that is named, by version or by branch."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from build.version import Version, parse_version
from history.store.records import SessionStatus
from history.store.sql import Source


@dataclass(frozen=True)
class Name:
    """A version, or a branch that stands for its version of the night."""

    version: Version
    is_branch: bool = False

    def __str__(self) -> str:
        return str(self.version)

    def matches(self, night: str) -> str:
        """Whether a row of nights is of this name: the condition, where the row and the name are `night`."""
        return f"{night}.{'branch' if self.is_branch else 'version'} = :{night}"


@dataclass(frozen=True)
class SessionFilter:
    """Which sessions count; None leaves a choice open."""

    suite: str | None = None
    profile: str | None = None
    uid: str | None = None
    box: str | None = None

    def __str__(self) -> str:
        said = {"suite": self.suite, "profile": self.profile, "session": self.uid, "machine": self.box}
        return "".join(f", {name} {value}" for name, value in said.items() if value)


def named(source: Source, version: Version) -> Name:
    """What a name of the command line means: a version if any session has it, else a branch if any has."""
    name = str(version)
    of_version = (
        f"SELECT session_id FROM {each} WHERE version = :name LIMIT 1" for each in ("runs", "nights")
    )
    if any(source.value(question, name=name) is not None for question in of_version):
        return Name(version)
    of_branch = "SELECT session_id FROM nights WHERE branch = :name LIMIT 1"
    return Name(version, is_branch=source.value(of_branch, name=name) is not None)


def latest(
    source: Source, names: Sequence[Name], limits: SessionFilter
) -> tuple[int, tuple[Version, ...]] | None:
    """The session started last that holds all names: its id, and the versions that they stand for there."""
    found = [*_underived(source, names, limits), *(_ended(source, names, limits) if names else ())]
    # What a bisect measured was measured for its question: it serves where nothing else does.
    found = found or [*_by_runs(source, names, limits)]
    if not found:
        return None
    _, session_id, *versions = max(map(tuple, found))
    return session_id, tuple(map(parse_version, versions)) or tuple(each.version for each in names)


def _ended(source: Source, names: Sequence[Name], limits: SessionFilter) -> Sequence[Sequence[Any]]:
    """Of the sessions that have nights, which are found by version or branch."""
    nights = [f"night_{number}" for number in range(len(names))]
    last = nights[-1]  # the contender, which there are fewer sessions of than of the base
    conditions = []
    for name, night in zip(names, nights, strict=True):
        conditions += [name.matches(night), f"{night}.build_id IS NOT NULL"]
        if night is not last:
            conditions.append(f"{night}.session_id = {last}.session_id")
    conditions += [f"{one}.branch != {other}.branch" for one, other in combinations(nights, 2)]
    its_session = f"EXISTS (SELECT 1 FROM sessions WHERE sessions.id = {last}.session_id AND sessions."
    given = {
        f"{last}.box = :box": limits.box,
        f"{last}.suite = :suite": limits.suite,
        f"{its_session}profile = :profile)": limits.profile,
        f"{its_session}uid = :uid)": limits.uid,
    }
    conditions += [condition for condition, wanted in given.items() if wanted is not None]
    return source.rows(
        f"SELECT {last}.started_at, {last}.session_id, {', '.join(f'{night}.version' for night in nights)}"
        f" FROM {', '.join(f'nights AS {night}' for night in reversed(nights))}"
        f" WHERE {' AND '.join(conditions)}"
        f" ORDER BY {last}.started_at DESC, {last}.session_id DESC LIMIT 1",
        **{night: str(name) for name, night in zip(names, nights, strict=True)},
        **_values(limits),
    )


IS_NO_BISECT = "NOT EXISTS (SELECT 1 FROM bisect_events WHERE bisect_events.session_uid = sessions.uid)"
"""Whether a row of sessions is of no bisect."""


def _underived(source: Source, names: Sequence[Name], limits: SessionFilter) -> Sequence[Sequence[Any]]:
    """Of the sessions that have no night: they run, or confirm, so that only versions are known. Without
    names of all sessions."""
    running = f"sessions.status = '{SessionStatus.RUNNING}'"
    confirms = "sessions.id IN (SELECT session_id FROM confirmations)"
    return _by_runs(source, names, limits, IS_NO_BISECT, *([f"({running} OR {confirms})"] if names else []))


def _by_runs(
    source: Source, names: Sequence[Name], limits: SessionFilter, *conditions: str
) -> Sequence[Sequence[Any]]:
    """Of the sessions that fulfil all conditions and have runs of all names, which are versions."""
    given = {
        "EXISTS (SELECT 1 FROM machines"
        " WHERE machines.id = sessions.machine_id AND machines.hostname = :box)": limits.box,
        "sessions.suite = :suite": limits.suite,
        "sessions.profile = :profile": limits.profile,
        "sessions.uid = :uid": limits.uid,
    }
    of_runs = "SELECT 1 FROM runs WHERE runs.session_id = sessions.id AND runs.version ="
    every = [
        *conditions,
        *(f"EXISTS ({of_runs} :name_{number})" for number in range(len(names))),
        *(condition for condition, wanted in given.items() if wanted is not None),
    ]
    where = f" WHERE {' AND '.join(every)}" if every else ""
    return source.rows(
        f"SELECT sessions.started_at, sessions.id FROM sessions{where}"
        " ORDER BY sessions.started_at DESC, sessions.id DESC LIMIT 1",
        **{f"name_{number}": str(name) for number, name in enumerate(names)},
        **_values(limits),
    )


def _values(limits: SessionFilter) -> dict[str, object]:
    return {name: wanted for name, wanted in vars(limits).items() if wanted is not None}
