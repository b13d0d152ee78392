"""Results as other tools write them: what each file is taken for, what is taken from it, and what is refused.

The files in tests/golden/imports are made up, in the shapes that the tools write.
"""

import gzip
import re
import shutil
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given as any_given
from hypothesis import settings
from hypothesis import strategies as st

from build.home import ROOT
from build.version import parse_version
from history.comparison.compare import compare
from history.comparison.verdict import Verdict
from history.counts import counted
from history.open import open_store
from history.rendering.table import title
from history.series.series import find_series
from history.timestamps import to_text
from history.transfer.foreign.document import Document
from history.transfer.foreign.formats import FORMATS, recognised
from history.transfer.foreign.reading import read_files
from history.transfer.foreign.results import ToolFormat
from history.transfer.foreign.values import Given
from history.transfer.format_detection import open_files
from history.transfer.merging import merge
from history.transfer.row_source import TransferError
from runners.cli import main
from suites.metrics import METRICS
from tests.history.transfer.test_foreign import take_in, values
from tests.suites.golden import require_golden

FILES = ROOT / "tests/golden/imports"
GOLDEN = ROOT / "tests/golden/imported"
TOOLS = [known for known in FORMATS if isinstance(known, ToolFormat)]

WHEN = datetime(2026, 11, 1, tzinfo=UTC)
GIVEN = Given("db1", when=WHEN, version="postgres@main")
NAMED = replace(GIVEN, metrics={"inserts": ("qps", ""), "p99": ("latency_p99_ms", "")})
"""What is given with the CSV of Otava."""

PGBENCH = """pgbench (17.7)
transaction type: <builtin: select only>
scaling factor: 100
query mode: simple
number of clients: 8
latency average = 0.160 ms
tps = {} (without initial connection time)
"""


TABLE_HEAD = "machine,suite,step,version,metric,value,when"


