"""What goes out as NDJSON comes in again as it was; what is damaged is refused with its place."""

import gzip
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings

from history.open import open_store
from history.transfer.database_source import Selection, opened
from history.transfer.merging import Merged, merge
from history.transfer.ndjson import SCHEMA, NdjsonFile, write_ndjson
from history.transfer.row_source import Item, RowSource, TransferError
from tests.history.generated import STEPS, VERSIONS, Made, contents, made, record
from tests.history.handmade import NIGHT, record_steps, session_start
from tests.history.transfer.test_merging import NIGHT_1, NIGHT_2, added

Write = Callable[[RowSource, Path], int]
Read = Callable[[Path], RowSource]

WAYS: dict[str, tuple[str, Write, Read]] = {
    "ndjson": ("out.ndjson", write_ndjson, NdjsonFile),
    "compressed": ("out.ndjson.gz", write_ndjson, NdjsonFile),
}
few = settings(max_examples=5)


def export(history: Path, way: str, selection: Selection | None = None) -> Path:
    name, write, _ = WAYS[way]
    with opened(history, selection) as source:
        write(source, history.with_name(name))
    return history.with_name(name)


def take_in(target: Path, exported: Path, way: str) -> Merged:
    with open_store(target) as store:
        return merge(store, [WAYS[way][2](exported)])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    record(tmp_path / "a.db", [NIGHT_1, NIGHT_2], change=True)
    return tmp_path


@pytest.fixture
def lines(folder: Path) -> list[str]:
    return export(folder / "a.db", "ndjson").read_text(encoding="utf-8").splitlines(keepends=True)


@pytest.mark.deep("merges and exports whole histories, also when killed")
@few
@given(made(1), made(2))
def test_there_and_back(first: Made, second: Made) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        record(folder / "a.db", [first, second], change=True)
        whole = contents(folder / "a.db")
        for way in WAYS:
            exported = export(folder / "a.db", way)
            take_in(folder / f"{way}.db", exported, way)
            assert contents(folder / f"{way}.db") == whole
            assert not added(take_in(folder / f"{way}.db", exported, way))


@pytest.mark.parametrize("way", ["ndjson", "compressed"])
def test_the_same_history_gives_the_same_file(folder: Path, way: str) -> None:
    exported = export(folder / "a.db", way)
    first = exported.read_bytes()
    exported.unlink()
    assert export(folder / "a.db", way).read_bytes() == first


def test_each_line_says_its_table_and_the_ends_say_what_it_is(lines: list[str]) -> None:
    first, *rows, last = map(json.loads, lines)
    assert first == {"tidemark": "history", "schema": SCHEMA}
    assert last == {"end": True, "rows": len(rows)}
    measured = next(row for row in rows if row["table"] == "measurements")
    assert measured == {
        "table": "measurements",
        "session": "night-1",
        "version": VERSIONS[0],
        "step": "insert",
        "repetition": 1,
        "metric": "qps",
        "value": 1.0,
    }
    assert {"table": "metrics", "name": "qps", "unit": "queries/s"}.items() <= rows[0].items() or any(
        row["table"] == "metrics" and row["name"] == "qps" and row["unit"] == "queries/s" for row in rows
    )


@pytest.mark.deep("merges and exports whole histories, also when killed")
@pytest.mark.parametrize("way", WAYS)
def test_a_selection_is_whole_by_itself(folder: Path, way: str) -> None:
    """Machines and builds of sessions that stay behind stay behind; a change that names one does too."""
    elsewhere = replace(NIGHT_1, number=9, box="beef", rates=((STEPS[1], VERSIONS[2], (5.0,)),))
    record(folder / "a.db", [elsewhere])
    exported = export(folder / "a.db", way, Selection(since=NIGHT + timedelta(days=2)))
    take_in(folder / "b.db", exported, way)
    tables: dict[str, set[Any]] = {}
    for table, key in contents(folder / "b.db"):
        tables.setdefault(table, set()).add(key[0])
    assert tables["sessions"] == {"night-2", "night-9"}
    assert tables["machines"] == {"f00d", "beef"}
    assert not tables.keys() & {"changes", "change_series"}
    exported = exported.rename(exported.with_name("earlier"))
    exported = export(folder / "a.db", way, Selection(since=NIGHT + timedelta(days=9)))
    take_in(folder / "c.db", exported, way)
    only = {key for table, key in contents(folder / "c.db") if table in ("machines", "builds", "sessions")}
    assert only == {("beef",), (f"key of {VERSIONS[2]}",), ("night-9",)}


