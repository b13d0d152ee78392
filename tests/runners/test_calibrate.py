"""`./tidemark calibrate`: what it stores, what it says, and with which exit code it ends; nothing is served.

The expected table lies in tests/golden/runners/; rewrite it as those of tests/test_compare.py.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from build.home import ROOT
from build.progress import Progress, Silent
from history.comparison.pairs import noise_of
from history.open import open_store
from history.store.records import Run, RunStatus, SessionStatus
from history.store.writer import Store
from runners.cli import main
from runners.commands import calibrate
from runners.measuring.request import Request
from runners.measuring.session import SessionOutcome
from tests.history.handmade import run_record, session_start
from tests.suites.golden import require_golden

GOLDEN = ROOT / "tests/golden/runners/calibrate.txt"
VERSION, TWIN = "postgres@18.6", "postgres@18.6#twin"
WORDS = ["calibrate", VERSION, "--step", "update-index", "--step", "delete"]


class Night:
    """What the session that calibrate asks for will measure: step -> the twin's ratio in each round."""

    def __init__(self) -> None:
        self.ratios: dict[str, list[float]] = {
            "update-index": [1.0, 1.01, 0.99, 1.004, 0.997],
            "delete": [0.98, 1.03, 1.01, 0.96, 1.02],
        }
        self.failures: list[str] = []
        self.requests: list[Request] = []

    def carry_out(self, request: Request, home: object, store: Store, shown: object) -> SessionOutcome:
        """Stands for runners.measuring.session.run_session."""
        self.requests.append(request)
        session = store.start_session(session_start(f"night-{len(self.requests)}"))
        for position, (step, ratios) in enumerate(self.ratios.items(), start=1):
            for number, ratio in enumerate(ratios, start=1):
                for version, qps in ((VERSION, 1000.0), (TWIN, 1000.0 * ratio)):
                    values = {"qps": qps, "tps": 7.0, "errors": 0.0, "wal_bytes_per_op": qps / 3}
                    record = run_record(
                        values if ratio else None,
                        version=version,
                        step=step,
                        step_position=position,
                        repetition=number,
                        failure=None if ratio else "the server stopped",
                        key="one build",
                    )
                    store.record_run(session, record)
        store.finish_session(session, SessionStatus.FINISHED)
        return SessionOutcome(f"night-{len(self.requests)}", failures=self.failures)


@contextmanager
def silent() -> Iterator[Progress]:
    yield Silent()


