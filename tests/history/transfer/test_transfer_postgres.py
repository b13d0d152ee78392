"""Merges between SQLite and a Postgres server that Tidemark compiled itself, both ways."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from history.backups.backup import back_up
from history.open import open_store
from history.store.writer import Store
from history.transfer.database_source import Selection, opened
from history.transfer.merging import merge
from history.transfer.ndjson import NdjsonFile, write_ndjson
from history.transfer.pruning import prune, room, vacuum
from tests.history.generated import VERSIONS, contents, record
from tests.history.handmade import NIGHT, record_steps, session_start
from tests.history.store.test_postgres import pytestmark, store, url
from tests.history.transfer.test_merging import NIGHT_1, NIGHT_2, added

__all__ = ["pytestmark", "store", "url"]  # the server's fixtures


def filled(path: Path) -> Path:
    record(path, [NIGHT_1, NIGHT_2, replace(NIGHT_2, number=3, box="beef")], change=True)
    return path


def test_into_postgres_and_back(store: Store, url: str, tmp_path: Path) -> None:
    whole = contents(filled(tmp_path / "a.db"))
    with opened(tmp_path / "a.db") as source:
        assert added(merge(store, [source]))["sessions"] == 3
        assert not added(merge(store, [source]))
    assert contents(url) == whole
    with opened(url) as source, open_store(tmp_path / "b.db") as back:
        merge(back, [source])
        assert not added(merge(back, [source]))
    assert contents(tmp_path / "b.db") == whole


def test_exports_and_backups_of_postgres(store: Store, url: str, tmp_path: Path) -> None:
    whole = contents(filled(tmp_path / "a.db"))
    with opened(tmp_path / "a.db") as source:
        merge(store, [source])
    record_steps(store, session_start("tonight"), {"insert": {VERSIONS[0]: [1.0]}}, status=None)
    assert back_up(url, tmp_path / "backup.db") == ("session tonight still runs",)
    assert back_up(url, tmp_path / "backup.db")
    assert contents(tmp_path / "backup.db") == whole
    with opened(url) as source:
        write_ndjson(source, tmp_path / "a.ndjson.gz")
    assert not added(merge(store, [NdjsonFile(tmp_path / "a.ndjson.gz")]))
    with opened(url, Selection(since=NIGHT + timedelta(days=3))) as source:
        assert {item.row["uid"] for item in source.items() if item.table.name == "sessions"} == {"night-3"}


def test_pruned_rounds_come_back_to_postgres(store: Store, url: str, tmp_path: Path) -> None:
    whole = contents(filled(tmp_path / "a.db"))
    with opened(tmp_path / "a.db") as source:
        merge(store, [source])
        before = NIGHT + timedelta(days=3)
        rows = {
            "runs": 8,
            "samples": 16,
            "measurements": 16,
            "activities": 0,
            "kinds": 0,
            "profiles": 4,
            "counted_profiles": 0,
            "wait_profiles": 0,
        }
        assert room(store, before).rows == rows
        assert prune(store, before) == 2
        assert "VACUUM FULL" in vacuum(store.database)
        assert len(contents(url)) == len(whole) - 44
        merge(store, [source])
    assert contents(url) == whole
