"""By what the benchmark of a declared memory judges: cached pages, drawn sessions, and another load."""

import math
import os
import random
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.io.cached_pages import PAGE, resident_pages, segments
from benchmarks.io.planted import BASE, Operations, bytes_figure, compared_step, throughput_figure
from benchmarks.io.recorded_blocks import BLOCKS, STEPS, Block, RecordedStep, drawn_figures
from benchmarks.io.throttled import BASE as THROTTLED_BASE
from benchmarks.io.throttled import (
    BUSY,
    CONDITIONS,
    CONTENDER,
    busy,
    other_cores,
    steadiness,
    steadiness_figures,
)
from benchmarks.output.figures import Figure, report
from benchmarks.surroundings.recorded_sessions import record_sessions
from build.errors import TidemarkError
from history.open import open_store
from history.store.records import FailureCause, SessionStatus, VersionFailure
from runners.console import Lines
from runners.measuring.request import Request
from runners.measuring.session import SessionOutcome
from suites.control_groups.page_cache import forget
from suites.definition import load_suite
from tests.history.handmade import run_record, session_start


def test_pages_that_were_read_are_resident_and_those_that_were_dropped_are_not() -> None:
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:  # a tmpfs would have them all
        folder = Path(name)
        (folder / "16384").write_bytes(os.urandom(64 * PAGE))
        assert resident_pages(folder / "16384") == [True] * 64
        forget(folder)
        assert not any(resident_pages(folder / "16384"))
        with (folder / "16384").open("rb", buffering=0) as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
            os.pread(file.fileno(), PAGE, 10 * PAGE)
        assert [number for number, is_in in enumerate(resident_pages(folder / "16384")) if is_in] == [10]


def test_segments_of_a_relation_follow_one_another(tmp_path: Path) -> None:
    for name in ("16384", "16384.1", "16384.2", "16384_fsm", "163841"):
        (tmp_path / name).touch()
    found = [file.name for file in segments(tmp_path / "16384")]
    assert found == ["16384", "16384.1", "16384.2"]


@pytest.mark.parametrize(("factor", "found"), [(1.0, range(1)), (1.2, range(40, 41))])
def test_every_verdict_on_drawn_blocks_is_counted(factor: float, found: range) -> None:
    noise = random.Random(7)
    blocks = [
        Block([side * noise.lognormvariate(0, 0.02) for side in (1000, 1000 * factor)], [False, False])
        for _ in range(BLOCKS)
    ]
    blocks[4] = Block([1000, 100], [False, True])
    recorded = [RecordedStep(step, blocks) for step in STEPS]
    count, false = drawn_figures(recorded)
    assert count.value == BLOCKS * len(STEPS)
    assert false.value in found
    assert false.met is (factor == 1.0)


def test_the_other_load_needs_a_core_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {1})
    assert other_cores() == {0}
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1})
    with pytest.raises(TidemarkError, match="the benchmark runs on all cores"):
        other_cores()


def test_the_other_load_ends_with_its_session(tmp_path: Path) -> None:
    file = tmp_path / "written"
    with busy({min(os.sched_getaffinity(0))}, file, is_on=True):
        until = time.monotonic() + 60
        while not (file.exists() and file.stat().st_size) and time.monotonic() < until:
            time.sleep(0.1)
        assert file.stat().st_size
    assert not file.exists()


def test_a_session_without_a_build_is_a_missed_figure() -> None:
    why = VersionFailure(FailureCause.VERSION, "it does not compile")
    outcome = SessionOutcome(not_built={CONTENDER: why})
    (figure,) = record_sessions("throttled", 1, lambda: 0, lambda: outcome, Lines())
    assert (figure.met, figure.note) == (False, "it does not compile")