@pytest.fixture
def night(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Night:
    night = Night()
    monkeypatch.setenv("TIDEMARK_HOME", str(tmp_path))
    monkeypatch.setattr(calibrate, "run_session", night.carry_out)
    monkeypatch.setattr(calibrate, "progress", silent)
    return night


def test_the_noise_is_shown_and_stored(
    night: Night, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(WORDS) == 0
    found, _, where = capsys.readouterr().out.rpartition("history: ")
    path, last, end = where.split("\n")
    assert (path, end) == (str(tmp_path / "history.db"), "")
    assert last.endswith("./tidemark history show")
    require_golden(GOLDEN.name, found, GOLDEN.parent)
    with open_store(tmp_path / "history.db") as store:
        noise = store.noise(session_start("later"), "qps")
        constant, other = (
            store.noise(session_start("later"), metric) for metric in ("tps", "wal_bytes_per_op")
        )
    assert {step: calibrated.rounds for step, calibrated in noise.items()} == {"update-index": 5, "delete": 5}
    assert noise["delete"].sd == pytest.approx(0.0293, abs=1e-4)
    assert noise["delete"].degrees_of_freedom == 4
    assert (constant, len(other)) == ({}, 2)


@pytest.mark.deep("a whole command in a process of its own")
@pytest.mark.parametrize(
    ("durability", "options", "known"),
    [
        ("relaxed", {"threads": 8}, True),
        ("relaxed", {"threads": 16}, True),
        ("full", {"threads": 8}, False),
        ("relaxed", {"threads": 8, "seconds": 60.0}, False),
        ("relaxed", {"threads": 8, "slice_seconds": 1.0}, False),
        ("relaxed", {"threads": 8, "mode": "long"}, False),
    ],
)
def test_rounds_of_another_kind_are_not_calibrated(
    night: Night, tmp_path: Path, durability: str, options: dict[str, object], known: bool
) -> None:
    assert main(WORDS) == 0
    with open_store(tmp_path / "history.db") as store:
        later = replace(session_start("later"), durability=durability, options=options)
        assert bool(store.noise(later, "qps")) is known


def test_it_measures_a_version_and_its_twin(night: Night) -> None:
    main([*WORDS, "--rounds", "7"])
    (request,) = night.requests
    assert [str(version) for version in request.versions] == [VERSION, TWIN]
    assert (request.repetitions, request.until_decided, request.variants) == (7, False, {})
    assert [step.name for step in request.steps] == ["update-index", "delete"]


@pytest.mark.deep("a whole command in a process of its own")
def test_twins_that_differ_make_the_machine_unfit(night: Night, capsys: pytest.CaptureFixture[str]) -> None:
    night.ratios["update-index"] = [0.95, 0.951, 0.949, 0.95, 0.9505]
    night.failures = ["something else"]
    assert main(WORDS) == 1
    said = capsys.readouterr().out
    assert (
        "the two identical builds differ by -4.9 % on update-index: this machine is unfit, "
        "see ./tidemark check"
    ) in said
    assert "failed: something else" in said


@pytest.mark.deep("a whole command in a process of its own")
@pytest.mark.parametrize("ratios", [[], [1.0, 1.01], [1.0, 0.0, 0.0, 0.99], [1.0, 1.0, 1.0]])
def test_a_step_of_which_nothing_is_known_is_trouble(
    night: Night, ratios: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    night.ratios["delete"] = ratios
    assert main(WORDS) == 2
    said = capsys.readouterr().out
    assert "the noise of delete is unknown" in said
    assert "update-index" in said


def test_the_rounds_of_long_mode_are_blocks(night: Night, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*WORDS, "--profile", "io", "--rounds", "5"]) == 0
    (request,) = night.requests
    assert (request.least_rounds, request.most_rounds, request.profile.seconds) == (5, 5, 600)
    found = capsys.readouterr().out
    assert found.split()[:2] == ["step", "blocks"]
    assert "in 5 blocks, or in 30 blocks of --until-decided" in " ".join(found.split())


@pytest.mark.deep("a whole command in a process of its own")
def test_the_latest_calibration_holds_step_by_step(night: Night, tmp_path: Path) -> None:
    main(WORDS)
    night.ratios = {"delete": [0.9, 1.1, 1.0, 1.05]}
    main(["calibrate", VERSION, "--step", "delete"])
    with open_store(tmp_path / "history.db") as store:
        noise = store.noise(session_start("later"), "qps")
    assert {step: calibrated.session for step, calibrated in noise.items()} == {
        "update-index": "night-1",
        "delete": "night-2",
    }


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["calibrate", TWIN], "name postgres@18.6, which is measured against itself"),
        (["calibrate", VERSION, "--rounds", "2"], "at least 3"),
        (["calibrate", VERSION, "--suite", "nonsense"], "there is no suite"),
        (["calibrate", VERSION, "--profile", "tiny"], "its profiles are"),
        (["calibrate", VERSION, "--step", "scan"], "its steps are"),
        (["calibrate", VERSION, "--history", "oracle://host/name"], "cannot be stored in oracle"),
    ],
)
def test_mistakes(
    words: list[str], said: str, night: Night, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    assert said in capsys.readouterr().err
    assert not night.requests
    assert not (tmp_path / "history.db").exists()


@pytest.mark.deep("a whole command in a process of its own")
def test_the_history_can_lie_elsewhere(night: Night, tmp_path: Path) -> None:
    path = tmp_path / "deep" / "other.db"
    assert main([*WORDS, "--history", str(path)]) == 0
    assert main([*WORDS, "--history", f"sqlite:///{path}"]) == 0
    assert not (tmp_path / "history.db").exists()


# --- the noise of a hand-made history


def runs(metric: str, base: list[float], twin: list[float]) -> list[Run]:
    return [
        Run(0, version, "", "insert", 1, number, 0, RunStatus.FINISHED, None, {metric: value})
        for version, values in ((VERSION, base), (TWIN, twin))
        for number, value in enumerate(values, start=1)
    ]


@pytest.mark.parametrize(
    ("base", "twin"),
    [
        ([5.0, 5.0], [5.1, 4.9]),
        ([5.0, 5.0, 5.0], [5.0, 5.0, 5.0]),
        ([0.0, 5.0, 5.0], [1.0, 5.1, 4.9]),
        ([5.0, 5.0, 5.0], [5.1, 4.9]),
    ],
    ids=["two rounds", "constant", "a zero", "two pairs"],
)
def test_there_is_no_noise_of(base: list[float], twin: list[float]) -> None:
    assert noise_of(runs("qps", base, twin), VERSION, TWIN) == []


rates = st.lists(st.floats(900, 1100), min_size=3, max_size=12)


@given(rates, st.floats(0.5, 2))
def test_a_constant_difference_is_no_noise(values: list[float], factor: float) -> None:
    base = [1000.0] * len(values)
    plain = noise_of(runs("qps", base, values), VERSION, TWIN)
    shifted = noise_of(runs("qps", base, [value * factor for value in values]), VERSION, TWIN)
    for noise, other in zip(plain, shifted, strict=False):
        assert noise.sd == pytest.approx(other.sd, rel=1e-6, abs=1e-12)
        assert noise.degrees_of_freedom == noise.rounds - 1 == len(values) - 1


@given(rates)
@example([947.0, 947.0, 947.0])
def test_it_is_the_same_from_either_side(values: list[float]) -> None:
    there = noise_of(runs("qps", [1000.0] * len(values), values), VERSION, TWIN)
    back = noise_of(runs("qps", values, [1000.0] * len(values)), VERSION, TWIN)
    assert [calibrated.sd for calibrated in there] == pytest.approx(
        [calibrated.sd for calibrated in back], abs=1e-12
    )
