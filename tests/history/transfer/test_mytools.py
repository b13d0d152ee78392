"""The tables of mytools: see also test_facts. And any table at all, which is read or refused by its place."""

import math
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from history.open import open_store
from history.store.schema import machines
from history.transfer.foreign.csv_table import read_csv
from history.transfer.foreign.document import Document
from history.transfer.foreign.mytools import occasion_of, read_headless_qps, read_per_op, read_qps, step_name
from history.transfer.foreign.values import Given, Read
from history.transfer.format_detection import open_files
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
        incoming = open_files(mytools(tmp_path), Given(), store)
        merge(store, incoming.sources)
    assert "give --cores" in incoming.notes[0]
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
        ("per_op", "0.5\t100", "0.5\tfast", "line 4"),
        ("per_op", "\tdbms", "", "line 3"),
        ("per_op", "3.0\t0\t0", "3.0\t0", "line 5"),
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


def test_a_column_that_names_no_version_refuses_no_other(tmp_path: Path) -> None:
    """A commit names no version in a short name; a prerelease is a tag."""
    commit, beta = "ma1011_240723_c944cd6e_ilwas", "pg18beta2_o2nofp.x10b"
    (path,) = mytools(tmp_path, qps=QPS.replace("pg1222_a.pk1", commit))[:1]
    with open_store(tmp_path / "h.db") as store:
        incoming = open_files([path], Given(), store)
        merge(store, incoming.sources)
    assert {key[0] for key in values(tmp_path / "h.db")} == {"postgres@18.1"}
    assert any(commit in note for note in incoming.notes)
    take_in(tmp_path / "beta.db", *mytools(tmp_path, qps=QPS.replace("pg1222_a.pk1", beta))[:1])
    assert {key[0] for key in values(tmp_path / "beta.db")} == {"postgres@REL_18_BETA2", "postgres@18.1"}


# --- as the tables are published, with names that say no machine

ABS = "qps.abs.my.ma.pg.latest"
MIXED = (
    "col-1 : x.my8407_rel_o2nofp.z12a_c32r128.pk1\ncol-2 : x.ma110806_rel_withdbg.z12b_c32r128.pk1\n"
    "col-3 : x.pg182_o2nofp.x10b_c32r128.pk1\ncol-4 : fbmy8032_rel\n\ncol-1\tcol-2\tcol-3\tcol-4\n"
    "58270\t85603\t281092\t51234\thot-points_range=100\n"
    "721374\t804883\t1013725\t512340\tpoint-query_range=100\n"
)
HEADLESS = (
    "hot-points_range=100,58270,85603,281092,51234\npoint-query_range=100,721374,804883,1013725,512340\n"
)
COLUMNS = ("my8407", "ma110806", "pg182", "fbmy8032_rel")
HOT = "hot-points_range=100"
TAKEN = {
    ("mysql@8.4.7", HOT, 1, "qps"): 58270.0,
    ("mariadb@11.8.6", HOT, 1, "qps"): 85603.0,
    ("postgres@18.2", HOT, 1, "qps"): 281092.0,
    ("mysql@8.4.7", "point-query_range=100", 1, "qps"): 721374.0,
    ("mariadb@11.8.6", "point-query_range=100", 1, "qps"): 804883.0,
    ("postgres@18.2", "point-query_range=100", 1, "qps"): 1013725.0,
}
BOX = Given("box", "sysbench", datetime(2026, 4, 1, tzinfo=UTC))
NOTE = (
    "left out, of an engine that this Tidemark does not know: fbmy8032_rel; it knows postgres, mysql, mariadb"
)


def test_tables_of_several_servers_are_not_joined(tmp_path: Path) -> None:
    """Three servers' tables were one session of a machine called qps."""
    for name in ("qps.abs.fbin.tsv", "qps.abs-2026-04.tsv", "o.met.fbin", "qps-2026-04.tsv"):
        path = tmp_path / name
        path.write_text(PER_OP if name.startswith("o") else QPS)
        with pytest.raises(TransferError) as refused:
            take_in(tmp_path / "h.db", path, given=Given(when=BOX.when, cores=4))
        assert refused.value.what == "it does not say on which machine and with which suite this was measured"
        assert refused.value.where == f"{name}, its name"
        assert "--machine, --suite" in refused.value.hint
        take_in(tmp_path / "h.db", path, given=replace(BOX, machine=name))
    with open_store(tmp_path / "h.db") as store, store.database.reading() as connection:
        assert len(connection.execute(machines.select()).all()) == 4


def test_tables_that_become_one_session_are_named(tmp_path: Path) -> None:
    with open_store(tmp_path / "h.db") as store:
        files = mytools(tmp_path)
        incoming = open_files(files, Given(cores=48), store)
    assert incoming.notes == (f"{files[0]}, {files[1]}: one session, machine lab, suite lab, 2025-11-01",)


def test_the_columns_of_an_unknown_engine_are_left_out_with_a_note(tmp_path: Path) -> None:
    path = tmp_path / f"{ABS}.tsv"
    path.write_text(MIXED)
    with open_store(tmp_path / "h.db") as store:
        incoming = open_files([path], BOX, store)
        merge(store, incoming.sources)
    assert incoming.notes == (f"{path.name}: {NOTE}",)
    assert values(tmp_path / "h.db") == TAKEN


