"""What is refused leaves the history as it was, wherever in a file, or in which of several, it is found."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from history.open import open_store
from history.transfer.database_source import opened
from history.transfer.foreign.values import Given
from history.transfer.format_detection import open_files
from history.transfer.merging import merge
from history.transfer.ndjson import NdjsonFile, write_ndjson
from history.transfer.row_source import TransferError
from tests.history.generated import contents, record
from tests.history.transfer.test_foreign import HEAD, ROW, sheet
from tests.history.transfer.test_merging import NIGHT_1, NIGHT_2, added, execute, into

pytestmark = pytest.mark.deep("merges and exports whole histories, also when killed")

NIGHT_3 = replace(NIGHT_2, number=3)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """With the histories `a.db`, of three nights and a change, and `b.db`, of another one."""
    record(tmp_path / "a.db", [NIGHT_1, NIGHT_2, NIGHT_3], change=True)
    record(tmp_path / "b.db", [replace(NIGHT_1, number=7)])
    return tmp_path


def exported(folder: Path, edit: Callable[[list[str]], list[str]]) -> Path:
    """An export of `a.db` as NDJSON, with its lines edited and their number corrected."""
    with opened(folder / "a.db") as source:
        write_ndjson(source, folder / "whole.ndjson")
    lines = edit((folder / "whole.ndjson").read_text(encoding="utf-8").splitlines(keepends=True)[:-1])
    path = folder / "edited.ndjson"
    path.write_text("".join([*lines, json.dumps({"end": True, "rows": len(lines) - 1}) + "\n"]))
    return path


def last_of(lines: list[str], table: str) -> int:
    return max(number for number, line in enumerate(lines) if f'"table":"{table}"' in line)


def refused(folder: Path, *paths: Path) -> TransferError:
    """Why files are refused, by a history that is afterwards as it was."""
    before = contents(folder / "b.db")
    with open_store(folder / "b.db") as store, pytest.raises(TransferError) as refusal:
        merge(store, [NdjsonFile(path) for path in paths])
    assert contents(folder / "b.db") == before
    return refusal.value


@pytest.mark.parametrize(
    "table",
    [
        *("metrics", "machines", "builds", "configurations", "series", "sessions", "runs", "measurements"),
        *("samples", "profiles", "dropped_rounds", "calibrations", "nights", "points"),
        *("changes", "change_series"),
    ],
)
def test_a_row_that_is_there_twice(folder: Path, table: str) -> None:
    """The last one of its table, so that most of the file is good; also of what is the same both times."""

    def twice(lines: list[str]) -> list[str]:
        number = last_of(lines, table)
        return [*lines[: number + 1], lines[number], *lines[number + 1 :]]

    path = exported(folder, twice)
    error = refused(folder, path)
    assert f"a row of {table} is there twice" in error.what
    number = last_of(path.read_text().splitlines(), table)
    assert error.where == f"{path}, line {number + 1}"
    assert "nothing was taken" in error.hint


def test_a_row_that_is_there_twice_and_in_the_history(folder: Path) -> None:
    into(folder / "b.db", folder / "a.db")
    path = exported(folder, lambda lines: [*lines[:-1], lines[-1], lines[-1]])
    assert "is there twice" in refused(folder, path).what


@pytest.mark.parametrize(
    ("table", "changes", "said"),
    [
        ("sessions", {"status": "asleep"}, "status IN"),
        ("sessions", {"repetitions": 0}, "repetitions >= 1"),
        ("runs", {"status": "asleep"}, "status IN"),
        ("samples", {"second": 0}, "second >= 1"),
        ("calibrations", {"degrees_of_freedom": 0.0}, "degrees_of_freedom > 0"),
        ("profiles", {"frequency": 0.0}, "frequency > 0"),
        ("changes", {"direction": "sideways"}, "direction IN"),
        ("runs", {"step_position": 9}, "step insert has position 9, and 0 before"),
        ("sessions", {"options": '{"seconds": "long"}'}, "options of session night-3"),
        ("sessions", {"options": '{"versions": [7]}'}, "options of session night-3"),
        ("sessions", {"options": '{"branches": {"postgres@18.6": 7}}'}, "options of session night-3"),
        ("sessions", {"options": '{"confirms": {"question": "why"}}'}, "options of session night-3"),
        ("measurements", {"value": -1.0}, "reset_seconds cannot be -1 s"),
        ("samples", {"qps": 1e300}, "qps cannot be 1e+300 queries/s"),
        ("points", {"value": -1.0}, "cannot be -1"),
        ("change_series", {"level_after": -5.0}, "cannot be -5"),
        ("machines", {"cores": -4}, "cores cannot be -4"),
        ("dropped_rounds", {"measured": '{"postgres@18.6": -1.5}'}, "qps cannot be -1.5"),
        ("dropped_rounds", {"measured": '{"postgres@18.6": NaN}'}, "not a finite number: qps"),
        ("dropped_rounds", {"measured": '{"postgres@18.6": "fast"}'}, "no rate"),
    ],
)
def test_what_the_database_or_its_reader_would_refuse(
    folder: Path, table: str, changes: dict[str, Any], said: str
) -> None:
    """In the last row of a table: most of the file has been read by then."""

    def edit(lines: list[str]) -> list[str]:
        number = last_of(lines, table)
        row = json.dumps(json.loads(lines[number]) | changes, separators=(",", ":"))
        return [*lines[:number], row + "\n", *lines[number + 1 :]]

    path = exported(folder, edit)
    error = refused(folder, path)
    assert said in error.what
    assert error.where == f"{path}, line {last_of(path.read_text().splitlines(), table) + 1}"


def test_an_impossible_number_is_refused_at_every_door(folder: Path) -> None:
    before = contents(folder / "b.db")
    execute(folder / "a.db", "UPDATE measurements SET value = -1 WHERE metric = 'qps'")
    with opened(folder / "a.db") as source:
        write_ndjson(source, folder / "a.ndjson")
    spread = sheet(folder / "x.csv", ROW, ROW.replace("insert", "delete").replace("1000", "-1"), head=HEAD)
    with open_store(folder / "b.db") as store:
        with opened(folder / "a.db") as source, pytest.raises(TransferError, match="qps cannot be -1"):
            merge(store, [source])
        with pytest.raises(TransferError, match="qps cannot be -1"):
            merge(store, [NdjsonFile(folder / "a.ndjson")])
        with pytest.raises(TransferError, match="qps cannot be -1") as refusal:
            merge(store, open_files([spread], Given(), store).sources)
        assert "x.csv, row 3" in refusal.value.where
    assert contents(folder / "b.db") == before


def test_two_files_that_contradict_in_a_measurement(folder: Path) -> None:
    """The first one is good in itself and was written before the second one was compared with it."""
    good = exported(folder, lambda lines: lines).rename(folder / "good.ndjson")
    (folder / "whole.ndjson").unlink()

    def edit(lines: list[str]) -> list[str]:
        number = last_of(lines, "measurements")
        row = json.dumps(json.loads(lines[number]) | {"value": 7.0}, separators=(",", ":"))
        return [*lines[:number], row + "\n", *lines[number + 1 :]]

    bad = exported(folder, edit)
    error = refused(folder, good, bad)
    assert "differs: value is 7.0, not 0.1" in error.what
    assert str(bad) in error.where
    assert str(good) in error.where


def test_two_files_of_which_one_has_more_rounds_are_joined(folder: Path) -> None:
    less = folder / "less.db"
    record(less, [NIGHT_1, NIGHT_2, NIGHT_3], change=True)
    execute(less, "DELETE FROM samples WHERE run_id = 1")
    with open_store(folder / "c.db") as store, opened(less) as first, opened(folder / "a.db") as other:
        assert added(merge(store, [first, other]))
    assert contents(folder / "c.db") == contents(folder / "a.db")
