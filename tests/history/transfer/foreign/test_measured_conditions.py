"""Results that are no plain runs, or not of one source, and texts that look like something else."""

from collections.abc import Callable
from pathlib import Path

import pytest

from build.home import ROOT
from history.open import open_store
from runners.cli import main

FILES = ROOT / "tests/golden/imports"

PLAIN = """pgbench (17.7)
transaction type: <builtin: select only>
scaling factor: 2
query mode: simple
number of clients: 4
number of transactions actually processed: 29194
latency average = 0.543 ms
initial connection time = 38.739 ms
tps = 7369.473557 (without initial connection time)
"""
RECONNECTS = PLAIN.replace(
    "initial connection time = 38.739 ms", "average connection time = 7.432 ms"
).replace("7369.473557 (without initial connection time)", "133.772192 (including reconnection times)")
LIMITED = PLAIN.replace("initial", "rate limit schedule lag: avg 0.614 (max 20.522) ms\ninitial", 1)
SYSBENCH = (FILES / "sysbench-1.0.txt").read_text()

Import = Callable[..., tuple[int, str]]


@pytest.fixture
def take(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Import:
    """Import texts, a file each, by the command; return its exit code and all that it says."""

    def run(*texts: str | bytes, step: str = "", version: str = "postgres@17.7") -> tuple[int, str]:
        files = [tmp_path / f"{number}.txt" for number in range(len(texts))]
        for path, text in zip(files, texts, strict=True):
            path.write_bytes(text if isinstance(text, bytes) else text.encode())
        words = ["--machine", "db1", "--when", "2026-11-01", "--history", str(tmp_path / "h.db")]
        words += ["--step", step] if step else []
        words += ["--version", version] if version else []
        code = main(["history", "import", *map(str, files), *words])
        captured = capsys.readouterr()
        return code, captured.out + captured.err

    return run


def sessions(folder: Path) -> dict[str, list[dict[str, float]]]:
    """The values of each round by the profile of its session."""
    with open_store(folder / "h.db") as store:
        found: dict[str, list[dict[str, float]]] = {}
        for number in range(1, 100):
            with store.database.reading() as connection:
                row = connection.exec_driver_sql(f"SELECT profile FROM sessions WHERE id = {number}").first()
            if row is None:
                return found
            found[row.profile] = [dict(run.values) for run in store.runs(number)]
    return found


# --- no plain runs


def test_pgbench_that_connects_anew_or_at_a_rate_is_another_session(take: Import, tmp_path: Path) -> None:
    """They were rounds of one step, with ratios of 0.02."""
    assert take(PLAIN, RECONNECTS, LIMITED)[0] == 0
    found = sessions(tmp_path)
    assert {name: [round_.get("tps") for round_ in rounds] for name, rounds in found.items()} == {
        "imported-s2-simple": [7369.473557],
        "imported-s2-simple-reconnect": [133.772192],
        "imported-s2-simple-rate": [None],
    }
    assert found["imported-s2-simple-rate"][0]["latency_mean_ms"] == 0.543


def test_sysbench_at_a_rate_is_a_session_of_that_rate(take: Import, tmp_path: Path) -> None:
    limited = SYSBENCH.replace(
        "Number of threads: 8", "Number of threads: 8\nTarget transaction rate: 100/sec"
    )
    faster = limited.replace("rate: 100/", "rate: 200/")
    anew = SYSBENCH.replace(
        "reconnects:                          0", "reconnects:                          9"
    )
    assert take(SYSBENCH, limited, faster, anew, step="read-write")[0] == 0
    found = sessions(tmp_path)
    assert {name: "tps" in rounds[0] or "qps" in rounds[0] for name, rounds in found.items()} == {
        "imported": True,
        "imported-rate100": False,
        "imported-rate200": False,
        "imported-reconnect": True,
    }
    assert found["imported-rate100"][0]["latency_p95_ms"] == 12.52


def test_a_log_of_pgbench_at_a_rate_gives_latencies(take: Import, tmp_path: Path) -> None:
    lines = [line for line in (FILES / "pgbench_log.4242").read_text().splitlines() if "skipped" not in line]
    limited = "".join(f"{line} 604\n" for line in lines)
    retried = "".join(f"{line} {number % 2}\n" for number, line in enumerate(lines))
    intervals = "".join(
        f"1764028{800 + number} 56 15400 4830000 61 2573 900 9999 0 90\n" for number in range(3)
    )
    assert take(limited, retried, intervals, step="orders")[0] == 0
    found = sessions(tmp_path)
    assert {name: ["tps" in values for values in rounds] for name, rounds in found.items()} == {
        "imported-rate": [False, False],
        "imported": [True],
    }


def test_latencies_decide_where_a_rate_was_limited(
    take: Import, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    slower = LIMITED.replace("0.543", "0.743").replace("(17.7)", "(18.1)")
    assert take(*[LIMITED] + [LIMITED.replace("0.543", f"0.54{n}") for n in range(3)], version="")[0] == 0
    assert take(*[slower] + [slower.replace("0.743", f"0.74{n}") for n in range(3)], version="")[0] == 0
    main(["compare", "postgres@17.7", "postgres@18.1", "--history", str(tmp_path / "h.db")])
    assert "latency_mean_ms (ms, less is better)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (PLAIN + "pgbench: error: Run was aborted; the above results are incomplete.\n", "0.txt, line 10"),
        ("pgbench: error: client 3 script 0 aborted in command 4 query 0: ERROR: no\n" + PLAIN, "line 1"),
        ("Client 3 aborted in state 5: ERROR: no\n" + PLAIN, "line 1"),
        (PLAIN.replace("processed: 29194", "processed: 29194/40000"), "29194 of 40000 transactions"),
        ("FATAL: mysql_stmt_execute() returned error 1205\n" + SYSBENCH, "FATAL: mysql_stmt_execute()"),
    ],
)
def test_an_aborted_run_is_refused(take: Import, text: str, said: str) -> None:
    code, output = take(text)
    assert (code, "the run was aborted" in output, said in output) == (2, True, True), output


