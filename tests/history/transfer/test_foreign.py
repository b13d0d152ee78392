"""Tables of others: each number is taken as it is, and what is not understood is named by its row."""

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from build.home import ROOT
from history.open import open_store
from history.store.records import Session
from history.store.writer import Store
from history.transfer.foreign.csv_table import FURTHER, NEEDED
from history.transfer.foreign.values import Given
from history.transfer.format_detection import open_files
from history.transfer.merging import Merged, merge
from history.transfer.row_source import TransferError
from tests.history.generated import contents
from tests.history.transfer.test_merging import added

DOCUMENT = (ROOT / "docs/history.md").read_text(encoding="utf-8")
HEAD = "machine,suite,step,version,metric,value,when"
ROW = "box,sysbench,insert,postgres@17.7,qps,1000,2025-11"


def take_in(history: Path, *files: Path, given: Given | None = None) -> Merged:
    with open_store(history) as store:
        return merge(store, open_files(files, given or Given(), store).sources)


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


@pytest.mark.deep("merges and exports whole histories, also when killed")
def test_one_sheet_after_the_other_is_as_good_as_both_at_once(tmp_path: Path) -> None:
    first = sheet(tmp_path / "1.csv", ROW.replace("insert", "delete"), ROW)
    two = sheet(tmp_path / "2.csv", ROW.replace("17.7", "18.1"), ROW.replace("qps", "latency_p99_ms"))
    take_in(tmp_path / "both.db", first, two)
    for path in (first, two, first):
        take_in(tmp_path / "h.db", path)
    assert contents(tmp_path / "h.db") == contents(tmp_path / "both.db")
    points = {key for table, key in contents(tmp_path / "h.db") if table == "points"}
    assert len(points) == 4, "the night was derived again when the session gained rounds"


@pytest.mark.deep("merges and exports whole histories, also when killed")
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
        (ROW.replace("2025-11", "last week"), "'last week' is not a date"),
        (ROW.replace("2025-11", "2025-13"), "'2025-13' is not a date"),
        (ROW.replace("insert", ""), "step is empty"),
        (f"{ROW},,0", "'0' is no repetition"),
        (f"{ROW},,1.5", "no repetition"),
        (
            ROW.replace("1000", "1001"),
            "qps of postgres@17.7 in insert, round 1 is 1001, and 1000 in x.csv, row 2",
        ),
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
        (f"{HEAD},value", "a column twice: value"),
    ],
)
def test_columns_have_to_be_ours(tmp_path: Path, head: str, said: str) -> None:
    with pytest.raises(TransferError, match=said) as refused:
        take_in(tmp_path / "h.db", sheet(tmp_path / "x.csv", ROW, head=head))
    assert "x.csv, row 1" in refused.value.where


@pytest.mark.deep("merges and exports whole histories, also when killed")
def test_what_a_sheet_does_not_say_can_be_given(tmp_path: Path) -> None:
    path = sheet(tmp_path / "x.csv", "insert,pg177,qps,1000", head="step,version,metric,value")
    given = Given(machine="box", suite="sysbench", when=datetime(2025, 11, 1, tzinfo=UTC))
    take_in(tmp_path / "h.db", path, given=given)
    take_in(tmp_path / "other.db", sheet(tmp_path / "y.csv", ROW))
    assert contents(tmp_path / "h.db") == contents(tmp_path / "other.db")


def test_rows_of_an_unknown_engine_are_left_out_with_a_note(tmp_path: Path) -> None:
    others = [ROW.replace("postgres@17.7", name) for name in ("oracle@19", "fbmy8032", "mongodb@8.0.4")]
    path = sheet(tmp_path / "x.csv", others[0], ROW, *others[1:])
    with open_store(tmp_path / "h.db") as store:
        incoming = open_files([path], Given(), store)
        merge(store, incoming.sources)
    assert list(values(tmp_path / "h.db")) == [("postgres@17.7", "insert", 1, "qps")]
    assert incoming.notes == (
        "x.csv: left out, of an engine that this Tidemark does not know: oracle@19, fbmy8032, mongodb@8.0.4; "
        "it knows postgres, mysql, mariadb",
    )


