"""A night whose disk fills up: the session can be resumed, and nothing says that all is well."""

from collections.abc import Callable
from pathlib import Path

import pytest

from history.errors import HistoryError
from history.open import open_store
from history.store.records import Session, SessionStatus
from history.store.writer import Store
from tests.runners.nightly.pretended import Lab


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    lab = Lab(tmp_path, monkeypatch)
    lab.commit()
    return lab


def latest(lab: Lab) -> Session:
    with open_store(lab.home.history) as store:
        session = store.latest_session([])
        assert session is not None
        return session


def full(error: Exception, after: int) -> Callable[[int], None]:
    """What fails before round number `after`."""

    def fail(count: int) -> None:
        if count == after:
            raise error

    return fail


@pytest.mark.deep("months of simulated nights")
@pytest.mark.parametrize(
    "error",
    [
        HistoryError("no room left for the history", hint="free some space"),
        OSError(28, "No space left on device"),
    ],
)
def test_a_session_that_met_a_full_disk_is_resumed(lab: Lab, error: Exception) -> None:
    lab.before_round = full(error, 5)
    night = lab.night()
    assert [target.reason for target in night.missing] == [str(error)]
    assert latest(lab).status is SessionStatus.INTERRUPTED
    measured, uid = len(lab.measured), latest(lab).uid
    assert measured == 5
    lab.before_round = lambda count: None
    again = lab.again()
    assert not again.missing
    assert (latest(lab).uid, latest(lab).status) == (uid, SessionStatus.FINISHED)
    assert len(set(lab.measured)) == len(lab.measured), "no round twice"


def test_a_mistake_of_the_program_does_not_make_a_session_resumable(lab: Lab) -> None:
    lab.before_round = full(ZeroDivisionError("a bug"), 5)
    with pytest.raises(ZeroDivisionError):
        lab.night()
    assert latest(lab).status is SessionStatus.FAILED


def test_a_session_that_cannot_even_be_ended_shows_the_first_error(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise HistoryError("no room left for the history", hint="free some space")

    lab.before_round = full(OSError(28, "No space left on device"), 5)
    with monkeypatch.context() as patched:
        patched.setattr(Store, "finish_session", refuse)
        night = lab.night()
    assert ["No space left on device" in target.reason for target in night.missing] == [True]
    assert any("stays as running" in note for note in lab.progress.notes)
