"""Several sources of one merge: what they say of one session has to agree before any of it is written."""

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Sequence

from history.transfer.portable_schema import PROGRESS, Key, Portable, Row
from history.transfer.row_source import Item, RowSource, TransferError


def require_agreement(sources: Sequence[RowSource]) -> None:
    """Raises TransferError when two sources hold a row of one session that differs.

    Sessions that are the same everywhere, as in an export that is named twice, are compared by one digest for
    all of their rows; single rows are held only of those that are not. A session of which a source has a copy
    made while it ran is left out by the merge, and so is not compared.
    """
    if len(sources) < 2:
        return
    differing = _differing(sources)
    if not differing:
        return
    known: dict[tuple[str, Key], tuple[Row, str]] = {}
    for source in sources:
        for item in source.items():
            if session_of(item) in differing and item.table.immutable:
                place = f"{source.where}, {source.place(item)}"
                name = (item.table.name, item.table.key_of(item.row))
                before, where = known.setdefault(name, (item.row, place))
                require_same(item.table, item.row, before, place, where)


def session_of(item: Item) -> str:
    """The uid of the session that a row belongs to, or is; empty when it belongs to none."""
    if item.table.name == "sessions":
        return str(item.row["uid"])
    return str(item.row["session"]) if item.table.of_session else ""


def require_same(table: Portable, row: Row, other: Row, place: str, where: str) -> None:
    """Raises TransferError when two rows of one key differ, other than in how far a session came."""
    names = [
        name
        for name in row
        if row[name] != other[name] and not (table.name == "sessions" and name in PROGRESS)
    ]
    if names:
        key = " ".join(map(str, table.key_of(row)))
        said = "; ".join(f"{name} is {_short(row[name])}, not {_short(other[name])}" for name in names)
        raise TransferError(
            f"{table.name} {key} is there already and differs: {said}",
            where=f"{place}, against {where}",
            hint="two sessions never share a name: one of the two was changed; nothing of it was taken",
        )


def _differing(sources: Sequence[RowSource]) -> set[str]:
    """The sessions of which two sources hold different rows, apart from copies of a session that ran."""
    digests: defaultdict[str, set[int]] = defaultdict(set)
    progress: defaultdict[str, set[tuple[object, ...]]] = defaultdict(set)
    for source in sources:
        of_source: defaultdict[str, int] = defaultdict(int)
        for uid, item in _immutable(source):
            of_source[uid] ^= _digest(item)
            if item.table.name == "sessions":
                progress[uid].add(tuple(item.row[name] for name in PROGRESS))
        for uid, digest in of_source.items():
            digests[uid].add(digest)
    return {uid for uid, found in digests.items() if len(found) > 1 and len(progress[uid]) == 1}


def _immutable(source: RowSource) -> Iterator[tuple[str, Item]]:
    for item in source.items():
        if item.table.immutable and (uid := session_of(item)):
            yield uid, item


def _digest(item: Item) -> int:
    """Of one row, so that those of several can be combined in any order."""
    text = repr((item.table.name, sorted(item.row.items())))
    return int.from_bytes(hashlib.blake2b(text.encode(errors="backslashreplace"), digest_size=16).digest())


def _short(value: object) -> str:
    return repr(value)[:40]
