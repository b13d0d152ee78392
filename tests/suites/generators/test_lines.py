"""Reading what several programs print at once, and ending them all."""

import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suites.generators import programs
from suites.generators.complaints import LONGEST_LINE, MAX_LINES, complaint
from suites.generators.load import LoadError, blamed_on
from suites.generators.programs import lines_of, lines_of_all
from suites.processes import start


def python(code: str) -> list[str]:
    return [sys.executable, "-u", "-c", code]


def gone(pids: Sequence[int]) -> bool:
    return not any(psutil.pid_exists(pid) for pid in pids)


def failing(commands: Sequence[Sequence[str]], seconds: float) -> tuple[LoadError, list[int]]:
    """How reading all lines fails, and the pids of those that had printed something."""
    pids = set()
    try:
        for _, pid, _ in lines_of_all(commands, seconds):
            pids.add(pid)
    except LoadError as error:
        return error, list(pids)
    raise AssertionError("nothing failed")


SLEEPER = python("import time; print('up'); time.sleep(60)")


def test_lines_come_when_they_are_printed_and_say_from_whom(tmp_path: Path) -> None:
    """Each waits until the line before its own was seen, so that the lines of the two alternate."""
    code = (
        "import os, time\n"
        "for turn in range(3):\n"
        "    while len(os.listdir('{seen}')) < 2 * turn + {place}: time.sleep(0.01)\n"
        "    print('line', turn)\n"
    )
    commands = [python(code.format(seen=tmp_path, place=place)) for place in (0, 1)]
    seen, pids = [], {}
    for place, pid, line in lines_of_all(commands, 20):
        seen.append((place, line))
        pids[place] = pid
        (tmp_path / str(len(seen))).touch()
    assert seen == [(place, f"line {turn}") for turn in range(3) for place in (0, 1)]
    assert pids[0] != pids[1]
    assert gone(list(pids.values()))


def test_the_last_line_needs_no_newline() -> None:
    argv = python("import sys; sys.stdout.write('one\\ntwo')")
    assert [line for _, line in lines_of(argv, 20)] == ["one", "two"]
    both = [(place, line) for place, _, line in lines_of_all([argv, argv], 20)]
    assert sorted(both) == [(0, "one"), (0, "two"), (1, "one"), (1, "two")]


def test_a_line_in_pieces_is_one_line() -> None:
    """Also when a character of several bytes is cut."""
    code = "import time, os\nfor part in (b'gr\\xc3', b'\\xbcn', b'\\n'): os.write(1, part); time.sleep(0.1)"
    assert [line for _, line in lines_of(python(code), 20)] == ["grün"]


@pytest.mark.parametrize("place", [0, 1])
def test_one_that_fails_ends_the_other(place: int) -> None:
    commands = [SLEEPER, SLEEPER]
    commands[place] = python("import time; time.sleep(1.5); print('FATAL: no table'); raise SystemExit(3)")
    began = time.monotonic()
    error, pids = failing(commands, 30)
    assert error.place == place
    assert error.what.endswith(" failed with exit status 3: no table")
    assert time.monotonic() - began < 25
    assert len(pids) == 2
    assert gone(pids)


def test_one_that_is_killed() -> None:
    said = "print('tidemark: kind work of thread 0 done 1'); print('free(): invalid pointer', flush=True)"
    commands = [SLEEPER, python(f"import os; {said}; os.kill(os.getpid(), 9)")]
    with pytest.raises(LoadError) as caught:
        list(lines_of_all(commands, 30))
    assert caught.value.place == 1
    ended = "was killed by signal 9: free(): invalid pointer"
    assert caught.value.what.endswith(ended), "what it measured does not say why it ended"


def test_all_are_late() -> None:
    error, pids = failing([SLEEPER, SLEEPER], 3)
    assert error.place is None
    assert "is still running" in error.what
    assert "it may hang" in error.hint
    assert len(pids) == 2
    assert gone(pids)


def test_the_only_one_that_is_late_is_named() -> None:
    with pytest.raises(LoadError, match="is still running") as caught:
        list(lines_of_all([python("print('done')"), SLEEPER], 4))
    assert caught.value.place == 1


def test_one_that_is_late_is_quoted_if_it_says_why() -> None:
    code = "import time; print('FATAL: a lock is held', flush=True); time.sleep(60)"
    with pytest.raises(LoadError, match="still running 30 s after its time limit: a lock is held") as caught:
        list(lines_of_all([python(code)], 2))
    assert caught.value.hint == ""


@pytest.mark.deep("simulates many rounds, or waits for real processes")
def test_one_that_never_stops_printing_is_late_too() -> None:
    with pytest.raises(LoadError, match="is still running"):
        list(lines_of_all([python("while True: print('x')")], 1))


