"""Histories of every schema, recorded by the code of their time: read, brought up to date, and sent on."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import compare as program
from history.backups.backup import back_up
from history.backups.restore import restore
from history.errors import HistoryError
from history.open import open_reader, open_store
from history.store.schema_status import newest
from history.transfer.database_source import opened
from history.transfer.merging import merge
from history.transfer.ndjson import NdjsonFile, write_ndjson
from history.transfer.portable_schema import PORTABLE
from history.transfer.row_source import RowSource
from runners.cli import main
from tests.history.generated import contents
from tests.history.released.histories import RELEASED, ReleasedHistory

BASE, LATEST = "postgres@17.11", "postgres@git:c0ffee123454"

each_released = pytest.mark.parametrize("released", RELEASED, ids=str)

READING = (
    "history show",
    "history series --step update-index --branch postgres@REL_18_STABLE",
    "history change-points",
    "history changes",
    "history prune --before 2030-01 --dry-run",
    "history export {folder}/out.ndjson",
    "history backup {folder}/backup.db",
    "bisect status",
    "report --out {folder}/site",
)
"""Commands that read a history; what they write is elsewhere."""


@pytest.fixture
def history(released: ReleasedHistory, tmp_path: Path) -> Path:
    return released.write(tmp_path / "old" / "history.db")


def files(folder: Path) -> dict[str, bytes]:
    """What a folder holds; a log without anything in it, and the locks of readers, do not count."""
    found = {path.name: path.read_bytes() for path in folder.iterdir() if not path.name.endswith("-shm")}
    return {name: content for name, content in found.items() if content}


def rows(path: Path) -> dict[str, list[dict[str, Any]]]:
    """All rows of a file by table, as SQLite has them."""
    with closing(sqlite3.connect(path)) as connection:
        connection.row_factory = sqlite3.Row
        names = [
            name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
        ]
        return {name: list(map(dict, connection.execute(f"SELECT * FROM {name}"))) for name in names}


def merged(path: Path, source: RowSource) -> int:
    """Merge a source into a history, and return how many rows were added."""
    with open_store(path) as store:
        counts = merge(store, [source]).counts.values()
    return sum(count.added for count in counts)


def test_every_schema_before_the_newest_has_its_history() -> None:
    missing = sorted(set(range(1, newest())) - {released.schema for released in RELEASED})
    assert not missing, (
        f"record the history of schema {missing} before the next migration lands, by the last commit that has"
        " it: .venv/bin/python -m tests.history.released.record COMMIT"
    )


def test_the_latest_has_rows_in_every_table(tmp_path: Path) -> None:
    """A migration that adds a table adds to the recorders, too."""
    held = rows(RELEASED[-1].write(tmp_path / "history.db"))
    assert [name for name in PORTABLE if name in held and not held[name]] == []


@each_released
def test_reading_writes_nothing(
    released: ReleasedHistory,
    history: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TIDEMARK_HOME", str(tmp_path / "home"))
    before = files(history.parent)
    words = [BASE, LATEST, "--session", "night-4", "--history", str(history), "--format", "json"]
    assert program.main(words) == 2  # two rounds are too few
    (contender,) = json.loads(capsys.readouterr().out)["contenders"]
    assert contender["geometric_mean"]["ratio"] == pytest.approx(0.93, abs=0.001)
    for command in READING:
        words = command.format(folder=tmp_path).split()
        assert main([*words, "--history", str(history)]) == 0, (command, capsys.readouterr().err)
    assert files(history.parent) == before


@each_released
def test_a_backup_is_not_migrated_by_who_reads_it(
    released: ReleasedHistory, history: Path, tmp_path: Path
) -> None:
    back_up(history, tmp_path / "to/backup.db")
    before = files(tmp_path / "to")
    assert program.main([BASE, LATEST, "--history", str(tmp_path / "to/backup.db")]) == 2  # few rounds
    assert files(tmp_path / "to") == before
    assert rows(tmp_path / "to/backup.db")["runs"] == rows(history)["runs"]
    back_up(history, tmp_path / "to/backup.db")  # replaces it


@each_released
def test_bringing_it_up_to_date_loses_nothing(released: ReleasedHistory, history: Path) -> None:
    before, read = rows(history), contents(history)
    assert main(["history", "migrate", "--history", str(history)]) == 0
    after = rows(history)
    # The metrics are those of the code; of the others nothing says anything of a result.
    for table in before.keys() - {"metrics", "pool_boxes", "placements"}:
        old = (
            [{name: row[name] for name in before[table][0]} for row in after[table]] if before[table] else []
        )
        assert old[: len(before[table])] == before[table], table
    assert after["schema_migrations"][-1]["number"] == newest()
    assert contents(history) == read


@each_released
def test_merged_and_exported(released: ReleasedHistory, history: Path, tmp_path: Path) -> None:
    read = contents(history)
    assert {"night-1", "night-6"} < {row["uid"] for (table, _), row in read.items() if table == "sessions"}
    with opened(history) as source:
        write_ndjson(source, tmp_path / "out.ndjson")
        assert merged(tmp_path / "merged.db", source)
        assert merged(tmp_path / "merged.db", source) == 0
    assert merged(tmp_path / "imported.db", NdjsonFile(tmp_path / "out.ndjson"))
    for name in ("merged.db", "imported.db"):
        assert contents(tmp_path / name) == read


@each_released
def test_restored_from(released: ReleasedHistory, history: Path, tmp_path: Path) -> None:
    """A backup of its time becomes the history, in the place of one that has nothing else."""
    target = released.write(tmp_path / "history.db")
    before = rows(history)
    assert restore(history, target).newer == {}
    assert rows(target) == before
    open_store(target).close()
    assert contents(target) == contents(history)


@pytest.mark.parametrize("released", [released for released in RELEASED if released.export.exists()], ids=str)
def test_the_export_of_its_time_is_imported(released: ReleasedHistory, history: Path, tmp_path: Path) -> None:
    assert merged(tmp_path / "imported.db", NdjsonFile(released.export))
    assert contents(tmp_path / "imported.db") == contents(history)


@pytest.mark.parametrize(
    ("damage", "what"),
    [
        ("ALTER TABLE nights DROP COLUMN is_base", "lacks columns of schema 7: nights.is_base"),
        ("DROP TABLE confirmations", "no table confirmations"),
    ],
)
def test_a_history_between_two_schemas_is_refused(tmp_path: Path, damage: str, what: str) -> None:
    """As the code of a branch wrote it that landed in another form: it is neither read nor migrated."""
    (released,) = (released for released in RELEASED if released.schema == 7)
    history = released.write(tmp_path / "old/history.db")
    with closing(sqlite3.connect(history)) as connection:
        connection.execute(damage)
        connection.commit()
    before = rows(history)
    for open_ in (open_reader, open_store):
        with pytest.raises(HistoryError, match=what) as refused:
            open_(history)
        assert "history restore" in refused.value.hint
    assert rows(history) == before