def written(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def told(path: Path, given: Given) -> list[str]:
    """What is taken from a file, a line for each result."""
    document = Document(path)
    known = recognised(document)
    assert known is not None
    given = NAMED if "otava" in path.name else given
    for when, step in product((None, given.when), (None, "read-write")):
        try:  # only what the file does not say
            read = read_files([(document, known)], replace(given, when=when, step=step))
        except TransferError as error:
            refused = error
        else:
            break
    else:
        raise refused
    lines = [f"{path.name}: {known.name}"]
    for result in read.results:
        first, occasion = result[0], result[0].occasion
        lines += [
            f"  {to_text(occasion.when)} {occasion.suite}, {occasion.profile}: {first.version} "
            f"{first.commit[:7]} '{first.step}' ({first.place.row})",
            *(f"    {value.metric} {value.number:.6g} {METRICS[value.metric].unit}" for value in result),
        ]
    return [*lines, *(f"  note: {note}" for note in read.notes)]


# --- what is taken


def test_what_each_file_holds() -> None:
    text = "\n".join(line for path in sorted(FILES.iterdir()) for line in told(path, GIVEN))
    require_golden("results.txt", f"{text}\n", GOLDEN)


def test_there_is_a_file_of_each_format() -> None:
    names = {known.name for path in FILES.iterdir() if (known := recognised(Document(path)))}
    assert names == {known.name for known in TOOLS}


@pytest.mark.parametrize("known", TOOLS, ids=lambda known: known.name)
def test_the_example_of_a_refusal_is_accepted(tmp_path: Path, known: ToolFormat) -> None:
    path = written(tmp_path / "example.1", f"{known.example}\n")
    assert recognised(Document(path)) is known
    assert len(told(path, GIVEN)) > 2


@pytest.mark.parametrize("path", sorted(FILES.iterdir()), ids=lambda path: path.name)
def test_a_compressed_file_is_the_same(tmp_path: Path, path: Path) -> None:
    packed = written(tmp_path / f"{path.name}.gz", gzip.compress(path.read_bytes()))
    assert [line.replace(".gz", "") for line in told(packed, GIVEN)] == told(path, GIVEN)


def test_a_compressed_table_is_the_same(tmp_path: Path) -> None:
    head, row = "machine,suite,step,version,metric,value,when", "box,s,insert,postgres@17.7,qps,1000,2025-11"
    take_in(tmp_path / "h.db", written(tmp_path / "x.csv.gz", gzip.compress(f"{head}\n{row}\n".encode())))
    assert list(values(tmp_path / "h.db").values()) == [1000.0]


# --- several files


def test_files_of_a_version_are_rounds_and_come_in_again(tmp_path: Path) -> None:
    files = [written(tmp_path / f"{n}.txt", PGBENCH.format(n)) for n in (1000, 1100, 1200)]
    history, given = tmp_path / "h.db", Given("db1", when=WHEN)
    take_in(history, *files[:2], given=given)
    take_in(history, *files[1:], given=given)
    rates = {key[2]: value for key, value in values(history).items() if key[3] == "tps"}
    assert rates == {1: 1000.0, 2: 1100.0, 3: 1200.0}


def test_a_file_that_is_there_twice_is_no_round(tmp_path: Path) -> None:
    path = written(tmp_path / "a.txt", PGBENCH.format(1000))
    copy = written(tmp_path / "b.txt", path.read_bytes())
    with open_store(tmp_path / "h.db") as store:
        incoming = open_files([path, path, copy], Given("db1", when=WHEN), store)
        merge(store, incoming.sources)
    assert len({key[2] for key in values(tmp_path / "h.db")}) == 1
    assert sum("left out, because it has the same content as" in note for note in incoming.notes) == 2


def test_a_version_for_each_file(tmp_path: Path) -> None:
    files = [written(tmp_path / f"{n}.txt", PGBENCH.format(n)) for n in (1000, 1100)]
    given = Given("db1", when=WHEN, version="pg177,postgres@18.1")
    take_in(tmp_path / "h.db", *files, given=given)
    assert [key[0] for key in values(tmp_path / "h.db") if key[3] == "tps"] == [
        "postgres@17.7",
        "postgres@18.1",
    ]
    with pytest.raises(TransferError, match="names 2 versions, and there are 1 files"):
        take_in(tmp_path / "h.db", files[0], given=given)


def test_the_threads_of_a_log_are_one_run(tmp_path: Path) -> None:
    lines = (FILES / "pgbench_log.4242").read_text().splitlines(keepends=True)
    first = written(tmp_path / "pgbench_log.9", "".join(line for line in lines if line.startswith("0")))
    other = written(tmp_path / "pgbench_log.9.1", "".join(line for line in lines if line.startswith("1")))
    whole = tmp_path / "whole.9"
    shutil.copy(FILES / "pgbench_log.4242", whole)
    given = replace(GIVEN, step="select")
    for name, files in (("h.db", [whole]), ("g.db", [first, other])):
        take_in(tmp_path / name, *files, given=given)
    assert values(tmp_path / "h.db") == values(tmp_path / "g.db")


def test_a_sample_of_a_log_gives_no_rate(tmp_path: Path) -> None:
    lines = (FILES / "pgbench_log.4242").read_text().splitlines(keepends=True)
    path = written(tmp_path / "pgbench_log.9", "".join(lines[::5]))
    document = Document(path)
    known = recognised(document)
    assert known is not None
    read = read_files([(document, known)], replace(GIVEN, step="select"))
    assert "tps" not in {value.metric for value in read.results[0]}
    assert any("which is a sample or a part of one" in note for note in read.notes)


def test_one_interval_of_a_log_gives_no_rate(tmp_path: Path) -> None:
    """It was refused."""
    path = written(tmp_path / "pgbench_log.9", "1764028800 5600 1540000 483000000 61 2573\n")
    document = Document(path)
    known = recognised(document)
    assert known is not None
    read = read_files([(document, known)], replace(GIVEN, step="select"))
    assert {value.metric: value.number for value in read.results[0]} == {
        "latency_mean_ms": pytest.approx(0.275),
        "latency_max_ms": pytest.approx(2.573),
        "transactions": 5600.0,
    }
    assert any("only one interval" in note for note in read.notes)


def test_the_times_in_files_make_sessions_unless_one_is_given(tmp_path: Path) -> None:
    """Versions of two sessions are not compared."""
    text = (FILES / "pgbench_intervals.4243").read_text()
    older = written(tmp_path / "pgbench_log.1", text)
    newer = written(tmp_path / "pgbench_log.2", text.replace("17640288", "17640289"))
    unsaid = Given("db1", version="postgres@17.7,postgres@18.1", step="orders")
    for given, sessions in ((unsaid, 2), (replace(unsaid, when=WHEN), 1)):
        with open_store(tmp_path / f"{sessions}.db") as store:
            incoming = open_files([older, newer], given, store)
            merged = merge(store, incoming.sources)
        assert merged.counts["sessions"].added == sessions
        assert any("--when DATE makes them one" in note for note in incoming.notes) is (sessions == 2)


# --- what is refused


def refusals(tmp_path: Path) -> Sequence[tuple[str, str | bytes, Given]]:
    """Name, content, and what is given."""
    whole = {path.name: path.read_text() for path in FILES.iterdir()}
    broken = whole["sysbench-1.0.txt"].partition("SQL statistics")[0]
    log = whole["pgbench_log.4242"].splitlines(keepends=True)
    named = replace(GIVEN, step="read-write")
    return [
        ("nothing.txt", "", GIVEN),
        ("diary.txt", "\n Dear diary\n", GIVEN),
        ("other.json", '{"a": [1, 2]}', GIVEN),
        ("cut.json", '[{"benchmark": ', GIVEN),
        ("sysbench.txt", whole["sysbench-1.0.txt"], Given()),
        ("sysbench-cut.txt", broken, named),
        ("pgbench-cut.txt", whole["pgbench-18.txt"].partition("tps =")[0], GIVEN),
        ("pgbench-devel.txt", PGBENCH.format(1).replace("17.7", "19devel"), Given("db1", when=WHEN)),
        ("pgbench_log.7", "".join([*log[:3], "end of log\n"]), named),
        ("pgbench_log.8", "1764028800 0 0 0 0 0\n", named),
        ("hyperfine.csv", "command,mean,stddev\npsql,1.5,1\n", GIVEN),
        ("table.csv", "step,version,value\ninsert,postgres@17.7,1\n", GIVEN),
        ("otava.csv", whole["otava.csv"], GIVEN),
        ("otava-unit.csv", whole["otava.csv"], replace(GIVEN, metrics={"p99": ("latency_p99_ms", "MiB")})),
        ("otava-name.csv", whole["otava.csv"], replace(GIVEN, metrics={"insert": ("qps", "")})),
        ("metric.txt", whole["sysbench-1.0.txt"], NAMED),
        ("table-mytools.tsv", "col-1 : pg177\n\ncol-1\n100\tinsert\n", GIVEN),
        ("otava-text.csv", whole["otava.csv"], replace(GIVEN, metrics={"remark": ("qps", "")})),
        ("otava-date.csv", whole["otava.csv"].replace("1767409200", "soon"), NAMED),
        ("otava-branch.csv", whole["otava.csv"], replace(NAMED, version="postgres@18.1")),
        ("otava-branches.csv", whole["otava.csv"], replace(NAMED, version=None)),
        ("slash.csv", f"{TABLE_HEAD}\nbox,s,insert,pg177,qps,1,05/11/2025\n", Given()),
        ("percona.csv", f"{TABLE_HEAD}\nbox,s,insert,percona@8.0.36,qps,1,2025-11\n", Given()),
        ("marks.csv", f'{TABLE_HEAD}\nb,s,i,pg177,qps,"1,234",2025-11\n', Given()),
        (
            "mixed.csv",
            f'{TABLE_HEAD}\nb,s,i,pg177,qps,"1,5",2025-11\nb,s,i,pg181,qps,1.234,2025-11\n',
            Given(),
        ),
        ("hammerdb.log", "Vuser 1:RUNNING\nVuser 1:FINISHED SUCCESS\n", GIVEN),
        ("named.txt", whole["pgbench-18.txt"], named),
        ("x.gz", gzip.compress(b"sysbench 1.0.20" * 1000)[:60], GIVEN),
    ]


def test_what_is_said_of_files_that_are_refused(tmp_path: Path) -> None:
    texts = []
    for name, content, given in refusals(tmp_path):
        path = written(tmp_path / name, content)
        with open_store(tmp_path / "h.db") as store, pytest.raises(TransferError) as refused:
            open_files([path], given, store)
        texts.append(str(refused.value).replace(f"{tmp_path}/", ""))
    require_golden("refusals.txt", "\n\n".join(texts) + "\n", GOLDEN)


SAMPLES = [path.read_bytes() for path in sorted(FILES.iterdir())]


@pytest.mark.deep("merges and exports whole histories, also when killed")
@settings(max_examples=150, deadline=None)
@any_given(st.sampled_from(SAMPLES), st.integers(0, 10**4), st.integers(0, 40), st.binary(max_size=30))
def test_damaged_files_are_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, sample: bytes, at: int, length: int, put: bytes
) -> None:
    """Many more are tried in tests/robustness/fuzzing."""
    begin = at % len(sample)
    path = tmp_path_factory.getbasetemp() / "damaged"
    path.write_bytes(sample[:begin] + put + sample[begin + length :])
    with open_store(path.with_suffix(".db")) as store:
        try:
            sources = open_files([path], replace(GIVEN, step="read-write"), store).sources
            assert [item for source in sources for item in source.items()]
        except TransferError as error:
            refused = error
        else:
            return
    assert refused.where
    assert refused.hint


