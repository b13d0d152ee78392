"""Tables of others: each number is taken as it is, and what is not understood is named by its row."""

import math
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from build.version import Engine, Version, parse_version
from history.records import Session
from history.store import Store, open_store
from history.transfer.foreign.mytools import occasion_of, step_name
from history.transfer.foreign.naming import moment_of, rest_of, version_of
from history.transfer.foreign.units import factor
from history.transfer.foreign.values import Given, Read
from history.transfer.merging import Merged, merge
from history.transfer.recognising import coming_files
from history.transfer.stream import TransferError
from suites.measurement import METRICS
from tests.history.transfer.generated import contents
from tests.history.transfer.test_merging import added

HEAD = "machine,suite,step,version,metric,value,when"
ROW = "box,sysbench,insert,postgres@17.7,qps,1000,2025-11"


def take_in(history: Path, *files: Path, given: Given | None = None) -> Merged:
    with open_store(history) as store:
        return merge(store, coming_files(files, given or Given(), store).sources)


def sheet(path: Path, *rows: str, head: str = HEAD) -> Path:
    path.write_text("\n".join([head, *rows]) + "\n", encoding="utf-8")
    return path


def values(history: Path) -> dict[tuple[str, str, int, str], float]:
    """Version, step, repetition and metric -> value."""
    with open_store(history) as store:
        return {
            (run.version, run.step, run.repetition, metric): value
            for run in store.runs(the_session(store).id)
            for metric, value in run.values.items()
        }


def the_session(store: Store) -> Session:
    session = store.latest_session([])
    assert session is not None
    return session


# --- a CSV


def test_a_sheet_becomes_a_finished_session(tmp_path: Path) -> None:
    history = tmp_path / "h.db"
    rows = [ROW, ROW.replace("17.7", "18.1").replace("1000", "1100.5"), ROW.replace("insert", "delete")]
    merged = take_in(history, sheet(tmp_path / "x.csv", *rows))
    assert added(merged)["sessions"] == 1
    assert merged.derived == 1
    with open_store(history) as store:
        session = the_session(store)
        runs = store.runs(session.id)
    assert (session.status, session.suite, session.profile) == ("finished", "sysbench", "imported")
    assert (session.machine.hostname, session.started_at) == ("box", datetime(2025, 11, 1, tzinfo=UTC))
    assert session.is_imported
    assert [(run.version, run.step, run.step_position) for run in runs] == [
        ("postgres@17.7", "insert", 1),
        ("postgres@18.1", "insert", 1),
        ("postgres@17.7", "delete", 2),
    ]
    assert values(history)["postgres@18.1", "insert", 1, "qps"] == 1100.5


def test_the_same_sheet_again_changes_nothing(tmp_path: Path) -> None:
    path = sheet(tmp_path / "x.csv", ROW, ROW.replace("insert", "delete"))
    take_in(tmp_path / "h.db", path)
    before = contents(tmp_path / "h.db")
    again = take_in(tmp_path / "h.db", path.rename(tmp_path / "another name.csv"))
    assert not added(again)
    assert not again.derived
    assert contents(tmp_path / "h.db") == before


def test_one_sheet_after_the_other_is_as_good_as_both_at_once(tmp_path: Path) -> None:
    one = sheet(tmp_path / "1.csv", ROW.replace("insert", "delete"), ROW)
    two = sheet(tmp_path / "2.csv", ROW.replace("17.7", "18.1"), ROW.replace("qps", "latency_p99_ms"))
    take_in(tmp_path / "both.db", one, two)
    for path in (one, two, one):
        take_in(tmp_path / "h.db", path)
    assert contents(tmp_path / "h.db") == contents(tmp_path / "both.db")
    points = {key for table, key in contents(tmp_path / "h.db") if table == "points"}
    assert len(points) == 4, "the night was derived again when the session gained rounds"


def test_a_number_that_was_corrected_is_refused(tmp_path: Path) -> None:
    take_in(tmp_path / "h.db", sheet(tmp_path / "x.csv", ROW))
    with pytest.raises(TransferError, match=r"value is 1001\.0, not 1000\.0") as refused:
        take_in(tmp_path / "h.db", sheet(tmp_path / "y.csv", ROW.replace("1000", "1001")))
    assert "y.csv, row 2" in refused.value.where


def test_everything_that_sets_sessions_apart(tmp_path: Path) -> None:
    head = f"{HEAD},profile"
    rows = [
        f"{ROW},",
        f"{ROW},long",
        f"{ROW.replace('2025-11', '2025-11-02')},",
        f"{ROW.replace('box', 'b')},",
    ]
    merged = take_in(tmp_path / "h.db", sheet(tmp_path / "x.csv", *rows, head=head))
    assert added(merged)["sessions"] == 4
    assert added(merged)["machines"] == 2


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_sheets_as_programs_write_them(tmp_path: Path, delimiter: str, encoding: str) -> None:
    path = tmp_path / "x.csv"
    text = f"{HEAD}\n{ROW}\n\n,,,,,,\n".replace(",", delimiter).replace("\n", "\r\n").title()
    path.write_text(text.replace("Postgres", "postgres").replace("Qps", "qps"), encoding=encoding, newline="")
    take_in(tmp_path / "h.db", path)
    assert list(values(tmp_path / "h.db").values()) == [1000.0]


