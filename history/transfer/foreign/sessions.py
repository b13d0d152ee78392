"""Foreign values as rows of a history: a finished session for each occasion they were measured on.

A person names the base of a table, and each session keeps which of its versions it is.
"""

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from sqlalchemy import Connection, case, select, update

from build.version import parse_version
from history.errors import stored_options
from history.series.night import branch_line
from history.series.series import base_branches
from history.store.records import BASE, IMPORTED, PRIMARY_METRIC, Environment, RunStatus, SessionStatus
from history.store.schema import nights, runs, sessions
from history.timestamps import to_text
from history.transfer.foreign.values import Given, Location, Occasion, Value, refuse
from history.transfer.foreign.version_names import version_of
from history.transfer.portable_schema import PORTABLE, Row
from history.transfer.row_source import Item, TransferError, checked
from suites.metrics import METRICS, PRIMARIES, PRIMARY, Role

UNKNOWN = "unknown"

MAX_NAMED = 12
"""The branches that an error lists at most."""

Run = tuple[str, str, int]
"""Version, step, repetition."""

Runs = dict[Run, dict[str, Value]]
"""Values of each run by metric, in the order of the tables."""

Versions = Mapping[Occasion, Sequence[str]]
"""The versions that were measured on each occasion, in the order of the table."""


class ImportedRows:
    """Foreign values as a source. The same values give the same rows, under the same names."""

    left_out = ()
    where = "import"

    def __init__(
        self,
        values: Sequence[Value],
        cores: int | None = None,
        positions: Mapping[str, Mapping[str, int]] | None = None,
        bases: Mapping[str, str] | None = None,
        stored: Mapping[str, Mapping[str, object]] | None = None,
    ) -> None:
        """`positions` and `stored` are steps and options that the history has, `bases` versions; by session.

        Raises TransferError when two rows contradict each other.
        """
        self._cores = cores or 0
        self._places = [value.place for value in values]
        self._number = {place: number for number, place in reversed(list(enumerate(self._places, start=1)))}
        self._by_occasion: defaultdict[Occasion, Runs] = defaultdict(dict)
        self._positions = positions or {}
        self.bases = bases or {}
        self._stored = stored or {}
        repeated = [value.place for value in values if not _add(self._by_occasion[value.occasion], value)]
        self.notes = tuple(_repeated_text(repeated))

    def place(self, item: Item) -> str:
        """Return the row that a value stood in, or the first one that made the item needed."""
        return str(self._places[item.number - 1])

    def items(self) -> Iterator[Item]:
        """All rows."""
        yield from self._shared()
        for occasion in sorted(self._by_occasion, key=lambda occasion: (occasion.when, uid_of(occasion))):
            yield from self._session(occasion, self._by_occasion[occasion])

    def _shared(self) -> Iterator[Item]:
        first: dict[tuple[str, str], Value] = {}
        for its_runs in self._by_occasion.values():
            for value in (value for values in its_runs.values() for value in values.values()):
                first.setdefault(("machines", value.occasion.machine), value)
                first.setdefault(("builds", f"{value.version} {value.commit}"), value)
                if value.configuration:
                    first.setdefault(("configurations", value.configuration), value)
        make: Mapping[str, Callable[[Value], Row]] = {
            "machines": lambda value: self._machine(value.occasion.machine),
            "builds": _build,
            "configurations": lambda value: _configuration(value.configuration),
        }
        for table, row_of in make.items():
            for (kind, _), value in first.items():
                if kind == table:
                    yield self._item(table, row_of(value), value.place)

    def _session(self, occasion: Occasion, its_runs: Runs) -> Iterator[Item]:
        uid = uid_of(occasion)
        first = next(iter(next(iter(its_runs.values())).values()))
        yield self._item("sessions", _session(occasion, self._options(uid, its_runs)), first.place)
        positions = dict(self._positions.get(uid, {}))
        for _, step, _ in its_runs:
            positions.setdefault(step, max(positions.values(), default=0) + 1)
        for run, values in its_runs.items():
            value = next(iter(values.values()))
            yield self._item("runs", _run(uid, run, value, positions[run[1]]), value.place)
        for run, values in its_runs.items():
            for metric, value in values.items():
                row = _key(uid, run) | {"metric": metric, "value": value.number}
                yield self._item("measurements", row, value.place)

    def _options(self, uid: str, its_runs: Runs) -> Mapping[str, object]:
        """The options of a session: those that the history has, which only its base may replace later."""
        if uid in self._stored:
            return self._stored[uid]
        primary, base = _primary(its_runs), self.bases.get(uid)
        return {
            IMPORTED: True,
            **({} if base is None else {BASE: base}),
            **({} if primary == PRIMARY else {PRIMARY_METRIC: primary}),
        }

    def _machine(self, name: str) -> Row:
        return {
            "fingerprint": _digest("machine", name),
            "hostname": name,
            "cpu_model": UNKNOWN,
            "cores": self._cores,
            "memory_bytes": 0,
            "kernel": UNKNOWN,
            "operating_system": UNKNOWN,
            "details": _json({"imported": True}),
        }

    def _item(self, table: str, row: Row, place: Location) -> Item:
        try:
            return Item(PORTABLE[table], checked(PORTABLE[table], row), self._number[place])
        except ValueError as error:
            raise refuse(place, str(error)) from error