def test_a_selection_by_suite(folder: Path) -> None:
    with open_store(folder / "a.db") as store:
        record_steps(store, session_start("reads", suite="read-only"), {"scan": {VERSIONS[0]: [1.0]}})
    exported = export(folder / "a.db", "ndjson", Selection(suite="read-only"))
    assert [item.row["uid"] for item in NdjsonFile(exported).items() if item.table.name == "sessions"] == [
        "reads"
    ]


def test_rows_are_streamed(folder: Path) -> None:
    """The first rows are there before the file is read: what is broken at its end is not met."""
    exported = export(folder / "a.db", "ndjson")
    exported.write_bytes(exported.read_bytes() * 200 + b"broken")
    assert len(list(islice(NdjsonFile(exported).items(), 3))) == 3


@pytest.mark.parametrize("way", WAYS)
def test_nothing_is_written_over(folder: Path, way: str) -> None:
    export(folder / "a.db", way)
    with pytest.raises(TransferError, match="something already"):
        export(folder / "a.db", way)


@pytest.mark.parametrize("way", WAYS)
def test_an_export_that_fails_leaves_nothing(folder: Path, way: str) -> None:
    class Failing:
        where, left_out = "x", ()

        def items(self) -> Iterator[Item]:
            with opened(folder / "a.db") as source:
                yield from islice(source.items(), 60)
            raise OSError(28, "No space left on device")

        def place(self, item: Item) -> str:
            return ""

    name, write, _ = WAYS[way]
    with pytest.raises(TransferError, match="No space left on device"):
        write(Failing(), folder / name)
    assert not [path for path in folder.iterdir() if not path.name.startswith("a.db")]


# --- what is damaged


def refused(folder: Path, path: Path, way: str = "ndjson") -> TransferError:
    """That nothing came in, and why."""
    with pytest.raises(TransferError) as refusal:
        take_in(folder / "fresh.db", path, way)
    with open_store(folder / "fresh.db") as store:
        assert store.latest_session([]) is None
    assert refusal.value.hint
    return refusal.value


@pytest.mark.deep("merges and exports whole histories, also when killed")
@pytest.mark.parametrize("way", ["ndjson", "compressed"])
@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_a_truncated_file(folder: Path, way: str, share: float) -> None:
    path = export(folder / "a.db", way)
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * share)])
    assert ", line " in refused(folder, path, way).where


def test_a_file_cut_between_two_lines(folder: Path, lines: list[str]) -> None:
    path = folder / "cut.ndjson"
    path.write_text("".join(lines[:-1]))
    error = refused(folder, path)
    assert "truncated" in error.what
    assert error.where == f"{path}, line {len(lines)}"


def test_a_line_that_is_missing(folder: Path, lines: list[str]) -> None:
    path = folder / "less.ndjson"
    place = next(number for number, line in enumerate(lines) if '"samples"' in line)
    path.write_text("".join(lines[:place] + lines[place + 1 :]))
    assert "was written with" in refused(folder, path).what


def edited(lines: list[str], table: str, changes: dict[str, Any]) -> tuple[str, int]:
    """The file with the first row of a table changed, and the number of its line."""
    number = next(number for number, line in enumerate(lines) if f'"table":"{table}"' in line)
    row = json.loads(lines[number]) | changes
    kept = {name: value for name, value in row.items() if value is not ...}
    return "".join([*lines[:number], json.dumps(kept) + "\n", *lines[number + 1 :]]), number + 1