def test_noise_is_of_blocks_and_ratios_are_compared_on_the_same_disk(tmp_path: Path) -> None:
    """A block that is slow for both versions is noise of the base, and none of their ratio."""
    with open_store(tmp_path / "history.db") as store:
        session = store.start_session(replace(session_start("quiet", 6), profile="io"))
        for block in range(1, 7):
            slow = math.exp(0.1 * (-1) ** block)
            for place, version in enumerate((THROTTLED_BASE, CONTENDER), start=1):
                record = run_record(
                    {"qps": 1000 * slow * (0.9 if place == 2 else 1)},
                    version=str(version),
                    key=str(version),
                    step="update-index",
                    repetition=block,
                    position=place,
                )
                store.record_run(session, record)
        store.finish_session(session, SessionStatus.FINISHED)
        (quiet,) = steadiness(store, session, "quiet").values()
    assert quiet.ratio == pytest.approx(0.9)
    assert quiet.base_noise == pytest.approx(0.1 * math.sqrt(6 / 5))
    assert quiet.pair_noise == pytest.approx(0, abs=1e-9)
    found = {conditions: {"update-index": quiet} for conditions in CONDITIONS}
    for ratio, is_met in ((0.91, True), (0.8, False)):
        found[BUSY] = {"update-index": replace(quiet, ratio=ratio)}
        *noises, apart = steadiness_figures(found)
        assert [noise.value for noise in noises] == [quiet.pair_noise] * len(CONDITIONS)
        assert apart.value == pytest.approx(abs(ratio / 0.9 - 1))
        assert apart.met is is_met


@pytest.mark.parametrize(
    ("log", "written", "speed", "expected"),
    [
        (1.10, 1.05, 1.00, (1, 0)),
        (1.00, 1.20, 1.00, (1, 0)),
        (0.90, 0.80, 1.00, (0, 0)),
        (1.00, 1.00, 0.95, (0, 1)),
        (1.00, 1.00, 1.05, (0, 0)),
    ],
)
def test_bytes_are_found_by_bytes_and_throughput_by_its_verdict(
    log: float, written: float, speed: float, expected: tuple[int, int], tmp_path: Path
) -> None:
    noise = random.Random(7)
    suite = load_suite("write-heavy")
    versions = (BASE, replace(BASE, variant="planted"))
    request = Request(versions, suite, "io", suite.select(("update-index",)), 12)
    with open_store(tmp_path / "history.db") as store:
        session = store.start_session(replace(session_start("planted", 12), profile="io"))
        for block in range(1, 13):
            for place, version in enumerate(versions):
                values = {
                    "qps": 1000 * (speed if place else 1) * noise.lognormvariate(0, 0.002),
                    "wal_bytes_per_op": 21_000 * (log if place else 1) * noise.lognormvariate(0, 0.002),
                    "server_written_kb_per_op": 43
                    * (written if place else 1)
                    * noise.lognormvariate(0, 0.002),
                }
                record = run_record(
                    values,
                    version=str(version),
                    key=str(version),
                    step="update-index",
                    repetition=block,
                    position=place + 1,
                )
                store.record_run(session, record)
        store.finish_session(session, SessionStatus.FINISHED)
        step = compared_step(store, "planted", request)
    figures = bytes_figure(step, "2202 bytes a commit"), throughput_figure(step, "105263 ns an update")
    assert tuple(figure.value for figure in figures) == expected
    assert tuple(figure.met for figure in figures) == tuple(map(bool, expected))


def test_what_is_planted_is_a_share_of_an_operation() -> None:
    operations = Operations(seconds=0.002, written_bytes=44_032)
    assert operations.planted_bytes == 2202
    # 500 operations a second of each client become 475.
    assert 1 / (operations.seconds + operations.burnt_nanoseconds / 1e9) == pytest.approx(475, abs=0.01)


def test_a_figure_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    note = "it does not start\n  where: server.log\n  to do: look there"
    assert report([Figure("failures", 1, "", at_most=0, note=note)]) == 1
    assert capsys.readouterr().out.endswith("MISSED  it does not start where: server.log to do: look there\n")