def imported_rows(values: Sequence[Value], given: Given, connection: Connection) -> ImportedRows:
    """Return values as rows that go with what a history has of their sessions.

    Raises TransferError when two values contradict each other, or nothing is the base that is given.
    """
    by_occasion: defaultdict[Occasion, dict[str, None]] = defaultdict(dict)
    for value in values:
        by_occasion[value.occasion][value.version] = None
    measured = {occasion: list(versions) for occasion, versions in by_occasion.items()}
    found = _named_bases(given.base, measured) if given.base else _known_bases(connection, measured)
    return ImportedRows(
        values,
        given.cores,
        _known_positions(connection),
        {uid_of(occasion): version for occasion, version in found.items()},
        _stored_options(connection, map(uid_of, measured)),
    )


def _known_positions(connection: Connection) -> Mapping[str, Mapping[str, int]]:
    """Return the positions of steps by uid of the imported session; further tables of it must keep them."""
    found: defaultdict[str, dict[str, int]] = defaultdict(dict)
    query = (
        select(sessions.c.uid, runs.c.step, runs.c.step_position)
        .join_from(sessions, runs, runs.c.session_id == sessions.c.id)
        .where(sessions.c.uid.like(f"{PREFIX}%"))
        .distinct()
    )
    for uid, step, position in connection.execute(query):
        found[uid][step] = position
    return found


PREFIX = "imported-"
"""The prefix of the uid of an imported session."""


def uid_of(occasion: Occasion) -> str:
    """Return the name of an occasion's session: the same for all tables of it."""
    digest = _digest("session", occasion.machine, occasion.suite, to_text(occasion.when), occasion.profile)
    return f"{PREFIX}{occasion.when:%Y%m%d}-{digest[:12]}"


def _add(its_runs: Runs, value: Value) -> bool:
    """Add a value; return False for a row that says what an earlier row of its file said.

    Raises TransferError when an earlier row says something else.
    """
    values = its_runs.setdefault((value.version, value.step, value.repetition), {})
    first = next(iter(values.values()), value)
    if first.configuration != value.configuration:
        raise refuse(
            value.place,
            f"the configuration is '{value.configuration}'; '{first.configuration}' in {first.place}",
        )
    before = values.setdefault(value.metric, value)
    if before.number == value.number:
        return before is value or before.place.file != value.place.file
    said = f"{value.metric} of {value.version} in {value.step}, round {value.repetition}"
    raise refuse(
        value.place,
        f"{said} is {value.number:g}, and {before.number:g} in {before.place}",
        "of several rounds give each its number in a column 'repetition'",
    )


def _key(uid: str, run: Run) -> Row:
    version, step, repetition = run
    return {"session": uid, "version": version, "step": step, "repetition": repetition}


def _repeated_text(places: Sequence[Location]) -> Iterator[str]:
    """Say how many rows of a file are there twice, and where the first of them is."""
    by_file = Counter(place.file for place in places)
    for file, count in by_file.items():
        first = next(place for place in places if place.file == file)
        rows = "1 row repeats an earlier one" if count == 1 else f"{count} rows repeat earlier ones"
        yield (
            f"{file}: {rows}: left out, such as {first.row}; "
            "rounds need numbers of their own in a column 'repetition'"
        )


