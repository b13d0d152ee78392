"""The tables of mytools: see also test_facts. And any table at all, which is read or refused by its place."""

import math
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from history.open import open_store
from history.transfer.foreign.csv_table import read_csv
from history.transfer.foreign.mytools import occasion_of, read_per_op, read_qps, step_name
from history.transfer.foreign.values import Given, Read
from history.transfer.format_detection import coming_files
from history.transfer.merging import merge
from history.transfer.row_source import TransferError
from tests.history.transfer.test_foreign import HEAD, take_in, values

QPS = "col-1 : x.pg1222_a.pk1\ncol-2 : x.pg181_b.pk1\n\ncol-1\tcol-2\n100\t200\tinsert_range=100\n"
PER_OP = """sb.met.insert.range100.pk1.dop40
--- absolute
cpu/o\t\tcs/o\tr/o\trKB/o\twKB/o\to/s\tdbms
0.000050\t2.0\t0\t0\t0.5\t100\tx.pg1222_a.pk1
0.000025\t3.0\t0\t0\t0.4\t200\tx.pg181_b.pk1
--- relative to first result
0.50\t\t1.50\t1\t1\t0.80\t2.00\tx.pg181_b.pk1
"""


def mytools(folder: Path, *, qps: str = QPS, per_op: str = PER_OP) -> tuple[Path, Path]:
    found = folder / "lab-2025-11.qps.tsv", folder / "lab-2025-11.per-op.txt"
    for path, text in zip(found, (qps, per_op), strict=True):
        path.write_text(text)
    return found


def test_both_tables_are_one_session(tmp_path: Path) -> None:
    take_in(tmp_path / "h.db", *mytools(tmp_path), given=Given(cores=48))
    found = values(tmp_path / "h.db")
    assert {key: value for key, value in found.items() if key[0] == "postgres@18.1"} == {
        ("postgres@18.1", "insert_range=100", 1, metric): pytest.approx(value)
        for metric, value in {
            "qps": 200,
            "machine_cpu_us_per_op": 12,
            "machine_cs_per_op": 3,
            "machine_reads_per_op": 0,
            "machine_read_kb_per_op": 0,
            "machine_written_kb_per_op": 0.4,
        }.items()
    }


def test_cpu_needs_the_cores(tmp_path: Path) -> None:
    with open_store(tmp_path / "h.db") as store:
        coming = coming_files(mytools(tmp_path), Given(), store)
        merge(store, coming.sources)
    assert "give --cores" in coming.notes[0]
    assert not [key for key in values(tmp_path / "h.db") if key[-1] == "machine_cpu_us_per_op"]


def test_tables_that_disagree_are_refused(tmp_path: Path) -> None:
    files = mytools(tmp_path, qps=QPS.replace("200", "201"))
    with pytest.raises(TransferError, match=r"is 200, and 201 in lab-2025-11\.qps\.tsv, line 5"):
        take_in(tmp_path / "h.db", *files)


def test_two_builds_of_one_version_are_variants(tmp_path: Path) -> None:
    files = mytools(tmp_path, qps=QPS.replace("pg1222", "pg181"))
    take_in(tmp_path / "h.db", files[0])
    assert {key[0] for key in values(tmp_path / "h.db")} == {"postgres@18.1#a.pk1", "postgres@18.1#b.pk1"}


@pytest.mark.parametrize(
    ("which", "old", "new", "said"),
    [
        ("qps", "100\t200\t", "100\t", "line 5"),
        ("qps", "100\t200\t", "100\tfast\t", "line 5"),
        ("qps", "pg181", "ma1011", "line 5"),
        ("per_op", "0.5\t100", "0.5\tfast", "line 4"),
        ("per_op", "\tdbms", "", "line 3"),
        ("per_op", "3.0\t0\t0", "3.0\t0", "line 5"),
        ("per_op", "pg181_b.pk1\n---", "what_b.pk1\n---", "line 4"),
    ],
)
def test_a_line_that_is_not_understood_is_named(
    tmp_path: Path, which: str, old: str, new: str, said: str
) -> None:
    text = {"qps": QPS, "per_op": PER_OP}[which]
    assert old in text
    path = mytools(tmp_path, **{which: text.replace(old, new)})[which == "per_op"]
    with pytest.raises(TransferError) as refused:
        take_in(tmp_path / "h.db", path, given=Given(cores=4))
    assert f"{path.name}, {said}" in refused.value.where


def test_names_of_tests_agree() -> None:
    assert step_name("sb.met.update-index.range100.pk1.dop40") == "update-index_range=100"
    assert step_name("sb.met.scan.warm.range100.pk1.dop40") == "scan.warm_range=100"
    assert step_name("sb.prepare.met.point-query.warm.range100.pk1") == "prepare.point-query.warm_range=100"
    assert step_name("something else") == "something else"


def test_occasions() -> None:
    found = occasion_of(Path("postgres-sysbench-40threads-2025-11.per-op.txt"), Given())
    assert (found.machine, found.suite) == ("postgres-sysbench-40threads",) * 2
    assert found.when == datetime(2025, 11, 1, tzinfo=UTC)
    given = Given("box", "sysbench", datetime(2026, 1, 1, tzinfo=UTC))
    found = occasion_of(Path("x.tsv"), given)
    assert (found.machine, found.suite, found.when) == ("box", "sysbench", given.when)
    for name in ("x.tsv", "x-2025-13.tsv"):
        with pytest.raises(TransferError, match=r"date|when"):
            occasion_of(Path(name), Given())


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_is_a_table_or_refused(text: str) -> None:
    readers: list[Callable[[Path, Given], Read]] = [read_csv, read_qps, read_per_op]
    given = Given("box", "suite", datetime(2026, 1, 1, tzinfo=UTC), 4)
    with TemporaryDirectory() as name:
        for reader, head in zip(readers, (f"{HEAD}\n", QPS, PER_OP), strict=True):
            path = Path(name) / "x"
            path.write_text(head + text, encoding="utf-8", newline="")
            try:
                read = reader(path, given)
            except TransferError as error:
                where = error.where
            else:
                where = "x, "
                assert all(math.isfinite(value.number) for value in read.values)
            assert where.startswith("x, ")