def test_the_rows_of_an_unknown_engine_are_left_out_with_a_note(tmp_path: Path) -> None:
    path = tmp_path / "lab-2025-11.per-op.txt"
    path.write_text(PER_OP.replace("x.pg1222_a.pk1", "fbmy8032_rel"))
    with open_store(tmp_path / "h.db") as store:
        incoming = open_files([path], Given(cores=4), store)
        merge(store, incoming.sources)
    assert incoming.notes == (f"{path.name}: {NOTE}",)
    assert {key[0] for key in values(tmp_path / "h.db")} == {"postgres@18.1"}


def test_a_table_of_unknown_engines_alone_is_refused(tmp_path: Path) -> None:
    path = tmp_path / f"{ABS}.tsv"
    path.write_text(QPS.replace("pg1222", "fbmy8032").replace("pg181", "fbmy5635"))
    with pytest.raises(TransferError, match=r"holds no value .* x\.fbmy8032_a\.pk1, x\.fbmy5635_b\.pk1"):
        take_in(tmp_path / "h.db", path, given=BOX)


def test_a_table_without_a_head_has_that_of_the_table_beside_it(tmp_path: Path) -> None:
    (tmp_path / f"{ABS}.tsv").write_text(MIXED)
    path = tmp_path / f"{ABS}.csv"
    path.write_text(HEADLESS)
    with open_store(tmp_path / "h.db") as store:
        incoming = open_files([path], BOX, store)
        merge(store, incoming.sources)
    assert incoming.notes == (f"{path.name}: {NOTE}",)
    assert values(tmp_path / "h.db") == TAKEN
    take_in(tmp_path / "h.db", path, path.with_suffix(".tsv"), given=BOX)


def test_a_table_without_a_head_whose_columns_are_given(tmp_path: Path) -> None:
    path = tmp_path / f"{ABS}.csv"
    path.write_text(HEADLESS)
    with pytest.raises(TransferError, match=f"no {ABS}.tsv beside it") as refused:
        take_in(tmp_path / "h.db", path, given=BOX)
    assert "--columns" in refused.value.hint
    with pytest.raises(TransferError, match="5 fields, where 2 versions and a test"):
        take_in(tmp_path / "h.db", path, given=replace(BOX, columns=("my8407", "pg182")))
    take_in(tmp_path / "h.db", path, given=replace(BOX, columns=COLUMNS))
    assert values(tmp_path / "h.db") == TAKEN


def test_columns_are_for_tables_without_a_head(tmp_path: Path) -> None:
    with pytest.raises(TransferError, match="--columns is for tables without a head"):
        take_in(tmp_path / "h.db", *mytools(tmp_path), given=Given(columns=("pg177",)))


def test_a_table_without_a_head_says_by_its_name_what_it_holds(tmp_path: Path) -> None:
    path = tmp_path / "sum.abs0.byrx.csv"
    path.write_text(HEADLESS)
    with pytest.raises(TransferError, match="does not say that it holds QPS"):
        take_in(tmp_path / "h.db", path, given=replace(BOX, columns=COLUMNS))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "qps.rel.ma.tsv",
            "Relative to: x.pg1222_a.pk1\ncol-1 : x.pg181_b.pk1\n\ncol-1\n2.00\tinsert_range=100\n",
        ),
        (
            "renamed-2025-11.tsv",
            "Relative to: x.pg1222_a.pk1\ncol-1 : x.pg181_b.pk1\n\n2.00\tinsert_range=100\n",
        ),
        ("qps.rel.ma.csv", "insert_range=100,2.00\n"),
    ],
)
def test_a_relative_table_is_refused_as_one(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(TransferError, match="relative to one of its versions") as refused:
        take_in(tmp_path / "h.db", path, given=BOX)
    assert "qps.abs" in refused.value.hint


def test_names_of_tests_agree() -> None:
    assert step_name("sb.met.update-index.range100.pk1.dop40") == "update-index_range=100"
    assert step_name("sb.met.scan.warm.range100.pk1.dop40") == "scan.warm_range=100"
    assert step_name("sb.prepare.met.point-query.warm.range100.pk1") == "prepare.point-query.warm_range=100"
    assert step_name("something else") == "something else"


def test_occasions() -> None:
    found = occasion_of(Document(Path("postgres-sysbench-40threads-2025-11.per-op.txt")), Given())
    assert (found.machine, found.suite) == ("postgres-sysbench-40threads",) * 2
    assert found.when == datetime(2025, 11, 1, tzinfo=UTC)
    given = Given("box", "sysbench", datetime(2026, 1, 1, tzinfo=UTC))
    found = occasion_of(Document(Path("x.tsv")), given)
    assert (found.machine, found.suite, found.when) == ("box", "sysbench", given.when)
    for name in ("x.tsv", "x-2025-13.tsv"):
        with pytest.raises(TransferError, match=r"date|when"):
            occasion_of(Document(Path(name)), Given())


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_is_a_table_or_refused(text: str) -> None:
    readers: list[Callable[[Document, Given], Read]] = [read_csv, read_qps, read_per_op, read_headless_qps]
    given = Given("box", "suite", datetime(2026, 1, 1, tzinfo=UTC), 4, COLUMNS)
    with TemporaryDirectory() as name:
        for reader, head in zip(readers, (f"{HEAD}\n", QPS, PER_OP, HEADLESS), strict=True):
            path = Path(name) / "x.qps"
            path.write_text(head + text, encoding="utf-8", newline="")
            try:
                read = reader(Document(path), given)
            except TransferError as error:
                where = error.where
            else:
                where = "x.qps, "
                assert all(math.isfinite(value.number) for value in read.values)
            assert where.startswith("x.qps, ")
