"""The last line of a comparison: what is open, how long it takes, and a command that can be copied."""

import gzip
import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from build.home import ROOT
from build.version import parse_version
from history.comparison.compare import compare
from history.comparison.options import CompareOptions
from history.comparison.result import ContenderComparison
from history.rendering.next_step.closing import closing, rounds_needed, with_budget
from history.store.records import SessionStatus
from history.store.writer import Store
from runners.cli import parser
from runners.commands.run import last_lines, request_of
from runners.measuring.session import SessionOutcome
from tests.history.handmade import run_record, session_start

OLD, NEW = "postgres@17.11", "postgres@18.6"


def compared(store: Store, ratios: list[float], metric: str = "qps") -> ContenderComparison:
    """Two versions in a session of a step, whose rounds have these ratios of `metric`."""
    session = store.start_session(session_start())
    for number, ratio in enumerate(ratios, start=1):
        for place, (version, qps) in enumerate(((OLD, 1000.0), (NEW, 1000.0 * ratio))):
            record = run_record(
                {metric: qps}, version=version, repetition=number, position=2 * number + place
            )
            store.record_run(session, record)
    store.finish_session(session, SessionStatus.FINISHED)
    base, new = parse_version(OLD), parse_version(NEW)
    (contender,) = compare(store, base, (new,), CompareOptions(metric=metric)).contenders
    return contender


def test_an_open_step_is_told_with_its_time_and_a_command(
    store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    contender = compared(store, [0.97, 1.02, 0.99, 1.04])
    (step,) = contender.steps
    rounds = rounds_needed(step)
    assert rounds > 4, "more than it has"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TIDEMARK_HOME", str(tmp_path / "a home"))
    told = closing(contender, {"insert": 30.0}, ["--history", "my history.db"])
    sentence, _, line = told.partition(" more: ")
    assert sentence.startswith("undecided in 1 of 1 step: about ")
    home, program, *words = shlex.split(line)
    assert home == f"TIDEMARK_HOME={tmp_path}/a home"
    assert program == f"{ROOT}/tidemark"
    arguments = parser().parse_args(words)
    assert (arguments.command, arguments.suite, arguments.profile) == ("run", "write-heavy", "short")
    assert (list(map(str, arguments.versions)), arguments.history) == ([OLD, NEW], "my history.db")
    assert arguments.until_decided
    (tmp_path / "kept.db.gz").write_bytes(gzip.compress(b"SQLite"))
    told = closing(contender, {"insert": 30.0}, ["--history", "kept.db.gz", "--git", "fork"])
    assert told.endswith(f"{OLD} {NEW} --git fork"), "nothing can be recorded into a compressed history"
    goes_on = closing(contender, {"insert": 30.0}, again=lambda minutes: f"./tidemark again {minutes}")
    assert f"{ROOT}/tidemark again " in goes_on


def test_rounds_that_would_take_a_day_are_no_advice(store: Store) -> None:
    contender = compared(store, [0.8, 1.3, 0.9, 1.2])
    told = closing(contender, {"insert": 3600.0})
    assert told.startswith("undecided in 1 of 1 step; rounds as noisy as these would take about ")
    assert told.endswith("tidemark check")


def test_no_more_rounds_are_advised_than_are_measured(store: Store) -> None:
    contender = replace(compared(store, [0.97, 1.02, 0.99, 1.04]), looks=(3, 4))
    told = closing(contender, {"insert": 30.0}, again=lambda minutes: f"./tidemark again {minutes}")
    sentence, _, line = told.partition(" what makes them so: ")
    assert sentence == "undecided in 1 of 1 step after 4 rounds, the most that are measured;"
    assert line.endswith("tidemark check")
    assert " more: " in closing(contender, {"insert": 30.0}), "a new session may be measured"


def test_a_step_gets_the_least_rounds_however_quiet_its_first_ones_were(store: Store) -> None:
    contender = replace(compared(store, [1.001, 1.03]), looks=(15, 15))
    assert "about 15 min more: " in closing(contender, {"insert": 30.0})
    assert " more: " in closing(replace(contender, looks=(2, 15)), {"insert": 30.0})
    assert "about 15 min" not in closing(replace(contender, looks=(2, 15)), {"insert": 30.0})


def test_a_verdict_that_is_decided_leaves_open_what_may_be_worse(store: Store) -> None:
    session = store.start_session(session_start())
    for number, wal in enumerate((380.0, 440.0, 405.0), start=1):
        for version, bytes_ in ((OLD, 400.0), (NEW, wal)):
            values = {"qps": 1000.0 + number / 10, "wal_bytes_per_op": bytes_}
            store.record_run(session, run_record(values, version=version, repetition=number))
    store.finish_session(session, SessionStatus.FINISHED)
    base, new = parse_version(OLD), parse_version(NEW)
    (contender,) = compare(store, base, (new,), CompareOptions()).contenders
    told = closing(contender, {"insert": 30.0})
    assert told.startswith("every verdict is decided; 1 step may be worse in something else; what each of ")
    arguments = parser().parse_args(["run", OLD, NEW])
    (told,) = last_lines(store, request_of(arguments), SessionOutcome(contender.session.uid), arguments)
    assert told.startswith("every verdict is decided; 1 step may be worse in something else; next: ")


def test_a_decided_comparison_names_what_shows_more(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.delenv("TIDEMARK_HOME", raising=False)
    contender = compared(store, [0.9, 0.901, 0.899, 0.9])
    uid = contender.session.uid
    expected = f"./compare.py {OLD} {NEW} --session {uid} --costs"
    assert closing(contender, {}) == f"every step is decided; what each of them costs: {expected}"
    page = f"./compare.py {OLD} {NEW} --session {uid} --format html > comparison.html"
    assert closing(contender, {}, has_costs=True) == f"every step is decided; as a page to mail: {page}"


def test_no_rounds_are_advised_for_a_metric_that_judges_nothing(store: Store) -> None:
    told = closing(compared(store, [0.9, 0.901, 0.899], "transactions"), {"insert": 30.0})
    assert told.startswith("no step is judged by transactions; what each of them costs: ")


@pytest.mark.parametrize("given", [["--budget", "20"], ["--budget=20"], []])
def test_a_command_that_goes_on_has_one_budget(given: list[str]) -> None:
    words = with_budget(["run", *given, OLD, NEW], 35)
    assert words == ["run", OLD, NEW, "--budget", "35"]
    assert parser().parse_args(words).budget == 35