def _primary(its_runs: Runs) -> str:
    """The metric that verdicts are about: throughput, or what most runs have instead, such as a latency."""
    counts = Counter(metric for values in its_runs.values() for metric in values)
    usual = [metric for metric in PRIMARIES if metric in counts]
    directed = [metric for metric in counts if METRICS[metric].role is not Role.CONTEXT]
    return max(usual or directed or counts, key=lambda metric: counts[metric])


def _session(occasion: Occasion, options: Mapping[str, object]) -> Row:
    when = to_text(occasion.when)
    return {
        "uid": uid_of(occasion),
        "machine": _digest("machine", occasion.machine),
        "suite": occasion.suite,
        "profile": occasion.profile,
        "suite_digest": "",
        "seed": 0,
        "durability": UNKNOWN,
        "repetitions": 1,
        "started_at": when,
        "ended_at": when,
        "status": SessionStatus.FINISHED.value,
        "command": "./tidemark history import",
        "tools": _json({}),
        "options": _json(options),
        "process_id": 0,
        "process_start_ticks": 0,
        "boot_id": "",
    }


def _run(uid: str, run: Run, value: Value, position: int) -> Row:
    when = to_text(value.occasion.when)
    configuration = _configuration(value.configuration)["digest"] if value.configuration else None
    return _key(uid, run) | {
        "build": _build_key(value),
        "configuration": configuration,
        "step_position": position,
        "position": position,
        "status": RunStatus.FINISHED.value,
        "failure": None,
        "warnings": _json([]),
        "started_at": when,
        "ended_at": when,
    }


def _build_key(value: Value) -> str:
    return _digest("build", value.version, *filter(None, [value.commit]))


def _build(value: Value) -> Row:
    parsed = parse_version(value.version)
    return {
        "key": _build_key(value),
        "engine": parsed.engine.value,
        "release": parsed.ref,
        "source_kind": "imported",
        "source_digest": f"git:{value.commit}:" if value.commit else "",
        "compiler": UNKNOWN,
        "manifest": _json({"imported": True, "version": value.version}),
    }


def _configuration(name: str) -> Row:
    settings = _json({"imported": name})
    return {"digest": hashlib.sha256(settings.encode()).hexdigest(), "settings": settings}


def _digest(*parts: str) -> str:
    return hashlib.sha256(_json(["imported", *parts]).encode()).hexdigest()


def _json(value: object) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


# --- bases


def _named_bases(text: str, measured: Versions) -> Mapping[Occasion, str]:
    """Return the version that a person means by a branch or version, for each occasion that has it.

    Raises TransferError when none has it, or one has several versions of the branch.
    """
    found = {}
    for occasion, versions in measured.items():
        matching = _matching(_as_version(text), versions)
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


def _known_bases(connection: Connection, measured: Versions) -> Mapping[Occasion, str]:
    """Return the bases that earlier tables of the same machine, suite and profile were given."""
    found = {}
    for occasion, versions in measured.items():
        place = Environment(occasion.machine, occasion.suite, f"{occasion.profile} unknown")
        known = (_matching(base, versions) for base in base_branches(connection, place))
        base = next((matching for matching in known if matching), [])
        if len(base) == 1:
            found[occasion] = base[0]
    return found


def _stored_options(connection: Connection, uids: Iterable[str]) -> Mapping[str, Mapping[str, object]]:
    """Return the options of sessions that the history already has, by uid."""
    rows = connection.execute(select(sessions.c.uid, sessions.c.options))
    wanted = set(uids)
    return {row.uid: stored_options(row.options) for row in rows if row.uid in wanted}


def record_bases(connection: Connection, bases: Mapping[str, str]) -> None:
    """Record the bases of imported sessions, by uid."""
    for row in connection.execute(select(sessions.c.id, sessions.c.uid, sessions.c.options)).all():
        base = bases.get(row.uid)
        options = stored_options(row.options) if base is not None else {}
        if base is None or options.get(BASE) == base:
            continue
        kept = _json({**options, BASE: base})
        connection.execute(update(sessions).where(sessions.c.id == row.id).values(options=kept))
        is_base = case((nights.c.version == base, 1), else_=0)
        connection.execute(update(nights).where(nights.c.session_id == row.id).values(is_base=is_base))


def _matching(name: str, versions: Iterable[str]) -> list[str]:
    """Return the version with a name, else those of the branch with that name."""
    exact = [version for version in versions if version == name]
    return exact or [version for version in versions if branch_line(parse_version(version)) == name]


def _as_version(text: str) -> str:
    try:
        return str(version_of(text))
    except ValueError:
        return text
