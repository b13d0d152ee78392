"""A text that no database takes, such as a log cut off by a crash, leaves a history that is whole."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import compare
from history.open import open_store
from history.store.records import DroppedRound, FailureCause, SessionStatus, StepNoise, VersionFailure
from history.store.writer import Store
from runners.cli import main
from suites.accounting.activity import Activity
from suites.measurement import Measurement
from suites.profiling.stacks import StepProfile
from suites.turns.warmth import Warmth
from tests.history.conftest import rows
from tests.history.handmade import MACHINE, run_record, session_start

BASE, NEW = "postgres@17.11", "postgres@18.6"
CONTROLS = "".join(map(chr, range(1, 32))) + "\x7f\x85"
DIRTY = f"FATAL: \0\0 half a pair \ud83d, a byte that is no UTF-8 \udcff, controls {CONTROLS}"
CLEAN = DIRTY.translate(dict.fromkeys([0, 0xD83D, 0xDCFF], "\N{REPLACEMENT CHARACTER}"))


def measured() -> Measurement:
    """A measurement in which every text is dirty."""
    profile = StepProfile(DIRTY, 99.0, 5.0, 0, {f"server;{DIRTY}": 3})
    kinds = {DIRTY: {"qps": 2.0}}
    beside = (Activity(DIRTY, 1, 2),)
    return Measurement({"qps": 1.0}, (), (DIRTY,), profile, kinds, None, profile, profile, beside)


RECORDED: Mapping[str, tuple[Any, ...]] = {
    "record_run": (
        replace(
            run_record(version=BASE, repetition=8, position=8, failure=DIRTY), configuration={DIRTY: DIRTY}
        ),
    ),
    "record_runs": (
        [
            replace(run_record(version=BASE, repetition=9, position=9), measurement=measured()),
            run_record(version=BASE, repetition=9, position=10, step=DIRTY),
        ],
    ),
    "record_dropped": (DroppedRound(DIRTY, 3, DIRTY, {BASE: 1.5}),),
    "record_plans": (BASE, {DIRTY: DIRTY}),
    "record_data": (BASE, {DIRTY: 1}),
    "record_warmth": (DIRTY, Warmth(3.0, True, [DIRTY])),
    "record_failed": ({NEW: VersionFailure(FailureCause.VERSION, DIRTY)},),
    "record_out_of_time": (),
    "record_executed": (DIRTY, {DIRTY}),
    "record_noise": ([StepNoise(DIRTY, "qps", 0.01, 9.0, 10)],),
}
"""What each method that records is called with, besides the session."""


def test_every_method_that_records_is_called() -> None:
    assert set(RECORDED) == {name for name in dir(Store) if name.startswith("record_")}


@pytest.mark.parametrize("method", RECORDED)
def test_what_was_recorded_is_read_and_backed_up(
    method: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(tmp_path / "history.db")
    with open_store(Path(path)) as store:
        machine = replace(MACHINE, operating_system=DIRTY, details={"governor": DIRTY})
        start = replace(session_start(), machine=machine, command=DIRTY, tools={"sysbench": DIRTY})
        session = store.start_session(start)
        for number in (1, 2, 3):
            for version in (BASE, NEW):
                store.record_run(session, run_record(version=version, repetition=number))
        getattr(store, method)(session, *RECORDED[method])
        store.finish_session(session, SessionStatus.FINISHED)
        assert rows(store, "SELECT command FROM sessions") == [(CLEAN,)]
        if method == "record_run":
            assert (CLEAN,) in rows(store, "SELECT failure FROM runs")
    for words in (["backup", str(tmp_path / "backup.db")], ["show"], ["judge"]):
        assert main(["history", *words, "--history", path]) in (0, 2), words
        assert "damaged" not in "".join(capsys.readouterr()), words
    assert (tmp_path / "backup.db").exists()
    assert main(["report", "--out", str(tmp_path / "site"), "--history", path]) == 0
    assert compare.main([BASE, NEW, "--history", path]) in (0, 1, 2)
    assert "damaged" not in "".join(capsys.readouterr())