def test_rows_whose_version_cannot_be_read_are_left_out_with_a_note(tmp_path: Path) -> None:
    """They refused the whole table."""
    names = ("17.7", "ma1011_240723_c944cd6e", "postgers@17.7", "trunk")
    path = sheet(tmp_path / "x.csv", *(ROW.replace("postgres@17.7", name) for name in names), ROW)
    with open_store(tmp_path / "h.db") as store:
        incoming = open_files([path], Given(), store)
        merge(store, incoming.sources)
    assert list(values(tmp_path / "h.db")) == [("postgres@17.7", "insert", 1, "qps")]
    by_name, by_reason = incoming.notes
    assert "names no version" not in by_reason
    assert (
        "x.csv: left out, because the name says no version: 17.7, ma1011_240723_c944cd6e, trunk;" in by_name
    )
    assert "x.csv: 'postgers@17.7' is left out: " in by_reason
    assert "unknown engine 'postgers'" in by_reason
    with (
        open_store(tmp_path / "h.db") as store,
        pytest.raises(TransferError, match="says no version"),
    ):
        open_files([sheet(tmp_path / "y.csv", ROW.replace("postgres@17.7", "17.7"))], Given(), store)


def test_rows_without_a_value_are_left_out_and_counted(tmp_path: Path) -> None:
    path = sheet(tmp_path / "x.csv", ROW, ROW.replace("1000", ""))
    with open_store(tmp_path / "h.db") as store:
        incoming = open_files([path], Given(), store)
    assert incoming.notes == ("x.csv: 1 rows without a value are left out",)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "neither a history nor results"),
        (b"\x00\x01\x02", "neither a history nor results"),
        (b"Dear diary\n", "neither a history nor results"),
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


@pytest.mark.parametrize(
    ("content", "said", "to_do"),
    [
        ("name  old time/op  new time/op\nInsert-8  1.2ms ± 2%  1.3ms ± 1%\n", "benchstat", "go test -bench"),
        ("goos: linux\n   │ old.txt │ new.txt │\n   │ sec/op │ sec/op │\n", "benchstat", "go test -bench"),
        ("Transaction Type Index,Transaction Name,Start\n1,NewOrder,17.1\n", "BenchBase", ".summary.json"),
        ("postgres  4242 [001]  12.345678:  250000 cpu-clock:\n\tffff f ([kernel])\n", "perf script", HEAD),
        ('{"commit_hash": "aaa0", "results": {"insert": [[0.01], []]}}', "asv", HEAD),
        ('{"insert": {"throughput": {"value": 1500.5}}}', "Bencher", HEAD),
        ("0.5\t0.4\t-0.1\tSELECT 1\n", "a first row that names its columns", HEAD),
        (
            "threads,tps,qps,p95\n1,250.5,5010,4.5\n",
            "lacks the columns machine, suite, step, version, metric, value, when",
            "db1,sysbench,insert,postgres@18.1,tps,250.5,2026-11-25",
        ),
        (
            "date,mysql-8.0.40,mysql-8.4.1\ninsert,1000,980\n",
            "a column for each version",
            "db1,sysbench,insert,mysql@8.0.40,qps,1000,2026-11-25",
        ),
    ],
)
def test_other_files_that_people_try_are_named(tmp_path: Path, content: str, said: str, to_do: str) -> None:
    path = tmp_path / "x"
    path.write_text(content)
    with pytest.raises(TransferError) as refused:
        take_in(tmp_path / "h.db", path)
    assert said in refused.value.what
    assert to_do in refused.value.hint


# --- docs/history.md


def test_the_documented_example_can_be_imported(tmp_path: Path) -> None:
    (example,) = re.findall(r"^```text\n(machine,.*?)^```$", DOCUMENT, re.MULTILINE | re.DOTALL)
    path = tmp_path / "example.csv"
    path.write_text(example, encoding="utf-8")
    take_in(tmp_path / "h.db", path)
    assert values(tmp_path / "h.db")["postgres@17.7", "update-index", 1, "latency_p99_ms"] == pytest.approx(
        0.4
    )


def test_the_documented_columns_are_those_that_are_known() -> None:
    (table,) = re.findall(r"^\| column \|.*?\n\n", DOCUMENT, re.MULTILINE | re.DOTALL)
    cells = [line.split("|")[1] for line in table.strip().splitlines()[2:]]
    assert {name for cell in cells for name in re.findall(r"`(\w+)`", cell)} == {*NEEDED, *FURTHER}
