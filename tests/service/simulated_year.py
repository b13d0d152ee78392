"""The simulated year: nights of three boxes with one history, day after day, with all their code.

What measures and compiles, the clock, the tracker, the places of messages, the sizes of disks and the list of
releases are made up; git, files and the history are real.
"""

import errno
import os
import platform
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path

from sqlalchemy import select

from build.home import Home
from build.progress import Progress, Silent
from history.open import open_reader
from history.store.schema import sessions as session_table
from history.store.schema_status import MIGRATIONS
from runners.alerting.notices import apprise_urls
from runners.alerting.trackers import gitea
from runners.commands import nightly as nightly_command
from runners.measuring import session_description
from runners.nightly import night as night_module
from runners.nightly.plan import Plan
from tests.service import versions
from tests.service.clock import SimulatedClock, replaced, simulated_time
from tests.service.commits import CommitYear
from tests.service.measuring import MadeUpSessions, folder_bytes
from tests.service.plan_text import plan_text
from tests.service.planted import BOXES, Incident, PlantedYear, midnight
from tests.service.receivers import ROUTES, Receivers, url_of
from tests.service.recorded_tracker import RecordedTracker
from tests.service.simulated_box import SimulatedBox

FIRST_NIGHT = timedelta(hours=1)
"""After midnight; the boxes follow each other by an hour."""

EVENING = timedelta(hours=20)
"""When a person reads what nights have told."""


class ServiceYear:
    """A service with its boxes, commits, tracker and routes."""

    def __init__(self, folder: Path, year: PlantedYear, seed: int = 1) -> None:
        """`folder` exists and is empty."""
        self._folder, self.year = folder, year
        self._plan = folder / "plan.toml"
        self.history = folder / "history.db"
        self.clock = SimulatedClock(midnight(0))
        self.commits = CommitYear(folder / "source", year)
        self.sessions = MadeUpSessions(self.clock, self.commits, seed)
        self.tracker = RecordedTracker()
        self.receivers = Receivers(self.clock)
        self._boxes = [SimulatedBox(name, folder / name, self._plan, self.clock) for name in BOXES]
        self._acting = self._boxes[0]
        self._next_version = versions.next_version(folder / "migrations")
        self.nights = 0
        self.errors: list[str] = []
        """What nights printed that ended with an error nobody planned."""

        self.most_build_bytes = 0
        """The most that the builds of a box took after a night."""

        self.oldest_log = timedelta(0)
        """The age of the oldest log after a night."""

    def run(self) -> None:
        """Let all days pass."""
        with simulated_time(self.clock), self._edges():
            for day in range(self.year.days):
                self._pass_day(day)

    def lost_sessions(self) -> list[str]:
        """Return the sessions that ended and are not in the history."""
        versions.use(self._boxes[0].migrations)
        try:
            with open_reader(self.history) as reader, reader.database.reading() as connection:
                found = set(connection.execute(select(session_table.c.uid)).scalars())
        finally:
            versions.use()
        return [uid for uid in self.sessions.recorded if uid not in found]

    # --- days

    def _pass_day(self, day: int) -> None:
        self.commits.land(day)
        self._plan.write_text(plan_text(self.year, day, self.commits.folder, self.history), encoding="utf-8")
        self.tracker.is_away = self.year.lasts(Incident.TRACKER_AWAY, day)
        self.receivers.is_away = self.year.lasts(Incident.CHAT_AWAY, day)
        working = [
            box
            for box in self._boxes
            if box.name in self.year.boxes(day) and not self.year.lasts(Incident.LOST_BOX, day, box.name)
        ]
        with self._source(day):
            for number, box in enumerate(working):
                self.clock.reach(midnight(day) + FIRST_NIGHT * (1 + number))
                self._night(box, day)
        self._person(day)
        self.clock.reach(midnight(day) + EVENING)

    def _night(self, box: SimulatedBox, day: int) -> None:
        self._acting = box
        box.is_full = self.year.lasts(Incident.FULL_DISK, day, box.name)
        is_older = self.year.lasts(Incident.OLDER_VERSION, day, box.name)
        is_next = self._is_released(day) and not is_older
        box.migrations = self._next_version if is_next else MIGRATIONS
        self.clock.ahead = self.year.ahead(day, box.name)
        self.sessions.before = self._befall
        is_killed = self.year.lasts(Incident.KILLED_NIGHT, day, box.name)
        if is_killed:
            box.killed_night(self.sessions)
        else:
            code = box.night(self.sessions)
            if code == 2 and not any(
                incident.first <= day <= 1 + incident.until for incident in self.year.incidents
            ):
                self.errors.append(f"day {day}, {box.name}: {box.said}")
        self.nights += 1
        # A night that did not get to its end, or had a wrong clock, leaves its disk to the next one.
        if not (is_older or is_killed or self.clock.ahead):
            self._look_at_disk(box.home)
        self.clock.ahead = timedelta(0)

    def _is_released(self, day: int) -> bool:
        """Whether there is the next version of Tidemark on a day."""
        updates = (
            incident.first for incident in self.year.incidents if incident.what is Incident.OLDER_VERSION
        )
        return day >= min(updates, default=self.year.days)

    def _befall(self) -> None:
        """Let a session end at once where the disk is full."""
        if self._acting.is_full:
            raise OSError(errno.ENOSPC, "No space left on device")

    def _look_at_disk(self, home: Home) -> None:
        self.most_build_bytes = max(self.most_build_bytes, folder_bytes(home.builds))
        now = self.clock.moment.timestamp()
        ages = (now - path.stat().st_mtime for path in home.logs.glob("*.log"))
        self.oldest_log = max(self.oldest_log, timedelta(seconds=max(ages, default=0.0)))

    def _person(self, day: int) -> None:
        for regression in self.year.regressions:
            if regression.closed == day:
                self.tracker.close_by_person(self.commits.pair(regression.day)[1], self.clock.moment)

    # --- edges

    @contextmanager
    def _source(self, day: int) -> Iterator[None]:
        """Let the git source be away, where it is."""
        hidden = self.commits.folder.with_name("away")
        is_away = self.year.lasts(Incident.SOURCE_AWAY, day)
        if is_away:
            self.commits.folder.rename(hidden)
        try:
            yield
        finally:
            if is_away:
                hidden.rename(self.commits.folder)

    @contextmanager
    def _edges(self) -> Iterator[None]:
        before = dict(os.environ)
        os.environ.update({route.variable: url_of(route) for route in ROUTES})
        for name in ("GITHUB_STEP_SUMMARY", "GITHUB_ACTIONS"):
            os.environ.pop(name, None)
        with ExitStack() as stack:
            stack.callback(_restore, before)
            stack.enter_context(replaced(platform, node=lambda: self._acting.name))
            stack.enter_context(replaced(shutil, disk_usage=lambda path: self._acting.disk))
            stack.enter_context(replaced(night_module, run_session=self.sessions))
            stack.enter_context(replaced(gitea, connect=lambda repository, url: self.tracker))
            stack.enter_context(replaced(apprise_urls, send=self.receivers))
            stack.enter_context(replaced(nightly_command, look_for_releases=_no_releases, progress=_silence))
            stack.enter_context(replaced(session_description, own_version=lambda: "made up"))
            yield


def _restore(environment: dict[str, str]) -> None:
    os.environ.clear()
    os.environ.update(environment)


def _no_releases(plan: Plan, home: Home) -> tuple[Plan, list[str]]:
    del home
    return plan, []


@contextmanager
def _silence() -> Iterator[Progress]:
    yield Silent()
