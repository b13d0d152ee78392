"""The base of imported tables: a person names it, and each session keeps which of its versions it is."""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping

from sqlalchemy import Connection, case, select, update

from build.version import parse_version
from history.errors import stored_options
from history.series.night import branch_line
from history.series.series import base_branches
from history.store.records import BASE, Environment
from history.store.schema import nights, sessions
from history.transfer.foreign.values import Occasion, Value
from history.transfer.foreign.version_names import version_of
from history.transfer.row_source import TransferError

Versions = Mapping[Occasion, tuple[str, ...]]
"""The versions that were measured on each occasion, in the order of the table."""

MAX_NAMED = 12
"""The branches that an error lists at most."""


def versions_by_occasion(values: Iterable[Value]) -> Versions:
    """Return the versions of each occasion."""
    found: defaultdict[Occasion, dict[str, None]] = defaultdict(dict)
    for value in values:
        found[value.occasion][value.version] = None
    return {occasion: tuple(versions) for occasion, versions in found.items()}


def named_bases(text: str, measured: Versions) -> Mapping[Occasion, str]:
    """Return the version that a person means by a branch or version, for each occasion that has it.

    Raises TransferError when none has it, or one has several versions of the branch.
    """
    found = {}
    for occasion, versions in measured.items():
        matching = _matching(_read(text), versions)
        if len(matching) > 1:
            raise TransferError(
                f"--base {text} is any of {', '.join(matching)}",
                where=f"{occasion.machine}, {occasion.suite}, {occasion.when:%Y-%m-%d}",
                hint="name one of them",
            )
        if matching:
            found[occasion] = matching[0]
    if not found:
        names = sorted({branch_line(parse_version(name)) for names in measured.values() for name in names})
        more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
        raise TransferError(
            f"--base {text}: no version of the tables is that",
            hint=f"name one of their branches: {', '.join(names[:MAX_NAMED])}{more}",
        )
    return found


def known_bases(connection: Connection, measured: Versions) -> Mapping[Occasion, str]:
    """Return the bases that earlier tables of the same machine, suite and profile were given."""
    found = {}
    for occasion, versions in measured.items():
        place = Environment(occasion.machine, occasion.suite, f"{occasion.profile} unknown")
        known = (_matching(base, versions) for base in base_branches(connection, place))
        base = next((matching for matching in known if matching), [])
        if len(base) == 1:
            found[occasion] = base[0]
    return found


def stored_choices(connection: Connection, uids: Iterable[str]) -> Mapping[str, Mapping[str, object]]:
    """Return the options of sessions that the history already has, by uid."""
    rows = connection.execute(select(sessions.c.uid, sessions.c.options))
    wanted = set(uids)
    return {row.uid: stored_options(row.options) for row in rows if row.uid in wanted}


def record_bases(connection: Connection, bases: Mapping[str, str]) -> int:
    """Record the bases of imported sessions, by uid; return how many had another one or none."""
    changed = 0
    for row in connection.execute(select(sessions.c.id, sessions.c.uid, sessions.c.options)).all():
        base = bases.get(row.uid)
        options = stored_options(row.options) if base is not None else {}
        if base is None or options.get(BASE) == base:
            continue
        text = json.dumps({**options, BASE: base}, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        connection.execute(update(sessions).where(sessions.c.id == row.id).values(options=text))
        is_base = case((nights.c.version == base, 1), else_=0)
        connection.execute(update(nights).where(nights.c.session_id == row.id).values(is_base=is_base))
        changed += 1
    return changed


def _matching(name: str, versions: Iterable[str]) -> list[str]:
    """Return the version with a name, else those of the branch with that name."""
    exact = [version for version in versions if version == name]
    return exact or [version for version in versions if branch_line(parse_version(version)) == name]


def _read(text: str) -> str:
    try:
        return str(version_of(text))
    except ValueError:
        return text