@pytest.mark.deep("merges and exports whole histories, also when killed")
@pytest.mark.parametrize(
    ("table", "changes", "said"),
    [
        ("metrics", {"name": "furlongs", "unit": "furlongs"}, "unknown metric: furlongs"),
        ("metrics", {"unit": "furlongs"}, "unknown unit: "),
        ("measurements", {"metric": "furlongs"}, "unknown metric: furlongs"),
        ("measurements", {"value": "fast"}, "value is 'fast', not a real"),
        ("measurements", {"value": True}, "not a real"),
        ("measurements", {"value": ...}, "without value"),
        ("measurements", {"speed": 1}, "with speed, which is unknown"),
        ("measurements", {"repetition": 9}, "names what is not there: runs has no night-1"),
        ("measurements", {"table": "pictures"}, "no table 'pictures'"),
        ("measurements", {"table": ["runs"]}, "no table"),
        ("measurements", {"session": "nobody"}, "names what is not there: runs has no nobody"),
        ("runs", {"build": "ab"}, "builds has no ab"),
        ("runs", {"version": "18.6"}, "version is '18.6', not a version"),
        ("runs", {"started_at": "yesterday"}, "not a time"),
        ("runs", {"started_at": "2026-03-01"}, "not a time"),
        ("runs", {"repetition": 1.0}, "not a integer"),
        ("runs", {"repetition": 2**63}, "not a integer"),
        ("runs", {"failure": "\0"}, "not a text"),
        ("runs", {"failure": "\ud800"}, "not a text"),
        ("runs", {"warnings": "{}"}, "not a JSON array"),
        ("sessions", {"options": "[]"}, "not a JSON object"),
        ("sessions", {"machine": None}, "not a text"),
        ("profiles", {"stacks": "no base64!"}, "stacks is not base64"),
        ("profiles", {"stacks": 5}, "not a bytes"),
    ],
)
def test_a_wrong_row_is_named_by_its_line(
    folder: Path, lines: list[str], table: str, changes: dict[str, Any], said: str
) -> None:
    path = folder / "wrong.ndjson"
    text, number = edited(lines, table, changes)
    path.write_text(text)
    error = refused(folder, path)
    assert said in error.what
    assert error.where == f"{path}, line {number}"


@pytest.mark.parametrize(
    ("first", "said"),
    [
        ('{"tidemark": "history", "schema": 999}', "newer Tidemark (schema 999"),
        ('{"tidemark": "history"}', "newer"),
        ('{"a": 1}', "no history that Tidemark exported"),
        ("[]", "not a JSON object"),
        ("x", "not JSON"),
        ('{"tidemark": "history", "schema": NaN}', "not JSON"),
        ("[" * 100_000, "not JSON"),
    ],
)
def test_what_does_not_begin_as_an_export(folder: Path, lines: list[str], first: str, said: str) -> None:
    path = folder / "foreign.ndjson"
    path.write_text("".join([first + "\n", *lines[1:]]))
    error = refused(folder, path)
    assert said in error.what
    assert error.where == f"{path}, line 1"


def test_more_behind_the_end(folder: Path, lines: list[str]) -> None:
    path = folder / "more.ndjson"
    path.write_text("".join([*lines, lines[-2]]))
    assert "follows the end" in refused(folder, path).what


@pytest.mark.deep("merges and exports whole histories, also when killed")
def test_a_compressed_file_with_a_wrong_byte(folder: Path) -> None:
    path = export(folder / "a.db", "compressed")
    whole = bytearray(path.read_bytes())
    whole[len(whole) // 2] ^= 0xFF
    path.write_bytes(whole)
    refused(folder, path, "compressed")


@pytest.mark.deep("merges and exports whole histories, also when killed")
def test_a_compressed_file_may_have_any_name(folder: Path) -> None:
    path = export(folder / "a.db", "compressed")
    assert gzip.decompress(path.read_bytes())
    renamed = path.rename(folder / "renamed.txt")
    take_in(folder / "b.db", renamed, "ndjson")
    assert contents(folder / "b.db") == contents(folder / "a.db")


def test_the_numbers_of_an_export_that_was_tampered_with_are_seen(folder: Path, lines: list[str]) -> None:
    path = folder / "tampered.ndjson"
    text, number = edited(lines, "measurements", {"value": 77.0})
    path.write_text(text)
    with pytest.raises(TransferError, match=r"differs: value is 77\.0, not 1\.0") as refusal:
        take_in(folder / "a.db", path, "ndjson")
    assert f"line {number}" in refusal.value.where