def test_one_that_prints_no_more_but_lives_on_is_late() -> None:
    code = "import os, time; os.close(1); os.close(2); time.sleep(60)"
    began = time.monotonic()
    with pytest.raises(LoadError, match="is still running") as caught:
        list(lines_of_all([python("print('done')"), python(code)], 4))
    assert caught.value.place == 1
    assert time.monotonic() - began < 40


def test_whoever_leaves_the_loop_leaves_nothing_behind() -> None:
    lines = lines_of_all([SLEEPER, SLEEPER], 30)
    pids = [next(lines)[1], next(lines)[1]]
    lines.close()  # type: ignore[attr-defined]
    assert gone(pids)


def test_a_program_that_is_not_there_ends_those_that_started(monkeypatch: pytest.MonkeyPatch) -> None:
    started = []

    def noting(*arguments: Any, **options: Any) -> object:
        started.append(start(*arguments, **options))
        return started[-1]

    monkeypatch.setattr(programs, "start", noting)
    with pytest.raises(FileNotFoundError):
        list(lines_of_all([SLEEPER, ["/nowhere/sysbench"]], 30))
    assert len(started) == 1
    assert gone([started[0].pid])


def test_a_load_that_fails_is_blamed_on_its_server() -> None:
    with pytest.raises(LoadError) as caught, blamed_on(2):
        raise LoadError("no", place=0)
    assert caught.value.place == 2


def test_all_run_on_the_cores_they_are_bound_to() -> None:
    core = max(os.sched_getaffinity(0))
    argv = python("import os; print(sorted(os.sched_getaffinity(0)))")
    lines = [line for _, _, line in lines_of_all([argv, argv], 20, bound_to=(core,))]
    assert lines == [f"[{core}]", f"[{core}]"]


# --- what is shown of the output of one that failed

BANNER = """sysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)

Running the test with following options:
Number of threads: 2
Report intermediate results every 1 second(s)
Initializing random number generator from seed (20260112).


Initializing worker threads...

Threads started!

[ 1s ] thds: 2 tps: 11 qps: 11 (r/w/o: 0/11/0) lat (ms,99%): 1 err/s: 0 reconn/s: 0
tidemark: thread 0 from 1.0 to 2.0
""".splitlines()

THREAD = "FATAL: `thread_run' function failed: /suites/write_heavy/write_heavy.lua:56: "

INSERT = f"INSERT INTO sbtest1 (k, c, pad) VALUES{'(28946, 34210721047-35574727054)' * 150}"


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ([], ""),
        (
            [
                'FATAL: PQexecPrepared() failed: 7 relation "sbtest1" does not exist',
                f"{THREAD}SQL error, errno = 0, state = '42P01': relation \"sbtest1\" does not exist",
            ]
            * 2,
            'PQexecPrepared() failed: 7 relation "sbtest1" does not exist',
        ),
        (
            [
                "FATAL: mysql_stmt_execute() returned error 2006 (Server has gone away) for query 'UPDATE t'",
                f"{THREAD}SQL error, errno = 2006, state = 'HY000': Server has gone away",
            ],
            "mysql_stmt_execute() returned error 2006 (Server has gone away) for query 'UPDATE t'",
        ),
        (
            ["FATAL: `thread_run' function failed: a transaction was rolled back 1000 times in 1 s: no in x"],
            "a transaction was rolled back 1000 times in 1 s: no in x",
        ),
        ([f"{THREAD}attempt to index a nil value"], "attempt to index a nil value"),
        (
            ["pgbench: error: client 0 script 0 aborted in command 4 query 0: ERROR:  division by zero"],
            "client 0 script 0 aborted in command 4 query 0: ERROR: division by zero",
        ),
        (["free(): invalid pointer"], "free(): invalid pointer"),
    ],
    ids=["nothing", "Postgres", "MySQL", "again and again", "the script", "pgbench", "last words"],
)
def test_the_first_error_is_shown_once(said: list[str], shown: str) -> None:
    assert complaint([*BANNER, *said]) == shown


def test_a_statement_of_4_kb_is_a_line() -> None:
    failed = 'FATAL: PQexec() failed: 7 new row for relation "sbtest1" violates check constraint "x"'
    said = [failed, f"FATAL: failed query was: {INSERT}"] * 3
    shown = complaint([*BANNER, *said])
    assert shown.startswith(
        'PQexec() failed: 7 new row for relation "sbtest1" violates check constraint "x"; '
    )
    assert shown.count("INSERT INTO") == 1
    assert shown.endswith("…")


def test_what_still_runs_has_no_last_words() -> None:
    assert complaint(["free(): invalid pointer"], is_over=False) == ""
    assert complaint(["FATAL: a lock is held"], is_over=False) == "a lock is held"


@given(st.lists(st.one_of(st.text(), st.sampled_from([*BANNER, THREAD, "FATAL: x", INSERT, "error"]))))
def test_any_output_makes_a_short_sentence(lines: list[str]) -> None:
    shown = complaint(lines)
    assert len(shown) <= MAX_LINES * (LONGEST_LINE + 2)
    assert "\n" not in shown
