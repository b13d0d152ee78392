"""The turns of a session: one server's life each, in which a version runs every step once."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from build.build import Build
from build.errors import TidemarkError
from build.progress import Progress, Task
from build.version import Engine, Version
from history.records import RunRecord, RunStatus
from history.store import Store
from suites.definition import Profile, Step, Suite
from suites.durability import Durability
from suites.generators.load import Generator
from suites.measurement import Measurement
from suites.server import Server
from suites.sizing import Sizes
from suites.step import first_work, fixed_work, run_step


@dataclass(frozen=True)
class Request:
    """What a person asked for."""

    versions: tuple[Version, ...]
    """The base first."""
    suite: Suite
    profile_name: str
    steps: tuple[Step, ...]
    repetitions: int
    durability: Durability = Durability.RELAXED
    settings: Mapping[str, str] = field(default_factory=dict)
    """Server settings that override the template's; `postgres.NAME` and `mysql.NAME` are for one engine."""
    seconds: float | None = None
    """Length of a step instead of the profile's."""

    @property
    def profile(self) -> Profile:
        """The profile, with the chosen length of a step."""
        profile = self.suite.profile(self.profile_name)
        return profile if self.seconds is None else profile.model_copy(update={"seconds": self.seconds})

    def settings_of(self, engine: Engine) -> dict[str, str]:
        """The chosen settings that concern `engine`, by their plain names."""
        chosen = {}
        for name, value in self.settings.items():
            owner, dot, plain = name.partition(".")
            if not dot or owner not in set(Engine):
                chosen[name] = value
            elif owner == engine:
                chosen[plain] = value
        return chosen


@dataclass(frozen=True)
class Turn:
    """One server's life: a version on a fresh data directory runs all steps once."""

    repetition: int
    build: Build


def turns(builds: Sequence[Build], repetitions: int) -> list[Turn]:
    """Every version once per repetition, each repetition beginning with the next version.

    A drift of the machine then does not always hit the same version in the same place.
    """
    order = []
    for repetition in range(1, repetitions + 1):
        shift = (repetition - 1) % len(builds)
        order += [Turn(repetition, build) for build in [*builds[shift:], *builds[:shift]]]
    return order


Serve = Callable[[Build, Path], Server]
"""Names a server of a build that will live in a folder."""


@dataclass
class Work:
    """The turns of a session under way."""

    request: Request
    room: Sizes
    serve: Serve
    generator: Generator
    store: Store
    session: int
    progress: Progress
    failures: list[str] = field(default_factory=list)
    """What failed and why, each reason once."""
    _position: int = 0
    _transactions: dict[str, int] = field(default_factory=dict)
    """Step to the transactions of its first finished run: the work of all later ones."""

    def run(self, order: Sequence[Turn], folder: Path) -> None:
        """Carry out the turns in order, each server in a folder of its own below `folder`."""
        with self.progress.task("measuring", len(order) * len(self.request.steps)) as task:
            for number, turn in enumerate(order, start=1):
                self._turn(turn, folder / str(number), task)

    def _turn(self, turn: Turn, folder: Path, task: Task) -> None:
        """One server from initdb to its end. Steps that it can no longer run are recorded as failed."""
        label = f"{turn.build.version}, repetition {turn.repetition} of {self.request.repetitions}"
        server = self.serve(turn.build, folder)
        steps = self.request.steps
        try:
            task.rename(f"{label}: initdb, then loading {self.room.data_bytes / 1e6:.0f} MB")
            settings, broken = self._bring_up(server)
            if broken:
                self._fail(f"{label}: all steps", broken)
            for place, step in enumerate(steps, start=1):
                task.rename(f"{label}: {step.name} ({place} of {len(steps)})")
                self._position += 1
                slot = _Slot(turn, step, self._place_in_suite(step), self._position, settings)
                if broken is None:
                    broken = self._step(slot, server)
                else:
                    self._record(slot, RunStatus.FAILED, broken, _now(), None)
                task.update(self._position)
        finally:
            server.destroy()

    def _bring_up(self, server: Server) -> tuple[Mapping[str, str] | None, str | None]:
        """The server's effective settings once it is loaded and at rest; else why it cannot be used."""
        try:
            server.create()
            server.start()
            self.generator.load(server.address)
            server.reset()
            return server.settings(), None
        except TidemarkError as error:
            return None, str(error)

    def _step(self, slot: "_Slot", server: Server) -> str | None:
        """Run and record one step. None, or why the server cannot go on."""
        name, seconds = slot.step.name, self.request.profile.seconds
        before = self._transactions.get(name)
        work = fixed_work(before, seconds) if before else first_work(slot.step, seconds, self.room)
        started = _now()
        try:
            measurement = run_step(server, self.generator, slot.step, work, self.request.profile)
        except TidemarkError as error:
            self._fail(str(slot), str(error))
            self._record(slot, RunStatus.FAILED, str(error), started, None)
            broken = _recover(server)
            if broken:
                self._fail(f"{slot}: all steps after it", broken)
            return broken
        self._transactions.setdefault(name, int(measurement.values["transactions"]))
        self._record(slot, RunStatus.FINISHED, None, started, measurement)
        for warning in measurement.warnings:
            self.progress.note(f"{slot}: {warning}")
        return None

    def _fail(self, what: str, reason: str) -> None:
        self.failures.append(f"{what}: {reason}")
        self.progress.note(f"{what}: failed: {reason}")

    def _record(
        self,
        slot: "_Slot",
        status: RunStatus,
        failure: str | None,
        started: datetime,
        measurement: Measurement | None,
    ) -> None:
        record = RunRecord(
            build=slot.turn.build,
            configuration=slot.settings,
            step=slot.step.name,
            step_position=slot.place,
            repetition=slot.turn.repetition,
            position=slot.position,
            status=status,
            failure=failure,
            started_at=started,
            ended_at=_now(),
            measurement=measurement,
        )
        self.store.record_run(self.session, record)

    def _place_in_suite(self, step: Step) -> int:
        return 1 + [each.name for each in self.request.suite.steps].index(step.name)


@dataclass(frozen=True)
class _Slot:
    """Where a run stands in its session."""

    turn: Turn
    step: Step
    place: int
    position: int
    settings: Mapping[str, str] | None

    def __str__(self) -> str:
        return f"{self.turn.build.version} {self.step.name} (repetition {self.turn.repetition})"


def _recover(server: Server) -> str | None:
    """Bring the server back to rest after a failed step, through its own crash recovery if it died.

    None when it is fit for the next step, else the reason why not.
    """
    try:
        if server.death() is not None:
            server.stop()
            server.start()
        server.reset()
    except TidemarkError as error:
        return f"the server did not come back after a failed step: {error}"
    return None


def _now() -> datetime:
    return datetime.now(UTC)
