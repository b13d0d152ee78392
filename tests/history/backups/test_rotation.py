"""Which copies of a history are deleted follows from the sessions in them, whatever clock dated them."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from build.home import Home
from history.backups import rotation
from history.backups.backup import back_up, sessions_of
from history.backups.rotation import renew_copies, share_a_disk, superseded
from history.spool.opening import open_recorded
from history.store.records import SessionStatus
from tests.history.generated import Made, record
from tests.history.handmade import NIGHT

AHEAD = datetime(2037, 1, 1, tzinfo=UTC)


class Night:
    """A history that grows by a session each day, copied by a clock that can be set."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, keep: int = 3) -> None:
        self.history, self.copies, self.keep = folder / "history.db", folder / "backups", keep
        self.recorded = 0
        self.clock = NIGHT
        monkeypatch.setattr(rotation, "now", lambda: self.clock)

    def __call__(self, clock: datetime | None = None) -> list[str]:
        """Carry out one night, by the clock of the box, and return its problems."""
        self.clock = clock or self.clock + timedelta(days=1)
        self.recorded += 1
        record(self.history, [Made(self.recorded, SessionStatus.FINISHED, ())])
        return renew_copies(self.history, self.copies, self.keep)

    @property
    def names(self) -> list[str]:
        """The days of the copies that are kept, in the order of their content."""
        found = sorted(self.copies.iterdir(), key=lambda path: len(sessions_of(path)))
        return [path.stem.removeprefix("history-") for path in found]


@pytest.fixture
def night(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Night:
    return Night(tmp_path, monkeypatch)


@pytest.mark.deep("a backup or restore that is killed at any moment loses nothing")
def test_copies_go_on_after_the_clock_was_ahead(night: Night) -> None:
    """Copies dated in the future leave in the order in which they were made."""
    night(NIGHT)
    for day in range(3):
        assert night(AHEAD + timedelta(days=day)) == []
    assert night.names == ["2037-01-01", "2037-01-02", "2037-01-03"]
    assert night(NIGHT + timedelta(days=4)) == []
    assert night.names == ["2037-01-02", "2037-01-03", "2026-03-05"]
    for _ in range(3):
        assert night() == []
    assert night.names == ["2026-03-06", "2026-03-07", "2026-03-08"]


def test_a_copy_that_was_begun_by_a_killed_night_is_removed(night: Night) -> None:
    night.copies.mkdir()
    for ending in ("part", "part-journal"):
        (night.copies / f".history-2026-02-28.db.4242.{ending}").write_bytes(b"SQLite")
    assert night() == []
    assert [path.name for path in night.copies.iterdir()] == ["history-2026-03-02.db"]


@pytest.mark.deep("a backup or restore that is killed at any moment loses nothing")
def test_a_clock_that_falls_back_replaces_the_copy_of_that_day_alone(night: Night) -> None:
    for _ in range(3):
        night()
    assert night(NIGHT + timedelta(days=2)) == []
    assert night.names == ["2026-03-02", "2026-03-04", "2026-03-03"]


@pytest.mark.deep("a backup or restore that is killed at any moment loses nothing")
def test_a_copy_with_a_session_of_its_own_is_left_alone(night: Night) -> None:
    """As one of a history that was lost. Its other copies make room, so that the number has a limit."""
    for _ in range(3):
        night()
    for path in night.history.parent.glob("history.db*"):
        path.unlink()
    for number in range(3):
        (problem,) = night()
        assert f"lacks {3} sessions of its copy history-2026-03-04.db, such as night-1" in problem, number
        assert f"merge {night.copies / 'history-2026-03-04.db'} --history {night.history}" in problem
        assert "2026-03-04" in night.names
        assert len(night.names) == 3
    assert "night-6" in sessions_of(night.copies / f"history-{night.clock:%Y-%m-%d}.db")


@pytest.mark.deep("a backup or restore that is killed at any moment loses nothing")
def test_a_copy_that_cannot_be_read_is_said_and_left_alone(night: Night) -> None:
    night.copies.mkdir()
    (night.copies / "history-2020-01-01.db").write_bytes(b"no history")
    for _ in range(5):
        (problem,) = night()
        assert "history-2020-01-01.db of the history cannot be read, and is not deleted" in problem
    assert len(list(night.copies.iterdir())) == 1 + 3


def test_nothing_is_copied_where_the_plan_wants_none(night: Night) -> None:
    night.keep = 0
    assert night() == []
    assert not night.copies.exists()


def test_a_folder_that_cannot_be_made_is_a_problem(night: Night) -> None:
    night.copies.touch()
    (problem,) = night()
    assert "could not be copied" in problem


@pytest.mark.parametrize(
    ("held", "keep", "deleted"),
    [
        ({"1": "a", "2": "ab", "3": "abc"}, 2, ["1"]),
        ({"1": "a", "9": "ab", "3": "abc"}, 1, ["9", "1"]),
        ({"1": "a", "2": "a", "3": "a"}, 2, ["1"]),
        ({"1": "x", "2": "ab", "3": "abc"}, 1, ["2"]),
        ({"1": "x", "2": "xy", "3": "a"}, 1, ["1"]),
        ({"3": "a"}, 1, []),
    ],
)
def test_what_is_deleted_has_all_its_sessions_in_a_copy_that_is_kept(
    held: dict[str, str], keep: int, deleted: list[str]
) -> None:
    copies = {Path(name): frozenset(sessions) for name, sessions in held.items()}
    assert superseded(copies, Path("3"), keep) == [Path(name) for name in deleted]


def test_the_copy_with_most_sessions_stands_in_for_a_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A night that begins without the history on a server knows from its last copy what was measured."""
    night = Night(tmp_path, monkeypatch)
    night(AHEAD)
    record(night.history, [Made(2, SessionStatus.FINISHED, (), box="beef")])
    back_up(night.history, night.copies / "history-2026-03-05.db")
    (night.copies / "history-2038-01-01.db").write_bytes(b"no history")
    away = "postgresql+psycopg://nobody@/nowhere?host=/nonexistent"
    with open_recorded(away, Home(tmp_path / "home"), backups=night.copies) as store:
        assert store.away
        assert store.latest_machine("box-beef") is not None


def test_a_disk_is_shared_by_a_file_and_its_copies_alone(tmp_path: Path) -> None:
    history, copies = tmp_path / "history.db", tmp_path / "backups"
    assert not share_a_disk(history, copies), "nothing is there yet"
    history.touch()
    copies.mkdir()
    assert share_a_disk(history, copies)
    assert not share_a_disk(history, Path("/proc"))
    assert not share_a_disk("postgresql://history.example.org/tidemark", copies)
