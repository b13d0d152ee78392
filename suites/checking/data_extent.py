"""How large loaded data are: rows, bytes, the depth of the deepest index, and the cache of their server."""

import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from build.engines import EngineRegistry
from build.files import open_checked
from build.version import Engine
from suites.checking.queries import connected
from suites.server import Address

META_LEVEL = 36
"""The byte of a B-tree's first page at which the level of its root begins, in 4 bytes: the field btm_level of
BTMetaPageData (nbtree.h), behind a page header of 24 bytes. A root that is a leaf has level 0."""

PAGE_LEVEL = 64
"""The same in InnoDB's root page, in 2 bytes, the high one first: PAGE_LEVEL of page0types.h in the page
header, which begins at byte 38."""

PAGE_TYPE, INDEX_PAGE = 24, (17855).to_bytes(2, "big")
"""Where InnoDB's type of a page is, and that of an index (FIL_PAGE_INDEX)."""

MAX_LEVEL = 20
"""No index is so deep: what has more is encrypted, or no root page."""


@dataclass(frozen=True)
class DataExtent:
    """The loaded data of one server, once they have been flushed."""

    rows: int
    """The rows of all tables as the server has just estimated them. VACUUM of Postgres reads every page of
    freshly loaded tables; InnoDB takes 20 pages of each at random, and may be 10 % off for wide rows."""

    bytes: int
    """The bytes of tables and indexes on disk."""

    index_levels: int
    """The levels of the deepest B-tree, 1 for a single page; 0 if none is known."""

    cache_bytes: int
    """The bytes of the server's buffer cache."""


def data_extent(address: Address) -> DataExtent:
    """Return how large the data of a database are. Raises QueryError.

    The depth of indexes is read from their files, and is that of the last checkpoint.
    """
    with connected(address.of_admin) as connection, connection.cursor() as cursor:
        return _OF_ENGINE[address.engine](cursor)


_OWN = """
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname <> 'information_schema' AND n.nspname NOT LIKE 'pg\\_%'
"""


def _of_postgres(cursor: Any) -> DataExtent:
    cursor.execute(
        f"""
        SELECT coalesce(sum(greatest(c.reltuples, 0)), 0)::bigint,
            coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint,
            pg_size_bytes(current_setting('shared_buffers'))
        {_OWN} AND c.relkind IN ('r', 'm')
        """
    )
    rows, size, cache = cursor.fetchone()
    cursor.execute(
        f"""
        SELECT pg_read_binary_file(pg_relation_filepath(c.oid), {META_LEVEL}, 4, true)
        {_OWN} AND c.relkind = 'i' AND c.relam = (SELECT oid FROM pg_am WHERE amname = 'btree')
        """
    )
    levels = [int.from_bytes(level, sys.byteorder) for (level,) in cursor.fetchall() if level]
    return DataExtent(int(rows), int(size), _deepest(levels), int(cache))


def _of_innodb(cursor: Any) -> DataExtent:
    cursor.execute(
        """
        SELECT COALESCE(SUM(n_rows), 0),
            COALESCE(SUM(clustered_index_size + sum_of_other_index_sizes), 0) * @@innodb_page_size,
            @@innodb_buffer_pool_size, @@innodb_page_size, @@datadir
        FROM mysql.innodb_table_stats WHERE database_name = DATABASE()
        """
    )
    rows, size, cache, page, folder = cursor.fetchone()
    levels = _root_levels(cursor, Path(str(folder)), int(page))
    return DataExtent(int(rows), int(size), _deepest([*levels]), int(cache))


def _root_levels(cursor: Any, folder: Path, page_bytes: int) -> Iterator[int]:
    """Yield the level of the root page of each index whose file can be read."""
    # MariaDB, and MySQL before 8.0, have SYS in the names of these tables.
    cursor.execute(
        "SELECT table_name FROM information_schema.tables WHERE table_schema = 'information_schema'"
        " AND table_name IN ('INNODB_INDEXES', 'INNODB_SYS_INDEXES')"
    )
    for (indexes,) in cursor.fetchall():
        tables = str(indexes).replace("INDEXES", "TABLES")
        cursor.execute(
            f"SELECT t.name, i.page_no FROM information_schema.{indexes} i"
            f" JOIN information_schema.{tables} t ON t.table_id = i.table_id"
            " WHERE t.name LIKE CONCAT(DATABASE(), '/%')"
        )
        for name, number in cursor.fetchall():
            level = _root_level(folder / f"{name}.ibd", int(number) * page_bytes)
            if level is not None:
                yield level


def _root_level(file: Path, page: int) -> int | None:
    """Return the level of the page that begins at byte `page` of a file; None if it is no page of an
    index."""
    try:
        descriptor = open_checked(file)
    except OSError:
        return None
    try:
        header = os.pread(descriptor, PAGE_LEVEL + 2, page)
    finally:
        os.close(descriptor)
    is_index = header[PAGE_TYPE : PAGE_TYPE + 2] == INDEX_PAGE
    return int.from_bytes(header[PAGE_LEVEL : PAGE_LEVEL + 2], "big") if is_index else None


def _deepest(levels: list[int]) -> int:
    return 1 + max((level for level in levels if level <= MAX_LEVEL), default=-1)


_OF_ENGINE: EngineRegistry[Callable[[Any], DataExtent]] = EngineRegistry(
    "extent of data",
    __name__,
    {Engine.POSTGRES: _of_postgres, Engine.MYSQL: _of_innodb, Engine.MARIADB: _of_innodb},
)
