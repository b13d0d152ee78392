"""The benchmark of counts: sessions drawn from recorded passes, what is planted, figures that can miss."""

from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import pytest

from benchmarks import exact
from benchmarks.counts import recorded_passes
from benchmarks.counts.counted_levels import FALSE, KINDS, level_figures, share_of, two_levels
from benchmarks.counts.counted_levels import by_load as by_load_kind
from benchmarks.counts.counted_sessions import (
    ITERATIONS,
    UNTOUCHED,
    CountedSessions,
    found_figures,
    planted_patch,
)
from benchmarks.counts.recorded_passes import SESSIONS, add_passes, drawn, false_figures, recorded_loads
from benchmarks.output.figures import Figure
from build.errors import TidemarkError
from build.version import Engine, parse_version
from history.comparison.compare import compare
from history.comparison.options import CompareOptions
from history.comparison.result import ContenderComparison
from history.comparison.verdict import Verdict
from history.open import open_store
from history.store.records import EXACT, ONLY, SessionStatus
from suites.metric_names import INSTRUCTIONS
from tests.history.handmade import NIGHT, run_record, session_start

QUIET = [[50_000.0, 50_010], [50_020.0, 50_000]]


def test_equal_passes_have_no_false_verdict_and_unequal_ones_do() -> None:
    assert drawn(Engine.POSTGRES, {"insert": QUIET}) == recorded_passes.DrawnSessions(0, 0, 0)
    unequal = drawn(Engine.POSTGRES, {"insert": QUIET, "delete": [*QUIET, [50_500.0, 50_510]]})
    assert 0.5 < unequal.false / SESSIONS < 0.8, "two of three pairs of loads"
    scattered = drawn(Engine.POSTGRES, {"delete": [[50_000.0, 50_500], [50_500.0, 50_000]]})
    assert scattered == recorded_passes.DrawnSessions(0, SESSIONS, 0)
    assert drawn(Engine.POSTGRES, {"insert": QUIET}, planted=0.007).slower == SESSIONS


def test_levels_are_taken_for_changes_where_no_pass_can_tell() -> None:
    """The figures can miss: a level that lasts for a session is a false verdict in half of the steps."""
    by_pass, by_load = (share_of(draw, 1.0, steps=2000) for draw in (two_levels(0.5), by_load_kind))
    assert sum(by_pass.get(verdict, 0) for verdict in FALSE) < 0.01
    assert sum(by_load.get(verdict, 0) for verdict in FALSE) > 0.4
    assert share_of(two_levels(0), 1.0, change=0.6, steps=10) == {Verdict.REGRESSION: 1.0}
    hints = [figure for figure in level_figures(steps=50, apart=(1.0,)) if "not tuned on" in figure.note]
    assert len(hints) == sum(not kind.is_chosen_for for kind in KINDS.values())


def test_sessions_are_added_to_the_recording(tmp_path: Path) -> None:
    path = tmp_path / "passes.json"
    for first in (2.04, 3.0):
        both = {"postgres@18.6": [first, first], "postgres@18.6#twin": [2.0, 2.0]}
        add_passes(Engine.POSTGRES, {"insert": both}, path)
    assert recorded_loads(path) == {Engine.POSTGRES: {"insert": [[2.0, 2], [2, 2], [3, 3], [2, 2]]}}
    with patch.object(recorded_passes, "recorded_loads", lambda: recorded_loads(path)):
        few, false, *found = false_figures()
    assert not few.met, "8 passes"
    assert not false.met
    assert not any(figure.met for figure in found)


def test_without_a_recording_its_figure_is_missed(tmp_path: Path) -> None:
    with patch.object(recorded_passes, "recorded_loads", lambda: recorded_loads(tmp_path / "passes.json")):
        (figure,) = false_figures()
    assert not figure.met
    assert "bench exact" in figure.note


def test_the_patch_of_the_demo_is_planted_in_sizes(tmp_path: Path) -> None:
    for count in ITERATIONS.values():
        text = planted_patch(tmp_path, count).read_text()
        assert f"i < {count};" in text


def compared(path: Path, counts: dict[str, float]) -> ContenderComparison:
    """A comparison of two versions, of which the second counts other instructions than 50,000."""
    base, contender = parse_version("postgres@18.6"), parse_version("postgres@18.6#planted")
    with open_store(path / "history.db", clock=lambda: NIGHT) as store:
        start = replace(session_start(repetitions=4), options={EXACT: {"passes": 2, "when": ONLY}})
        session = store.start_session(start)
        for place, (step, count) in enumerate(counts.items(), start=1):
            for version, value in ((base, 50_000.0), (contender, count)):
                for number in range(1, 5):
                    values = {INSTRUCTIONS: value}
                    store.record_run(
                        session,
                        run_record(
                            values, version=str(version), step=step, step_position=place, repetition=number
                        ),
                    )
        store.finish_session(session, SessionStatus.FINISHED)
        return compare(store, base, (contender,), CompareOptions(metric=INSTRUCTIONS)).contenders[0]


@pytest.mark.parametrize(
    ("delete", "insert", "met"),
    [
        (50_500, 50_000, [True, True, True]),
        (50_100, 50_000, [False, True, False]),
        (50_500, 50_500, [True, False, True]),
    ],
)
def test_what_is_planted_is_found_where_it_is(
    tmp_path: Path, delete: float, insert: float, met: list[bool]
) -> None:
    assert UNTOUCHED == ("insert",)
    comparison = compared(tmp_path, {"update-index": 52_500, "delete": delete, "insert": insert})
    assert [figure.met for figure in found_figures("planted 1 %", 1, comparison)] == met


def test_parts_and_exit_codes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIDEMARK_HOME", str(tmp_path))
    monkeypatch.setenv("TIDEMARK_BENCH_PARTS", "equal record")
    missed = Figure("apart", 2.0, "%", at_most=0.3)
    asked = []

    def equal(sessions: CountedSessions) -> list[Figure]:
        asked.append(sessions.records)
        return [missed]

    with patch.object(exact, "PARTS", {"equal": equal}):
        assert exact.main() == 1
    assert asked == [True]
    assert "MISSED" in capsys.readouterr().out
    monkeypatch.setenv("TIDEMARK_BENCH_PARTS", "imagined")
    with pytest.raises(TidemarkError, match="imagined"):
        exact.main()