def test_rounds_and_units_and_configurations(tmp_path: Path) -> None:
    head = f"{HEAD},unit,repetition,configuration"
    rows = [
        f"{ROW},qps,1,buffers 4GB",
        f"{ROW.replace('1000', '1010')},queries/s,2,buffers 4GB",
        f"{ROW.replace('qps,1000', 'latency_p99_ms,0.5')},s,1,buffers 4GB",
        f"{ROW.replace('qps,1000', 'table_bytes,2')},MiB,1,buffers 4GB",
    ]
    take_in(tmp_path / "h.db", sheet(tmp_path / "x.csv", *rows, head=head))
    version = "postgres@17.7"
    assert values(tmp_path / "h.db") == {
        (version, "insert", 1, "qps"): 1000.0,
        (version, "insert", 2, "qps"): 1010.0,
        (version, "insert", 1, "latency_p99_ms"): 500.0,
        (version, "insert", 1, "table_bytes"): 2 * 1024.0**2,
    }


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (ROW.replace("qps", "furlongs"), "unknown metric 'furlongs'"),
        (ROW.replace("qps", "latency_p99"), "did you mean latency_p99"),
        (f"{ROW},furlongs", "unknown unit 'furlongs': qps is in queries/s"),
        (f"{ROW},ms", "unknown unit 'ms': qps is in queries/s"),
        (f"{ROW},,,9", "fields, where"),
        (ROW.replace("1000", "fast"), "'fast' is no number"),
        (ROW.replace("1000", "nan"), "'nan' is no number"),
        (ROW.replace("1000", "1_000"), "'1_000' is no number"),
        (ROW.replace("postgres@17.7", "17.7"), "'17.7' names no version"),
        (ROW.replace("postgres@17.7", "oracle@19"), "unknown engine 'oracle'"),
        (ROW.replace("2025-11", "last week"), "'last week' is no date"),
        (ROW.replace("2025-11", "2025-13"), "'2025-13' is no date"),
        (ROW.replace("insert", ""), "step is empty"),
        (f"{ROW},,0", "'0' is no repetition"),
        (f"{ROW},,1.5", "no repetition"),
        (
            ROW.replace("1000", "1001"),
            "qps of postgres@17.7 in insert, round 1 is 1001, and 1000 in x.csv, row 2",
        ),
        (ROW, "number in a column 'repetition'"),
        (f'"{ROW}', "this is no CSV"),
        (ROW.replace("insert", "a\0b"), "."),
    ],
)
def test_a_row_that_is_not_understood_is_named(tmp_path: Path, row: str, said: str) -> None:
    head = f"{HEAD},unit,repetition"
    fields = row.count(",") - 6
    path = sheet(tmp_path / "x.csv", f"{ROW},,", row + "," * (2 - fields), head=head)
    with pytest.raises(TransferError) as refused:
        take_in(tmp_path / "h.db", path)
    assert said in str(refused.value)
    assert "x.csv, row 3" in refused.value.where
    with open_store(tmp_path / "h.db") as store:
        assert store.latest_session([]) is None


@pytest.mark.parametrize(
    ("head", "said"),
    [
        (HEAD.replace("machine", "host"), "there is no column: machine"),
        (f"{HEAD},colour", "unknown column: colour"),
        (f"{HEAD},value", "twice: value"),
    ],
)
def test_columns_have_to_be_ours(tmp_path: Path, head: str, said: str) -> None:
    with pytest.raises(TransferError, match=said) as refused:
        take_in(tmp_path / "h.db", sheet(tmp_path / "x.csv", ROW, head=head))
    assert "x.csv, row 1" in refused.value.where


def test_what_a_sheet_does_not_say_can_be_given(tmp_path: Path) -> None:
    path = sheet(tmp_path / "x.csv", "insert,pg177,qps,1000", head="step,version,metric,value")
    given = Given(machine="box", suite="sysbench", when=datetime(2025, 11, 1, tzinfo=UTC))
    take_in(tmp_path / "h.db", path, given=given)
    take_in(tmp_path / "other.db", sheet(tmp_path / "y.csv", ROW))
    assert contents(tmp_path / "h.db") == contents(tmp_path / "other.db")


