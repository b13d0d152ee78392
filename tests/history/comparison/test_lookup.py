"""Which session is compared when several have both versions."""

from datetime import timedelta
from pathlib import Path

import pytest

from build.version import parse_version
from history.comparison.compare import compare
from history.comparison.options import CompareOptions
from history.comparison.result import ContenderComparison
from history.open import open_store
from history.store.records import SessionStatus
from tests.history.handmade import NIGHT, record_steps, session_start

BASE, NEW = "postgres@17.11", "postgres@18.6"
RATES = {BASE: [1000.0, 1010.0, 990.0], NEW: [900.0, 909.0, 891.0]}


def record(path: Path, statuses: list[SessionStatus | None]) -> None:
    """Record a session with both versions for each status, one a day; None is one that still runs."""
    now = NIGHT
    with open_store(path, clock=lambda: now) as store:
        for number, status in enumerate(statuses, start=1):
            now = NIGHT + timedelta(days=number)
            record_steps(store, session_start(f"s{number}"), {"insert": RATES}, status)


def compared(path: Path, uid: str | None = None) -> ContenderComparison:
    with open_store(path) as store:
        options = CompareOptions(session=uid)
        (found,) = compare(store, parse_version(BASE), [parse_version(NEW)], options).contenders
        return found


@pytest.mark.parametrize("status", [SessionStatus.FAILED, SessionStatus.INTERRUPTED])
def test_one_that_finished_goes_before_a_later_one_that_did_not(
    status: SessionStatus, tmp_path: Path
) -> None:
    path = tmp_path / "history.db"
    record(path, [SessionStatus.FINISHED, SessionStatus.FINISHED, status, status])
    found = compared(path)
    assert found.session.uid == "s2"
    (warning,) = [text for text in found.warnings if "session s4" in text]
    how = "failed" if status is SessionStatus.FAILED else "was interrupted"
    assert warning == (
        f"session s4 of {NIGHT + timedelta(days=4):%Y-%m-%d %H:%M} UTC is later and {how};"
        " this is the last that finished, s2: --session s4 compares the other"
    )
    chosen = compared(path, "s4")
    assert chosen.session.uid == "s4"
    assert not any("s2" in text for text in chosen.warnings)


def test_one_that_did_not_finish_is_better_than_none(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    record(path, [SessionStatus.FAILED, SessionStatus.INTERRUPTED])
    assert compared(path).session.uid == "s2"


def test_one_that_still_runs_is_what_somebody_waits_for(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    record(path, [SessionStatus.FINISHED, None])
    found = compared(path)
    assert found.session.uid == "s2"
    assert not any("is later" in text for text in found.warnings)