# --- what is shown of it


@pytest.mark.deep("merges and exports whole histories, also when killed")
def test_less_time_is_better(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Times of an operation were neither compared nor searched for changes."""
    history = tmp_path / "h.db"
    for version, factor in (("postgres@17.7", 1.0), ("postgres@18.1", 1.2)):
        for number in range(5):
            row = f"db1,s,q1,{version},operation_ms,{factor * (1000 + number)},2026-11-01,{number + 1}"
            path = written(tmp_path / f"{version}-{number}.csv", f"{TABLE_HEAD},repetition\n{row}\n")
            take_in(history, path)
    with open_store(history) as store:
        comparison = compare(store, parse_version("postgres@17.7"), [parse_version("postgres@18.1")])
        with store.database.reading() as connection:
            series = find_series(connection)
    (contender,) = comparison.contenders
    (step,) = contender.steps
    assert (step.judged.metric, step.judged.verdict) == ("operation_ms", Verdict.REGRESSION)
    assert step.judged.value == pytest.approx(1.2)
    assert title(comparison, contender).endswith("operation_ms (ms, less is better)")
    assert {key.metric for key in series} == {"operation_ms"}
    words = ["history", "series", "--step", "q1", "--branch", "postgres@18", "--history", str(history)]
    assert main(words) == 0
    assert "q1: operation_ms (ms) of postgres@18" in capsys.readouterr().out


@pytest.mark.deep("merges and exports whole histories, also when killed")
def test_the_rounds_of_an_imported_session_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each session said that it had 1 round. Files that come in later add rounds to it."""
    history = tmp_path / "h.db"
    for number in range(3):
        for version, rate in (("postgres@17.7", 1000), ("postgres@18.1", 1100)):
            path = written(tmp_path / f"{version}-{number}.txt", PGBENCH.format(rate + number))
            take_in(history, path, given=Given("db1", when=WHEN, version=version))
        shown = compare_text([str(history)], capsys)
        assert f"imported-s100-simple, {counted(number + 1, 'round')}." in shown
    extra = written(tmp_path / "extra.txt", PGBENCH.format(999))
    take_in(history, extra, given=Given("db1", when=WHEN, version="postgres@17.7"))
    assert ", 4 rounds. Measured on db1" in compare_text([str(history)], capsys)


def compare_text(history: Sequence[str], capsys: pytest.CaptureFixture[str]) -> str:
    main(["compare", "postgres@17.7", "postgres@18.1", "--history", *history])
    return " ".join(capsys.readouterr().out.split())


# --- docs/history.md


def test_every_format_is_documented() -> None:
    document = (ROOT / "docs/history.md").read_text(encoding="utf-8")
    (table,) = re.findall(r"^\| tool \|.*?\n\n", document, re.MULTILINE | re.DOTALL)
    assert len(table.strip().splitlines()) - 2 == len(TOOLS)
    for known in TOOLS:
        assert known.suite in table.lower().replace(" ", "-") or known.suite in table