def test_rows_without_a_value_are_left_out_and_counted(tmp_path: Path) -> None:
    path = sheet(tmp_path / "x.csv", ROW, ROW.replace("1000", ""))
    with open_store(tmp_path / "h.db") as store:
        coming = coming_files([path], Given(), store)
    assert coming.notes == ("x.csv: 1 rows without a value are left out",)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "neither a history nor a table"),
        (b"\x00\x01\x02", "neither a history nor a table"),
        (b"Dear diary\n", "neither a history nor a table"),
        (b"SQLite format 3\0", "./tidemark history merge"),
        (HEAD.encode() + b"\n", "holds no value"),
        (HEAD.encode() + b"\n" + ROW.replace("box", "b\xf6x").encode("latin-1"), "not UTF-8"),
    ],
)
def test_files_that_are_nothing_of_the_kind(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "x"
    path.write_bytes(content)
    with pytest.raises(TransferError) as refused:
        take_in(tmp_path / "h.db", path)
    assert said in str(refused.value)


# --- units, versions, moments


@pytest.mark.parametrize(
    ("metric", "unit", "wanted"),
    [
        ("qps", "qps", 1),
        ("qps", "ops/sec", 1),
        ("latency_p99_ms", "s", 1000),
        ("latency_p99_ms", "µs", 1e-3),
        ("latency_p99_ms", "us", 1e-3),
        ("reset_seconds", "min", 60),
        ("server_cpu_us_per_op", "ms/op", 1000),
        ("server_cpu_us_per_op", "us/query", 1),
        ("server_written_kb_per_op", "KB/query", 1),
        ("server_written_kb_per_op", "bytes/q", 1 / 1024),
        ("wal_bytes_per_op", "KiB/op", 1024),
        ("table_bytes", "GiB", 1024**3),
        ("qps_cv", "%", 0.01),
        ("machine_cs_per_op", "cs/o" + "p", 1),
    ],
)
def test_units_with_a_known_factor(metric: str, unit: str, wanted: float) -> None:
    assert factor(METRICS[metric], unit) == pytest.approx(wanted)


@pytest.mark.parametrize("metric", METRICS)
def test_every_metric_knows_its_own_unit_and_no_other_kind(metric: str) -> None:
    assert factor(METRICS[metric], METRICS[metric].unit) == 1
    for unit in ("", "furlongs", "s/page", "bytes/s", "/", "ms/ms"):
        with pytest.raises(ValueError, match="unknown unit"):
            factor(METRICS[metric], unit)


@pytest.mark.parametrize(
    ("text", "version", "rest"),
    [
        ("x.pg1222_o2nofp.x10a_c32r128.pk1", "postgres@12.22", "o2nofp.x10a_c32r128.pk1"),
        ("pg177", "postgres@17.7", ""),
        ("pg1010", "postgres@10.10", ""),
        ("my5651_rel", "mysql@5.6.51", "rel"),
        ("my8045_rel.z11a", "mysql@8.0.45", "rel.z11a"),
        ("my848", "mysql@8.4.8", ""),
        ("my970", "mysql@9.7.0", ""),
        ("postgres@REL_18_STABLE", "postgres@REL_18_STABLE", ""),
        ("postgres@18.1#mine", "postgres@18.1#mine", ""),
    ],
)
def test_short_names(text: str, version: str, rest: str) -> None:
    assert str(version_of(text)) == version
    assert rest_of(text) == rest


@pytest.mark.parametrize("text", ["", "pg", "pg17", "pg9624", "pg0912", "my57", "ma1011", "pg17.7", "xpg177"])
def test_names_that_say_no_version(text: str) -> None:
    with pytest.raises(ValueError, match="version"):
        version_of(text)


@given(st.integers(10, 89), st.integers(0, 99))
def test_every_postgres_release_has_a_short_name(major: int, minor: int) -> None:
    assert version_of(f"pg{major}{minor}") == Version(Engine.POSTGRES, f"{major}.{minor}")


@given(st.text())
def test_any_text_is_a_version_or_a_value_error(text: str) -> None:
    try:
        found = version_of(text)
    except ValueError:
        return
    assert parse_version(str(found)) == found


@given(st.text() | st.from_regex(r"\d{4}-\d{2}(-\d{2})?", fullmatch=True))
def test_any_text_is_a_moment_or_a_value_error(text: str) -> None:
    try:
        found = moment_of(text)
    except ValueError:
        return
    assert found.utcoffset() == timedelta(0)


def test_moments() -> None:
    assert moment_of("2025-11") == datetime(2025, 11, 1, tzinfo=UTC)
    assert moment_of("2025-11-05") == datetime(2025, 11, 5, tzinfo=UTC)
    assert moment_of("2025-11-05T02:00:00") == datetime(2025, 11, 5, 2, tzinfo=UTC)
    east = timezone(timedelta(hours=1))
    assert moment_of("2025-11-05T02:00:00+01:00") == datetime(2025, 11, 5, 2, tzinfo=east)


# --- the tables of mytools: see also test_facts

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
    from tempfile import TemporaryDirectory

    from history.transfer.foreign.csv_table import read_csv
    from history.transfer.foreign.mytools import read_per_op, read_qps

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
