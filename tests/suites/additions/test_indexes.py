"""Indexes that a variant adds: how they are described, and what they become on a real server."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from build.finished_build import Build
from suites.additions.database_objects import create_indexes
from suites.additions.variant import ExtraIndex, ExtraIndexError, parse_index
from tests.suites.servers import ask, running


def test_tables_and_columns() -> None:
    assert parse_index("sbtest*(id) INCLUDE (c, pad)") == ExtraIndex("sbtest*", "(id) INCLUDE (c, pad)")


@pytest.mark.parametrize("text", ["", "sbtest1", "(c)", "sbtest1(c", "t(c); DROP TABLE t", "t (c)", "T(c)"])
def test_what_describes_no_index(text: str) -> None:
    with pytest.raises(ExtraIndexError, match="describes no index"):
        parse_index(text)


@given(st.text(max_size=400))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        index = parse_index(text)
    except ExtraIndexError:
        return
    assert index.tables + index.columns == text


@pytest.mark.server
def test_indexes_of_all_tables_of_a_name(server_folder: Path, postgres_18: Build) -> None:
    with running(postgres_18, server_folder) as server:
        ask(server, "CREATE TABLE a1 (id int, c text); CREATE TABLE a2 (id int, c text); CREATE TABLE b ()")
        create_indexes(server.address, ["a*(id) INCLUDE (c)", "a2(c)"])
        found = ask(
            server, "SELECT tablename, indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY 2"
        )
        assert [str(table) for table, _ in found] == ["a1", "a2", "a2"]
        assert "INCLUDE (c)" in found[0][1]
        with pytest.raises(ExtraIndexError, match="no table is called c"):
            create_indexes(server.address, ["c*(id)"])
        with pytest.raises(ExtraIndexError, match='column "nothing" does not exist'):
            create_indexes(server.address, ["a1(nothing)"])
