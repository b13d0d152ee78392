"""Stalls with their causes, as compare.py tells them, and as the page of a step draws them."""

from pathlib import Path

from build.version import parse_version
from history.comparison.compare import compare, exit_code
from history.comparison.options import CompareOptions
from history.comparison.rounds.stalls import stalls
from history.open import open_store
from history.store.records import SessionStatus
from report.charts.seconds import RoundSeconds, seconds_figure
from suites.accounting.activity import CHECKPOINT, STALL, VACUUM, Activity
from suites.metrics import QPS, STALLED_SECONDS
from tests.history.comparison.findings.test_onset import BASE, CONTENDER
from tests.history.handmade import NIGHT, run_record, session_start

STALLS = (Activity(STALL, 2, 3), Activity(STALL, 9, 9), Activity(CHECKPOINT, 3, 6))


def test_stalls_are_told_with_their_causes(tmp_path: Path) -> None:
    with open_store(tmp_path / "history.db", clock=lambda: NIGHT) as store:
        session = store.start_session(session_start(repetitions=3))
        for number in (1, 2, 3):
            for version in (BASE, CONTENDER):
                found = STALLS if (version, number) == (CONTENDER, 2) else (Activity(VACUUM, 1, 1),)
                run = run_record(
                    {QPS: 1000.0 + number, STALLED_SECONDS: 2.0 * (found is STALLS)},
                    version=version,
                    step="update",
                    repetition=number,
                    per_second=(1000.0,) * 10,
                    activities=found,
                )
                store.record_run(session, run)
        store.finish_session(session, SessionStatus.FINISHED)
        compared = compare(store, parse_version(BASE), [parse_version(CONTENDER)], CompareOptions())
    (step,) = compared.contenders[0].steps
    assert [finding.line for finding in step.findings] == [
        "update: 2 stalls of over a second, base 0: 1 during a checkpoint, 1 unexplained"
    ]
    assert exit_code(compared) == 0


def test_rounds_of_one_version_alone_do_not_count() -> None:
    runs = {("update", BASE, 1): 1, ("update", CONTENDER, 1): 2, ("update", CONTENDER, 2): 3}
    assert list(stalls({3: STALLS}, runs, (BASE, CONTENDER))) == []
    (only_base,) = stalls({1: STALLS, 3: STALLS}, runs, (BASE, CONTENDER))
    assert only_base.text == ("0 stalls of over a second, base 2: 1 during a checkpoint, 1 unexplained")


def test_one_stall_against_none_is_no_news() -> None:
    runs = {("update", BASE, 1): 1, ("update", CONTENDER, 1): 2}
    assert list(stalls({1: STALLS[1:2]}, runs, (BASE, CONTENDER))) == []
    assert list(stalls({1: STALLS[1:2], 2: STALLS}, runs, (BASE, CONTENDER))) == []


def test_a_chart_shows_what_was_recorded_and_nothing_else() -> None:
    rounds = [RoundSeconds(1, [900.0] * 10, [1000.0] * 10, (), (), STALLS)]
    chart = str(seconds_figure(rounds, BASE, CONTENDER, "seconds"))
    assert f"<title>{CONTENDER}: checkpoint, seconds 3 to 6</title>" in chart
    assert "checkpoint, transaction of more than a second" not in chart
    assert chart.count("transaction of more than a second, checkpoint") == 1, "in the table: second 3"
    assert "autovacuum" not in chart
    assert "; marked: checkpoint, stall" in chart
    bare = str(seconds_figure([RoundSeconds(1, [900.0], [1000.0])], BASE, CONTENDER, "seconds"))
    assert "meanwhile" not in bare
