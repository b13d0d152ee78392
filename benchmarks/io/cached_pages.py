"""Which pages of a relation are cached: in the buffers of its server, or in the page cache of the kernel."""

import ctypes
import mmap
import os
from collections.abc import Iterator
from pathlib import Path

import psycopg

from suites.postgres.server import PostgresServer

PAGE = 8192
SEGMENT = 1024**3
"""The bytes of each file of a relation but the last."""


def uncached_share(server: PostgresServer, table: str, spread: int) -> float:
    """Return the pages that a lookup reads from the disk: those of table and index that nobody has cached.

    Of the table it reads one of `spread` pages.

    A lookup reads a leaf of the index and a page of the table, each as likely as any other of its kind. Inner
    pages of the index are few, and always cached.
    """
    with server.connect() as connection:
        connection.execute("CREATE EXTENSION IF NOT EXISTS pg_buffercache")
        of_index = _uncached_of(server, connection, f"{table}_pkey", every=1)
        return _uncached_of(server, connection, table, every=spread) + of_index


def _uncached_of(
    server: PostgresServer, connection: psycopg.Connection, relation: str, *, every: int
) -> float:
    """Return the share of a relation's pages that nobody has cached; the first of `every` few counts."""
    row = connection.execute(
        "SELECT pg_relation_filepath(oid), relfilenode FROM pg_class WHERE relname = %s", (relation,)
    ).fetchone()
    assert row is not None
    path, node = row
    query = "SELECT relblocknumber FROM pg_buffercache WHERE relfilenode = %s AND relforknumber = 0"
    cached = {int(block) for (block,) in connection.execute(query, (node,))}
    blocks = 0
    for number, file in enumerate(segments(server.data / path)):
        resident = resident_pages(file)
        cached |= {number * SEGMENT // PAGE + block for block, is_in in enumerate(resident) if is_in}
        blocks += len(resident)
    chosen = range(0, blocks, every)
    return 1 - sum(block in cached for block in chosen) / len(chosen)


def segments(first: Path) -> Iterator[Path]:
    """Yield the files of a relation, of 1 GB each but for the last."""
    yield first
    number = 1
    while (file := first.with_name(f"{first.name}.{number}")).exists():
        yield file
        number += 1


def resident_pages(file: Path) -> list[bool]:
    """Return which pages of the server's size are whole in the page cache of the kernel, by mincore(2)."""
    size = file.stat().st_size
    count = -(-size // mmap.PAGESIZE)
    vector = (ctypes.c_ubyte * count)()
    with file.open("r+b") as opened, mmap.mmap(opened.fileno(), size) as mapped:
        view = ctypes.c_char.from_buffer(mapped)
        library = ctypes.CDLL(None, use_errno=True)
        failed = library.mincore(ctypes.c_void_p(ctypes.addressof(view)), ctypes.c_size_t(size), vector)
        del view
        if failed:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(file))
    parts = PAGE // mmap.PAGESIZE
    return [all(vector[at] & 1 for at in range(first, first + parts)) for first in range(0, count, parts)]
