"""docs/conversions.md: each command is carried out on files of its program, and what it makes is imported."""

import os
import re
import shlex
import shutil
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest

from build.home import ROOT
from history.open import open_store
from history.transfer.foreign.document import Document
from history.transfer.foreign.formats import CONVERSIONS, not_importable, recognised
from runners.cli import main

COMMANDS = re.findall(
    r"^```sh\n(.*?)^```$", (ROOT / CONVERSIONS).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
)
FUNCTION, IMPORT = COMMANDS[:2]
FILES = ROOT / "tests/golden/conversions"
"""A made-up file of each program, in the shape that it writes."""

Rounds = dict[tuple[str, str], list[float]]
"""Step and metric -> the values of its rounds."""

HELD: dict[str, tuple[str, Rounds]] = {
    "*.summary.json": (
        "benchbase.summary.json",
        {("tpcc@16", "tps"): [3300.5], ("tpcc@16", "latency_p99_ms"): [15.2]},
    ),
    "criterion-*/*/new/estimates.json": (
        "criterion-estimates.json",
        {("insert", "operation_ms"): [0.1255]},
    ),
    "go-*.txt": (
        "go.txt",
        {("Insert/rows=100", "operation_ms"): [0.1255, 0.1265], ("Scan", "operation_ms"): [9.9]},
    ),
    "google-*.json": ("google-benchmark.json", {("BM_Insert/8", "operation_ms"): [0.1255, 0.1275]}),
    "hammerdb-*.log": ("hammerdb.log", {("TPROC-C@16", "tps"): [200], ("TPROC-C@32", "tps"): [220]}),
    "hyperfine-*.csv": ("hyperfine.csv", {("psql -c 'SELECT 1, 2'", "operation_ms"): [12.5]}),
    "hyperfine-*.json": (
        "hyperfine.json",
        {("psql -f q1.sql", "operation_ms"): [1250], ("psql -f q2.sql", "operation_ms"): [250]},
    ),
    "jmh-*.json": (
        "jmh.json",
        {
            ("org.example.Inserts.batch 100@8", "operation_ms"): [0.1255],
            ("org.example.Inserts.batch 100@8", "qps"): [7900],
        },
    ),
    "mysqlslap-*.txt": (
        "mysqlslap.txt",
        {
            ("queries innodb@10", "operation_ms"): [270],
            ("queries innodb@20", "operation_ms"): [510],
        },
    ),
    "pytest-*.json": ("pytest-benchmark.json", {("test_insert[100]", "operation_ms"): [12.5]}),
}
"""The files that a command of the page is for -> one of them, and what it holds."""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the commands run."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def convert(command: str) -> None:
    done = subprocess.run(
        ["sh", "-eu", "-c", FUNCTION + command],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": os.environ["PATH"]},
    )
    assert (done.returncode, done.stderr) == (0, "")


def import_as_written(command: str) -> None:
    """Carry out an import of the page, into a history of the test."""
    assert main([*shlex.split(command.replace("\\\n", " "))[1:], "--history", "h.db"]) == 0


def held(session: int) -> Rounds:
    with open_store(Path("h.db")) as store:
        rounds: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
        for run in sorted(store.runs(session), key=lambda run: run.repetition):
            for metric, value in run.values.items():
                rounds[run.step, metric].append(value)
    return rounds


def test_every_command_and_every_file_is_tried() -> None:
    patterns = [re.findall(r"(?<=\s)\S*\*\S*(?= \| rounds)", command) for command in COMMANDS]
    assert {pattern for found in patterns for pattern in found} == HELD.keys()
    assert {path.name for path in FILES.iterdir()} == {"data.js", *(name for name, _ in HELD.values())}


@pytest.mark.parametrize("pattern", HELD)
def test_what_a_command_makes_is_imported(folder: Path, pattern: str) -> None:
    """Of two files alike, so that each result is there twice."""
    name, values = HELD[pattern]
    for number in "12":
        file = folder / pattern.replace("*", number, 1).replace("*", "insert")
        file.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(FILES / name, file)
    (command,) = (command for command in COMMANDS if f" {pattern} | rounds" in command)
    convert(command)
    import_as_written(IMPORT)
    assert held(1) == {key: pytest.approx(found * 2) for key, found in values.items()}


def test_a_series_keeps_its_times_and_commits(folder: Path) -> None:
    shutil.copy(FILES / "data.js", folder)
    command, example = (command for command in COMMANDS if "results.csv" in command)
    convert(command)
    import_as_written(example)
    assert held(1) == {("insert", "operation_ms"): [pytest.approx(0.1255)]}
    assert held(2) == {("insert", "operation_ms"): [pytest.approx(0.127)], ("point", "qps"): [8000]}
    with open_store(folder / "h.db") as store, store.database.reading() as connection:
        times = connection.exec_driver_sql("SELECT started_at FROM sessions ORDER BY id").scalars().all()
        commits = connection.exec_driver_sql("SELECT source_digest FROM builds ORDER BY 1").scalars().all()
    assert times == ["2025-11-25T00:00:00.000Z", "2025-11-26T00:00:00.000Z"]
    assert commits == [f"git:{'1' * 40}:", f"git:{'2' * 40}:"]


@pytest.mark.parametrize("file", sorted(FILES.iterdir()), ids=lambda path: path.name)
def test_a_file_itself_is_refused_with_the_page(file: Path) -> None:
    document = Document(file)
    assert recognised(document) is None
    refused = not_importable(document)
    assert refused is not None
    assert refused.what.startswith("this is a result of ")
    assert CONVERSIONS in refused.hint