@pytest.mark.deep("imports and judges months of nights")
def test_all_transactions_of_a_run_that_failed_or_were_skipped_are_no_abort(take: Import) -> None:
    counted = (
        "processed: 29194/40000\nnumber of failed transactions: 10000 (25 %)\n"
        "number of transactions skipped: 806 (2.0 %)"
    )
    assert take(PLAIN.replace("processed: 29194", counted))[0] == 0


# --- several sources in one file


APART = [
    (PLAIN, "Instance: small", "Instance: large", ""),
    (SYSBENCH, "db1:3306", "db2:3306", "read-write"),
]


@pytest.mark.parametrize(("text", "first", "second", "step"), APART)
def test_what_separates_results_is_asked_for(
    take: Import, text: str, first: str, second: str, step: str
) -> None:
    code, output = take(f"{first}\n{text}\n{second}\n{text}", step=step)
    assert code == 2, output
    assert "are below different lines" in output
    assert f"'{second.strip()}'" in output
    assert "to a file of its own" in output


@pytest.mark.parametrize(
    "lines",
    [
        ("run 1 of 2", "run 2 of 2"),
        ("Fri Nov 20 10:12:00 UTC 2026", "Sat Nov 21 09:00:07 UTC 2026"),
        ("=== 2026-11-20T10:12:00Z round 1 ===", "=== 2026-11-20T10:13:01Z round 2 ==="),
        ("real 0m4.021s", "real 0m4.120s"),
        ("pgbench -S -c 4", "pgbench -S -c 4"),
        ("progress: 1.0 s, 162.4 tps, lat 4.263 ms", "starting vacuum...end."),
    ],
)
def test_numbers_and_times_of_rounds_separate_nothing(
    take: Import, tmp_path: Path, lines: tuple[str, str]
) -> None:
    code, output = take(f"{lines[0]}\n{PLAIN}\n{lines[1]}\n{PLAIN.replace('7369', '7401')}")
    assert code == 0, output
    assert [values["tps"] for values in sessions(tmp_path)["imported-s2-simple"]] == [
        7369.473557,
        7401.473557,
    ]


def test_steps_of_their_own_may_be_below_different_lines(take: Import) -> None:
    other = PLAIN.replace("clients: 4", "clients: 8")
    assert take(f"with four\n{PLAIN}\nand eight\n{other}")[0] == 0


def test_several_versions_in_a_file_do_not_become_one(take: Import) -> None:
    both = PLAIN + PLAIN.replace("(17.7)", "(18.1, server 16.4)")
    code, output = take(both, version="postgres@main")
    assert (code, "are of postgres@17.7 and postgres@16.4" in output) == (2, True), output
    assert take(both, version="")[0] == 0


# --- texts


def test_text_that_begins_with_a_bracket_is_no_json(take: Import) -> None:
    """It was called damaged JSON."""
    ycsb = "[OVERALL], RunTime(ms), 15234\n[READ], AverageLatency(us), 623.4\n"
    assert "this is the output of YCSB" in take(ycsb)[1]
    assert "it begins with '[ 10s ] thds: 8'" in take("[ 10s ] thds: 8\n")[1]
    assert "it begins with '{insert} took 12 ms'" in take("{insert} took 12 ms\n")[1]
    assert "this is JSON" in take('[{"benchmark": "a.B.c", ')[1]


PREFIXES = (
    "2026-11-20T10:1{}:00.1234567Z ",
    "[2026-11-20 10:1{}:00] ",
    "Nov 20 10:1{}:00 host pgbench[4242]: ",
    "pgbench-1  | ",
    "load\tRun pgbench\t2026-11-20T10:1{}:00.1234567Z ",
)


@pytest.mark.deep("imports and judges months of nights")
@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("name", ["pgbench-18.txt", "sysbench-1.0.txt"])
def test_a_prefix_of_all_lines_is_left_out(take: Import, tmp_path: Path, prefix: str, name: str) -> None:
    text = (FILES / name).read_text()
    step = "read-write" if name.startswith("sysbench") else ""
    assert take(text, step=step)[0] == 0
    plain = sessions(tmp_path)
    (tmp_path / "h.db").unlink()
    logged = "".join(
        f"{prefix.format(number % 10)}{line}".rstrip() + "\n" for number, line in enumerate(text.splitlines())
    )
    code, output = take(logged, step=step)
    assert code == 0, output
    assert sessions(tmp_path) == plain
    assert "before the first line" in output or name.startswith("sysbench")


def test_where_only_some_lines_have_a_prefix_it_is_named(take: Import) -> None:
    logged = "".join(f"db-1 | {line}\n" for line in PLAIN.splitlines())
    code, output = take(f"web-1 | GET /\n{logged}")
    assert code == 2
    assert "0.txt, line 10 has it after 'db-1 | '" in output


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-8-sig"])
def test_a_text_in_another_encoding_is_decoded(take: Import, tmp_path: Path, encoding: str) -> None:
    table = "machine,suite,step,version,metric,value,when\nb\u00f6x,s,insert,pg177,qps,1000,2025-11\n"
    assert take(PLAIN.replace("\n", "\r\n").encode(encoding), table.encode(encoding), version="")[0] == 0
    found = sessions(tmp_path)
    assert found["imported-s2-simple"][0]["tps"] == 7369.473557
    assert found["imported"][0]["qps"] == 1000
