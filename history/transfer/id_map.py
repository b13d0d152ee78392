"""Ids of one database by the keys that travel."""

from collections.abc import Sequence
from itertools import count

from sqlalchemy import Connection, select

from history.store.schema import runs
from history.transfer.portable_schema import PORTABLE, Key, Portable, Reference, Row


class Names:
    """What the rows of a database are called. Runs are known of one session at a time."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._ids: dict[str, dict[Key, int]] = {name: {} for name in PORTABLE}
        self._promises = count(-1, -1)

    def find(self, table: str, key: Key) -> int | None:
        """The id of a row; None when there is none."""
        ids = self._ids[table]
        if key not in ids and table != "runs":
            found = self._look_up(PORTABLE[table], key)
            if found is not None:
                ids[key] = found
        return ids.get(key)

    def promise(self, table: Portable, row: Row) -> None:
        """A row that will be there when it is referred to: until then it has an id below zero of its own."""
        if "id" in table.table.c and table.name != "dropped_rounds":
            self._ids[table.name].setdefault(table.key_of(row), next(self._promises))

    def of_reference(self, reference: Reference, row: Row) -> int | None:
        """What a row's fields point to. Raises LookupError that says what is not there."""
        key = tuple(row[name] for name in reference.fields)
        if reference.optional and None in key:
            return None
        found = self.find(reference.target, key)
        if found is None:
            raise LookupError(f"{reference.target} has no {' '.join(map(str, key))}")
        return found

    def enter_session(self, uid: str) -> int | None:
        """The id of a session, whose runs are known from now on; None when it is not there."""
        self._ids["runs"] = {}
        session_id = self.find("sessions", (uid,))
        if session_id is not None and session_id >= 0:
            query = select(runs.c.version, runs.c.step, runs.c.repetition, runs.c.id)
            for *key, run_id in self._connection.execute(query.where(runs.c.session_id == session_id)):
                self._ids["runs"][(uid, *key)] = run_id
        return session_id

    def _look_up(self, table: Portable, key: Sequence[object]) -> int | None:
        columns = table.table.c
        where = (columns[name] == value for name, value in zip(table.key, key, strict=True))
        return self._connection.execute(select(columns.id).where(*where)).scalar()
