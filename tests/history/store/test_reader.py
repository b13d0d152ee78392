"""Reading a history changes nothing, waits for nothing, and loads no more than it needs."""

import sqlite3
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from sqlalchemy import delete, func, select

from build.home import ROOT
from build.version import parse_version
from history.comparison.compare import compare
from history.comparison.options import CompareOptions
from history.comparison.result import Comparison
from history.errors import HistoryError
from history.open import open_reader, open_store
from history.store.reader import Reader
from history.store.schema import runs, sessions
from tests.history.handmade import NIGHT
from tests.history.nightly import BASE, NEW, Calendar, opened, record_nights
from tests.history.outcomes import BASE as OUTCOMES_BASE
from tests.history.outcomes import CONTENDER as OUTCOMES_CONTENDER
from tests.history.outcomes import record_outcomes
from tests.history.profiled import BASE as PROFILED_BASE
from tests.history.profiled import CONTENDER as PROFILED_CONTENDER
from tests.history.profiled import record_profiled

SLOW = ("numpy", "rich", "pydantic", "psycopg", "statistics")
"""What takes long to import, and is not needed to compare; SQLAlchemy loads asyncio and csv."""

OLD, BRANCH = parse_version(BASE), parse_version(NEW)


def outcomes(path: Path) -> None:
    with open_store(path, clock=lambda: NIGHT) as store:
        record_outcomes(store)


def nights(path: Path) -> None:
    clock = Calendar()
    with opened(path, clock) as store:
        record_nights(store, clock, [1.0, 0.9, 0, 0.9, 1.1])


HISTORIES: dict[str, tuple[Callable[[Path], None], Sequence[str]]] = {
    "outcomes": (outcomes, (OUTCOMES_BASE, OUTCOMES_CONTENDER)),
    "profiles": (record_profiled, (PROFILED_BASE, PROFILED_CONTENDER)),
    "branches": (nights, ("postgres@17", NEW)),
    "nights": (nights, (BASE, NEW, "--since", "2026-03-01")),
}


@pytest.mark.deep("a process for each history")
@pytest.mark.parametrize("name", HISTORIES)
def test_compare_does_not_wait_for_what_it_does_not_use(name: str, tmp_path: Path) -> None:
    write, words = HISTORIES[name]
    path = tmp_path / "history.db"
    write(path)
    program = f"""
import sys, compare
assert compare.main(sys.argv[1:]) in (0, 1, 2)
print([name for name in {SLOW} if name in sys.modules])
"""
    command = [sys.executable, "-c", program, *words, "--history", str(path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert "geomean" in done.stdout
    # A suite is read to check a command that measures again.
    needed = ["pydantic"] if " --suite " in done.stdout or "no command measures" in done.stdout else []
    assert done.stdout.splitlines()[-1] == str(needed)


CASES: dict[str, Callable[[Reader], Comparison]] = {
    "versions": lambda history: compare(history, OLD, [BRANCH]),
    "limited": lambda history: compare(
        history, OLD, [BRANCH], CompareOptions(machine="db1", suite="write-heavy", profile="short")
    ),
    "session": lambda history: compare(history, OLD, [BRANCH], CompareOptions(session=f"db1-{BASE}-0304")),
    "branches": lambda history: compare(history, parse_version("postgres@17"), [], branches=[BRANCH]),
    "nights": lambda history: compare(history, OLD, [BRANCH], CompareOptions(since=NIGHT)),
    "nights of a box": lambda history: compare(
        history,
        OLD,
        [BRANCH],
        CompareOptions(since=NIGHT, machine="db1", suite="write-heavy", profile="short"),
    ),
}


@pytest.mark.deep("processes that are killed while they write")
def test_a_history_says_the_same_however_it_was_opened(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    nights(path)
    with open_reader(path) as at_once, open_store(path) as store:
        assert type(at_once) is Reader
        for case in CASES.values():
            assert case(at_once) == case(store)
        assert at_once.latest_runs() == store.latest_runs()
        assert at_once.latest_machine("db1") == store.latest_machine("db1") is not None


def test_who_looks_leaves_the_file_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    nights(path)
    before = path.read_bytes()
    with open_reader(path) as history:
        CASES["versions"](history)
        with (
            pytest.raises(HistoryError, match="is not writable"),
            history.database.writing() as connection,
        ):
            connection.execute(delete(runs))
    assert path.read_bytes() == before


def test_a_writer_is_not_held_up_and_its_work_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    outcomes(path)
    with open_reader(path) as history:
        before = history.latest_runs()
        counted = select(func.count()).select_from(sessions)
        with history.database.reading() as connection:
            number = connection.execute(counted).scalar_one()
            nights(path)
            assert connection.execute(counted).scalar_one() == number
        assert {run.version for run in history.latest_runs()} > {earlier.version for earlier in before}


def of_an_older_tidemark(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("UPDATE metrics SET description = 'as it was' WHERE name = 'qps'")
    connection.commit()
    connection.close()


def without_nights(path: Path) -> None:
    connection = sqlite3.connect(path)
    for table in ("points", "gaps", "nights"):
        connection.execute(f"DELETE FROM {table}")
    connection.commit()
    connection.close()


@pytest.mark.parametrize("make", [of_an_older_tidemark, without_nights])
def test_what_has_to_be_brought_up_to_date_is_left_to_who_writes(
    make: Callable[[Path], None], tmp_path: Path
) -> None:
    path = tmp_path / "history.db"
    nights(path)
    with open_reader(path) as history:
        expected = CASES["nights"](history)
    make(path)
    before = path.read_bytes()
    with open_reader(path) as history:
        assert type(history) is Reader
        assert CASES["nights"](history) == expected
    assert path.read_bytes() == before
    open_store(path).close()
    assert path.read_bytes() != before


def test_damage_that_is_met_later_is_named(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    nights(path)
    with open_reader(path) as history:
        with history.database.reading() as connection:
            of_measurements = "SELECT rootpage FROM sqlite_schema WHERE name = 'measurements'"
            root = connection.exec_driver_sql(of_measurements).scalar_one()
            size = connection.exec_driver_sql("PRAGMA page_size").scalar_one()
        with path.open("r+b") as file:
            file.seek((root - 1) * size)
            file.write(b"\xff" * size)
    with open_store(path) as history, pytest.raises(HistoryError, match="damaged") as refused:
        CASES["versions"](history)
    assert refused.value.where == str(path)
    assert "backup" in refused.value.hint
