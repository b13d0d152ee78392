"""The session of a bisect: the search chooses the commits of the next rounds and takes in their results.

Every build is loaded once in a session, however many rounds it takes part in, so that asking the search after
every few rounds costs nothing.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from build.errors import TidemarkError
from build.finished_build import Build
from build.home import Home
from build.progress import Progress, ProgressTask
from history.store.bisects import EventKind
from runners.bisect.domain.question import Question
from runners.bisect.domain.rules import Measure
from runners.bisect.run.ahead import CompilingAhead
from runners.bisect.run.builds import Unusable, require_disk_free, require_own_failure, shorten_reason
from runners.bisect.run.recorder import EventRecorder
from runners.measuring.session import ActiveSession
from runners.measuring.session_versions import MeasuredVersion
from suites.capabilities import CapabilityError
from suites.keys.step import Step
from suites.sizing import DiskSpaceError, require_disk


class BisectError(TidemarkError):
    """A bisect cannot continue."""


Compile = Callable[[int], Build | Unusable]
"""Returns the build of a position."""


@dataclass
class Conductor:
    """Measures the rounds of one session until there is a verdict or the time budget is exhausted."""

    recorder: EventRecorder
    question: Question
    step: Step
    home: Home
    progress: Progress
    build: Compile
    deadline: float
    """The moment, by `monotonic`, after which no further round begins."""

    monotonic: Callable[[], float] = time.monotonic
    whole: bool = False
    """Whether the search goes on after its first answer, until steps make up the whole difference."""

    compile_ahead: Callable[[int], Callable[[], object]] | None = None
    """Returns what compiles a position without telling anything, for while passes are counted."""

    _ahead: CompilingAhead = field(default_factory=CompilingAhead)

    _versions: dict[int, MeasuredVersion] = field(default_factory=dict)
    """The loaded versions by position, ordered by their last use."""

    _number: int = 0
    """The number of the last round."""

    def __call__(self, session: ActiveSession) -> None:
        """Measure. Raises TidemarkError when the machine, good or bad prevent it."""
        self.recorder.begin_session(session.uid)
        if len(session.builds) != 2:
            raise BisectError("good or bad cannot be measured", hint="see the messages above")
        try:
            if self.recorder.search.is_counting and session.rounds.passes is None:
                self._leave_uncounted(0, "instructions are not counted here any more")
            with self.progress.task("bisecting") as task:
                session.rounds.tell_passes_in(task)
                for position, build in zip((0, self.recorder.span.length), session.builds, strict=True):
                    self._load(session, position, build, task)
                self._measure(session, task)
        finally:
            self._ahead.end()
            for version in self._versions.values():
                version.server.destroy()

    def _measure(self, session: ActiveSession, task: ProgressTask) -> None:
        while isinstance(decision := self.recorder.wanted(whole=self.whole), Measure):
            if self.monotonic() > self.deadline:
                self.progress.note("time budget exhausted; the same command resumes from here")
                return
            if not all(self._is_measurable(session, place, task) for place in decision.positions):
                continue
            self._rounds(session, decision, task)

    def _rounds(self, session: ActiveSession, decision: Measure, task: ProgressTask) -> None:
        """Measure or count what was decided on, until a position turns out not to be measurable."""
        span = self.recorder.span
        names = ", ".join(
            f"{place} of {span.length} ({span.points[place].short})" for place in decision.positions
        )
        is_counted = decision.counted or self.question.is_counted
        for _ in range(decision.rounds):
            if self.monotonic() > self.deadline:
                return
            self._number += 1
            self._look_ahead(decision)
            kind = "pass" if is_counted else "round"
            task.rename(f"{kind} {self._number}: good and {names}")
            carry_out = self._pass if decision.counted else self._round
            if not carry_out(session, decision.positions):
                return
        shown = self.recorder.progress(decision.positions, counted=decision.counted)
        self.progress.note(f"{names}: {shown}")

    def _look_ahead(self, decision: Measure) -> None:
        """Have the commit that is likely to come next compiled if this is counted; otherwise nothing is."""
        if not (decision.counted or self.question.is_counted) or self.compile_ahead is None:
            self._ahead.end()
            return
        foreseen = self.recorder.search.foreseen(decision)
        if foreseen is not None:
            self._ahead.start(foreseen, self.compile_ahead(foreseen))

    def _pass(self, session: ActiveSession, positions: Sequence[int]) -> bool:
        """Count one pass of good and these positions; whether all of them were counted.

        What cannot be counted is left to rounds.
        """
        versions = [self._use(place) for place in (0, *positions)]
        session.rounds.count_round(self._number, self.step, versions)
        counted = self.recorder.take_pass(session.uid, self._number)
        for version in versions:
            version.failures.pop(self.step.name, None)  # a pass that failed says nothing of rounds
        lost = [place for place in positions if place not in counted]
        for place in lost:
            self._leave_uncounted(place, "its counted pass failed")
        return not lost

    def _leave_uncounted(self, position: int, reason: str) -> None:
        detail = {"position": position, "reason": reason, "counted": True}
        self.recorder.write(EventKind.EXCLUDED, detail)
        point = self.recorder.span.points[position]
        self.progress.note(f"{point.version} is not counted: {reason}")

    def _round(self, session: ActiveSession, positions: Sequence[int]) -> bool:
        """Measure one round of good and these positions; whether all of them have a value.

        One that has failed in a step is measured again, until it is left out of the step.
        """
        versions = [self._use(place) for place in (0, *positions)]
        session.rounds.measure_round(self._number, self.step, versions)
        measured = self.recorder.take_round(session.uid, self._number)
        for place in (0, *positions):
            reason = self._versions[place].exclusion_reason(self.step.name)
            if reason is not None:
                self._exclude(place, f"fails {self.step.name}: {reason}")
        return all(place in measured for place in positions)

    # --- the versions that take part

    def _use(self, position: int) -> MeasuredVersion:
        version = self._versions.pop(position)
        self._versions[position] = version
        return version

    def _is_measurable(self, session: ActiveSession, position: int, task: ProgressTask) -> bool:
        """Compile and load a position unless it is loaded; a position that cannot be measured is excluded."""
        if position in self._versions:
            return True
        point = self.recorder.span.points[position]
        task.rename(f"compiling {point.version}")
        self._ahead.end(but=position)
        build = self.build(position)
        self._ahead.taken(position)
        if isinstance(build, Unusable):
            self._exclude(position, build.reason)
            return False
        self.recorder.write(EventKind.BUILT, {"positions": [position]})
        self._free_disk(session)
        return self._load(session, position, build, task)

    def _load(self, session: ActiveSession, position: int, build: Build, task: ProgressTask) -> bool:
        task.rename(f"{build.version}: initdb, then loading {session.sizes.data_loaded}")
        try:
            version = session.rounds.add_version(build, session.folder / str(position))
        except CapabilityError as error:
            self._exclude(position, str(error))
            return False
        self._versions[position] = version
        if version.broken is None:
            return True
        if version.load_error is not None:
            require_own_failure(self.home.path, version.load_error)
        self._exclude(position, f"does not start: {version.broken}")
        return False

    def _free_disk(self, session: ActiveSession) -> None:
        """Delete the data of the least recently used builds when disk is short. Raises DiskSpaceError."""
        needed = session.sizes.disk_bytes + session.sizes.data_bytes
        ends = (0, self.recorder.span.length)
        for place in [position for position in self._versions if position not in ends]:
            try:
                require_disk(self.home.path, needed)
                return
            except DiskSpaceError:
                self._versions.pop(place).server.destroy()
        require_disk(self.home.path, needed)

    def _exclude(self, position: int, reason: str) -> None:
        """Exclude a position. Raises BisectError for good and bad, and MachineError when the disk is full."""
        span = self.recorder.span
        error = BisectError(
            f"{span.points[position].version} cannot be measured",
            where=shorten_reason(reason),
            hint="good and bad have to compile, start and run the step; choose others",
        )
        require_disk_free(self.home.path, error)
        if position in (0, span.length):
            raise error
        version = self._versions.pop(position, None)
        if version is not None:
            version.server.destroy()
        short = shorten_reason(reason)
        self.progress.note(f"{span.points[position].version} is skipped for its neighbours: {short}")
        self.recorder.write(EventKind.EXCLUDED, {"position": position, "reason": short})
