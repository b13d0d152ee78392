"""The benchmark of counts: sessions drawn from recorded passes, what is planted, figures that can miss."""

from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import pytest

from benchmarks import exact
from benchmarks.output.figures import Figure
from benchmarks.real_builds import recorded_passes
from benchmarks.real_builds.counted_sessions import (
    ITERATIONS,
    UNTOUCHED,
    CountedSessions,
    found_figures,
    planted_patch,
)
from benchmarks.real_builds.recorded_passes import SESSIONS, add_passes, drawn, false_figures, recorded_loads
from build.errors import TidemarkError
from build.version import Engine, parse_version
from history.comparison.compare import compare
from history.comparison.result import CompareOptions, ContenderComparison
from history.open import open_store
from history.store.records import EXACT, ONLY, SessionStatus
from suites.metrics import INSTRUCTIONS
from tests.history.handmade import NIGHT, run_record, session_start

QUIET = [[50_000.0, 50_010], [50_020.0, 50_000]]


def test_equal_passes_have_no_false_verdict_and_unequal_ones_do() -> None:
    assert drawn(Engine.POSTGRES, {"insert": QUIET}) == recorded_passes.DrawnSessions(0, 0)
    unequal = drawn(Engine.POSTGRES, {"insert": QUIET, "delete": [*QUIET, [50_500.0, 50_510]]})
    assert 0.5 < unequal.false / SESSIONS < 0.8, "two of three pairs of loads"
    scattered = drawn(Engine.POSTGRES, {"delete": [[50_000.0, 50_500]] * 2})
    assert scattered == recorded_passes.DrawnSessions(0, SESSIONS)


def test_sessions_are_added_to_the_recording(tmp_path: Path) -> None:
    path = tmp_path / "passes.json"
    for first in (2.04, 3.0):
        both = {"postgres@18.6": [first, first], "postgres@18.6#twin": [2.0, 2.0]}
        add_passes(Engine.POSTGRES, {"insert": both}, path)
    assert recorded_loads(path) == {Engine.POSTGRES: {"insert": [[2.0, 2], [2, 2], [3, 3], [2, 2]]}}
    with patch.object(recorded_passes, "recorded_loads", lambda: recorded_loads(path)):
        few, false = false_figures()
    assert not few.met, "8 passes"
    assert not false.met


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
        start = replace(session_start(repetitions=2), options={EXACT: {"passes": 2, "when": ONLY}})
        session = store.start_session(start)
        for place, (step, count) in enumerate(counts.items(), start=1):
            for version, value in ((base, 50_000.0), (contender, count)):
                for number in (1, 2):
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
