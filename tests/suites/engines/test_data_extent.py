"""How large loaded data are, on real servers: rows, bytes, and trees whose depth is known beforehand."""

from pathlib import Path

import pytest

from build.finished_build import Build
from suites.checking.queries import data_extent
from tests.suites import innodb_servers
from tests.suites.servers import MIB, ask, running, wait_for

pytestmark = [pytest.mark.server, pytest.mark.timeout(120)]

WIDE = 700
"""Bytes of a key, of which a page of 8 KiB has eleven: 100 of them make a tree of three levels."""


def test_an_index_of_postgres_is_as_deep_as_its_keys_are_wide(
    server_folder: Path, postgres_18: Build
) -> None:
    with running(postgres_18, server_folder) as server:
        ask(server, "CREATE TABLE flat (id int PRIMARY KEY)")
        ask(server, "INSERT INTO flat VALUES (1)")
        server.reset()
        flat = data_extent(server.address)
        assert (flat.rows, flat.index_levels, flat.cache_bytes) == (1, 1, 64 * MIB)
        ask(server, "CREATE TABLE deep (key text PRIMARY KEY)")
        # Random digits, which are not compressed below the width of a page's share.
        ask(
            server,
            "INSERT INTO deep SELECT (SELECT string_agg(md5(n || '-' || part), '') FROM"
            f" generate_series(1, {WIDE // 32}) part) FROM generate_series(1, 300) n",
        )
        server.reset()
        deep = data_extent(server.address)
        assert deep.rows == 301
        assert deep.index_levels == 3
        assert deep.bytes > flat.bytes + 300 * WIDE


def test_an_index_of_mysql_is_as_deep_as_its_keys_are_wide(server_folder: Path, mysql_9: Build) -> None:
    with innodb_servers.running(mysql_9, server_folder) as server:
        with server.connect() as connection, connection.cursor() as cursor:
            cursor.execute("CREATE TABLE tidemark.flat (id int PRIMARY KEY)")
            cursor.execute("INSERT INTO tidemark.flat VALUES (1)")
        server.reset()
        wait_for(lambda: data_extent(server.address).index_levels)  # the file is as of the last flush
        flat = data_extent(server.address)
        assert flat.index_levels == 1
        with server.connect() as connection, connection.cursor() as cursor:
            cursor.execute(
                "CREATE TABLE tidemark.deep (id int PRIMARY KEY, name varchar(700) CHARACTER SET latin1)"
                # More pages than it has: ANALYZE reads them all, where it takes 20 at random by itself and
                # was seen 9 % off.
                " STATS_SAMPLE_PAGES = 1000"
            )
            cursor.execute("CREATE INDEX wide ON tidemark.deep (name)")
            rows = ", ".join(f"({number}, LPAD('{number}', 700, 'x'))" for number in range(1500))
            cursor.execute(f"INSERT INTO tidemark.deep VALUES {rows}")
        server.reset()
        deep = data_extent(server.address)
        assert deep.index_levels == 3
        assert deep.rows - flat.rows == 1500
        assert deep.bytes > flat.bytes + 2 * 1500 * 700
        assert deep.cache_bytes == 64 * MIB
