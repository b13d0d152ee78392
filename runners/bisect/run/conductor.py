"""A session of a bisect: the search says which commits take part in the next rounds, and is told of them.

Each build is loaded once in a session, however many rounds it takes part in, so that asking the search after
every few rounds costs nothing.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from build.build import Build
from build.errors import TidemarkError
from build.home import Home
from build.progress import Progress, ProgressTask
from history.store.bisects import EventKind
from runners.bisect.domain.question import Question
from runners.bisect.domain.rules import Measure
from runners.bisect.run.builds import Unusable, require_disk_free, told_reason
from runners.bisect.run.recorder import Ledger
from runners.measuring.session import Sitting
from runners.measuring.session_versions import MeasuredVersion
from suites.capabilities import CapabilityError
from suites.definition import Step
from suites.sizing import DiskSpaceError, require_disk


class BisectError(TidemarkError):
    """A bisect cannot go on."""


Compile = Callable[[int], Build | Unusable]
"""The build of a position."""


@dataclass
class Conductor:
    """Conducts the rounds of one session until there is a verdict, or the time is over."""

    ledger: Ledger
    question: Question
    step: Step
    home: Home
    progress: Progress
    build: Compile
    deadline: float
    """By `time.monotonic`: no round begins after it."""

    monotonic: Callable[[], float] = time.monotonic
    _entrants: dict[int, MeasuredVersion] = field(default_factory=dict)
    """By position, those used last at the end."""

    _number: int = 0
    """Of the last round."""

    def __call__(self, sitting: Sitting) -> None:
        """Measure. Raises TidemarkError when the machine, good or bad do not let it go on."""
        self.ledger.begin_session(sitting.uid)
        if len(sitting.builds) != 2:
            raise BisectError("good or bad cannot be measured", hint="see the messages above")
        try:
            with self.progress.task("bisecting") as task:
                for position, build in zip((0, self.ledger.span.length), sitting.builds, strict=True):
                    self._enter(sitting, position, build, task)
                self._conduct(sitting, task)
        finally:
            for entrant in self._entrants.values():
                entrant.server.destroy()

    def _conduct(self, sitting: Sitting, task: ProgressTask) -> None:
        while isinstance(decision := self.ledger.search.next(), Measure):
            if self.monotonic() > self.deadline:
                self.progress.note("the time is over; the same command goes on from here")
                return
            if not all(self._is_there(sitting, place, task) for place in decision.positions):
                continue
            self._rounds(sitting, decision, task)

    def _rounds(self, sitting: Sitting, decision: Measure, task: ProgressTask) -> None:
        span = self.ledger.span
        names = ", ".join(
            f"{place} of {span.length} ({span.points[place].short})" for place in decision.positions
        )
        for _ in range(decision.rounds):
            if self.monotonic() > self.deadline:
                return
            self._number += 1
            task.rename(f"round {self._number}: good and {names}")
            self._round(sitting, decision.positions)
            if not all(place in self._entrants for place in decision.positions):
                return
        self.progress.note(f"{names}: {self.ledger.told(decision.positions)}")

    def _round(self, sitting: Sitting, positions: Sequence[int]) -> None:
        taking_part = [self._used(place) for place in (0, *positions)]
        sitting.rounds.carry_out(self._number, self.step, taking_part)
        self.ledger.take_round(sitting.uid, self._number)
        for place in (0, *positions):
            reason = self._entrants[place].why_not(self.step.name)
            if reason is not None:
                self._refuse(place, f"fails {self.step.name}: {reason}")

    # --- who takes part

    def _used(self, position: int) -> MeasuredVersion:
        entrant = self._entrants.pop(position)
        self._entrants[position] = entrant
        return entrant

    def _is_there(self, sitting: Sitting, position: int, task: ProgressTask) -> bool:
        """Whether a position can be measured; what cannot is in the log then."""
        if position in self._entrants:
            return True
        point = self.ledger.span.points[position]
        task.rename(f"compiling {point.version}")
        build = self.build(position)
        if isinstance(build, Unusable):
            self._refuse(position, build.reason)
            return False
        self.ledger.write(EventKind.BUILT, {"positions": [position]})
        self._make_room(sitting)
        return self._enter(sitting, position, build, task)

    def _enter(self, sitting: Sitting, position: int, build: Build, task: ProgressTask) -> bool:
        task.rename(f"{build.version}: initdb, then loading {sitting.room.data_bytes / 1e6:.0f} MB")
        try:
            entrant = sitting.rounds.enter(build, sitting.folder / str(position))
        except CapabilityError as error:
            self._refuse(position, str(error))
            return False
        self._entrants[position] = entrant
        if entrant.broken is None:
            return True
        self._refuse(position, f"does not start: {entrant.broken}")
        return False

    def _make_room(self, sitting: Sitting) -> None:
        """Data of builds that were not used for longest go when the disk is short. Raises DiskSpaceError."""
        needed = sitting.room.disk_bytes + sitting.room.data_bytes
        ends = (0, self.ledger.span.length)
        for place in [each for each in self._entrants if each not in ends]:
            try:
                require_disk(self.home.path, needed)
                return
            except DiskSpaceError:
                self._entrants.pop(place).server.destroy()
        require_disk(self.home.path, needed)

    def _refuse(self, position: int, reason: str) -> None:
        """Exclude a position. Raises when that cannot be: of good, bad, or a disk that is full."""
        span = self.ledger.span
        error = BisectError(
            f"{span.points[position].version} cannot be measured",
            where=told_reason(reason),
            hint="good and bad have to compile, start and run the step; name others",
        )
        require_disk_free(self.home.path, error)
        if position in (0, span.length):
            raise error
        entrant = self._entrants.pop(position, None)
        if entrant is not None:
            entrant.server.destroy()
        short = told_reason(reason)
        self.progress.note(f"{span.points[position].version} is left out, its neighbours are asked: {short}")
        self.ledger.write(EventKind.EXCLUDED, {"position": position, "reason": short})
