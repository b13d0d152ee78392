"""What a server of the MySQL family wrote into its redo and binary log for some work."""

import mmap
import os
import struct
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from build.files import open_checked
from suites.metrics import BINLOG_BYTES, REDO_BYTES
from suites.server import LogVolume, ServerError

_HEADER = struct.Struct("<IBIIIH")
"""Of an event: time, type, server, length, end position, flags (binlog_event.h of both servers)."""

_MAGIC_BYTES = 4
"""At the beginning of a file, before its first event."""

_XID = 16
"""The type of the event that ends a committed transaction of InnoDB."""


def binlog_sizes(data: Path) -> dict[Path, int]:
    """Return the bytes of each file of the binary log in a data directory, in their order."""
    return {file: file.stat().st_size for file in sorted(data.glob("binlog.[0-9]*"))}


def meter(data: Path, sequence_number: Callable[[], int]) -> Callable[[], LogVolume | None]:
    """Return what returns the redo since then, and what was added to the binary log; None without one."""
    sizes, begin = binlog_sizes(data), sequence_number()
    return lambda: written(data, sizes, sequence_number() - begin) if sizes else None


def written(data: Path, before: Mapping[Path, int], redo_bytes: int) -> LogVolume:
    """Return what was written besides so many bytes of redo, since the binary log had the sizes of `before`.

    Raises ServerError when the binary log cannot be read.
    """
    sizes = binlog_sizes(data)
    added = sum(sizes.values()) - sum(before.values())
    try:
        types = [kind for file in sizes for kind in _added(file, before.get(file, _MAGIC_BYTES))]
    except (OSError, ValueError) as error:
        raise ServerError(f"the binary log cannot be read: {error}", where=str(data)) from error
    return LogVolume(types.count(_XID), {REDO_BYTES: float(redo_bytes), BINLOG_BYTES: float(added)})


def _added(file: Path, begin: int) -> Iterator[int]:
    with os.fdopen(open_checked(file), "rb") as opened:
        if os.fstat(opened.fileno()).st_size > begin:
            with mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as content:
                yield from event_types(content, begin)


def event_types(content: bytes | mmap.mmap, begin: int) -> Iterator[int]:
    """Yield the types of the events of a file of the binary log, of which the first begins at `begin`.

    An event that is cut off ends it. Raises ValueError for one that is shorter than its own header.
    """
    at = begin
    while at + _HEADER.size <= len(content):
        _, kind, _, length, _, _ = _HEADER.unpack_from(content, at)
        if length < _HEADER.size:
            raise ValueError(f"an event of {length} bytes at {at}")
        at += length
        if at > len(content):
            return
        yield kind
