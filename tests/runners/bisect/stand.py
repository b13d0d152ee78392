"""A machine that is made up: what a bisect builds, runs and measures, without a compiler or a server."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from build.compile_commands import CompileError
from build.finished_build import Build
from build.home import Home
from build.progress import Progress, Silent
from build.recipes import postgres
from build.sources.source import AbsentVersionError, SourceError
from build.version import Engine, Version
from history.store.records import Machine, RunRecord, RunStatus, SessionStatus
from history.store.writer import Store
from runners.bisect.domain.question import Question
from runners.bisect.run.bisect import BisectRequest, BisectRun, Dependencies
from runners.bisect.run.event_log import Log
from runners.measuring.failures.policy import MAX_FAILURES
from runners.measuring.request import Request
from runners.measuring.rounds import Rounds
from runners.measuring.session import ActiveSession, SessionDriver, SessionOutcome
from runners.measuring.session_versions import MeasuredVersion
from suites.keys.step import Step
from suites.measurement import Measurement
from suites.server import ServerError
from suites.sizing import Hardware, sizes
from tests.history.handmade import MACHINE, NIGHT, session_start
from tests.manifests import a_manifest

STEP = "update-nonindex"
NOISE = 0.01
QPS = 10_000.0
SCATTER = 0.0007
"""Of counted passes."""


class KilledError(BaseException):
    """The process is gone: nothing after it happens, no clean-up either."""


@dataclass
class Fuse:
    """Kills at the so-manieth thing that happens; never when it is None."""

    left: int | None = None
    passed: int = 0

    def pass_(self) -> None:
        """Something happens."""
        self.passed += 1
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                raise KilledError


@dataclass
class FakeServer:
    """Nothing to destroy."""

    destroyed: list[str]
    name: str

    def destroy(self) -> None:
        """Say it."""
        self.destroyed.append(self.name)


@dataclass
class Stand:
    """The machine: how fast which commit is, and what is wrong with which."""

    folder: Path
    rates: Mapping[str, float]
    """Version -> QPS without noise."""

    store: Store
    home: Home
    address: str | None = None
    fuse: Fuse = field(default_factory=Fuse)
    uncompilable: Mapping[str, str] = field(default_factory=dict)
    """Version -> the end of its log."""

    log: Path | str = "log"
    """Of the compiles."""

    missing: Sequence[str] = ()
    """Versions that no source has."""

    unreachable: Sequence[str] = ()
    """Versions whose sources do not answer."""

    not_starting: Sequence[str] = ()
    says: str = "the server does not answer"
    """Why they do not."""

    dying: Sequence[str] = ()
    """Versions whose server dies in the step."""

    failing: Mapping[str, int] = field(default_factory=dict)
    """Version -> how many of its rounds fail; after two of them it is left out, as in a session."""

    metrics: Mapping[str, float] = field(default_factory=dict)
    """Further metrics of every run."""

    counts: Mapping[str, float] | None = None
    """Version -> instructions per query without scatter; None where nothing can be counted."""

    counts_alone: bool = False
    """Whether rounds count and time nothing, as those of a counted metric do."""

    uncountable: Sequence[str] = ()
    """Versions whose counted pass fails."""

    machine: Machine = MACHINE
    progress: Silent = field(default_factory=Silent)
    built: list[str] = field(default_factory=list)
    loaded: list[str] = field(default_factory=list)
    destroyed: list[str] = field(default_factory=list)
    counted: int = 0
    profiled: list[Request] = field(default_factory=list)
    """Counted passes so far."""

    minutes: float = 0.0
    """Of the clock; each round takes one."""

    @property
    def dependencies(self) -> Dependencies:
        """As a bisect takes them."""
        return Dependencies(
            provide=self.provide,
            callgrind=lambda request, progress: self.counts,
            run=self.run,
            machine=lambda home: self.machine,
            now=lambda: NIGHT,
            monotonic=lambda: self.minutes * 60,
        )

    def bisect(self, question: Question, **asked: Any) -> Log:
        """Carry out, or go on with, a bisect."""
        what = BisectRequest(question, self.address, **asked)
        return BisectRun(what, self.home, self.store, self.progress, self.dependencies).run()

    def provide(self, version: Version, git: str | None) -> Build:
        """A build, one folder for all."""
        assert git == self.address
        self.fuse.pass_()
        name = str(version)
        if name in self.uncompilable:
            said = f"compile src failed (exit status 2); the log ends with\n{self.uncompilable[name]}"
            raise CompileError(f"{name}: {said}", where=str(self.log))
        if name in self.missing:
            raise AbsentVersionError(f"no source has {name}")
        if name in self.unreachable:
            raise SourceError("the network is unreachable")
        self.built.append(name)
        prefix = self.folder / "prefix"
        if not prefix.exists():
            (prefix / "bin").mkdir(parents=True)
            for program in postgres.PROGRAMS:
                (prefix / "bin" / program).touch()
            (prefix / "build.json").touch()
        source = {"kind": "git", "digest": f"git:{name}", "location": "x"}
        manifest = a_manifest(source=source, compiler={"version": "gcc 13.2.0"})
        return Build(version, "18.99", f"key of {name}", prefix, manifest)

    def run(
        self,
        request: Request,
        home: Home,
        store: Store,
        progress: Progress,
        given: Mapping[Version, Build],
        driver: SessionDriver | None = None,
    ) -> SessionOutcome:
        """A session: as the real one, it is finished unless it is interrupted; killed, it is neither."""
        uid = f"s{total_sessions(store)}"
        options = {"versions": list(map(str, request.versions)), "bisect": request.bisect}
        start = replace(session_start(uid, 1), machine=self.machine, profile="smoke", options=options)
        session = store.start_session(start)
        self.fuse.pass_()
        rounds = FakeRounds(self, session)
        room = sizes(request.suite, request.profile, Hardware(2, 8 << 30))
        status = SessionStatus.FAILED
        try:
            if driver is None:  # nothing is searched any more
                self.profiled.append(request)
            else:
                driver(ActiveSession(uid, cast("Rounds", rounds), list(given.values()), room, self.folder))
            status = SessionStatus.FINISHED
        except KilledError:
            raise
        except BaseException as error:
            status = (
                SessionStatus.INTERRUPTED if isinstance(error, KeyboardInterrupt) else SessionStatus.FAILED
            )
            store.finish_session(session, status)
            raise
        store.finish_session(session, status)
        return SessionOutcome(uid)


@dataclass
class FakeRounds:
    """Measures by a table, with noise that depends on how many rounds there are already."""

    stand: Stand
    session: int

    @property
    def passes(self) -> object | None:
        """Whether instructions can be counted."""
        return self.stand.counts

    def add_version(self, build: Build, folder: Path) -> MeasuredVersion:
        """Load a build."""
        self.stand.fuse.pass_()
        name = str(build.version)
        self.stand.loaded.append(name)
        version = MeasuredVersion(build, cast("Any", FakeServer(self.stand.destroyed, name)))
        if name in self.stand.not_starting:
            version.broken, version.load_error = self.stand.says, ServerError(self.stand.says)
        return version

    def measure_round(self, number: int, step: Step, versions: Sequence[MeasuredVersion]) -> None:
        """One round, written at once."""
        self.stand.fuse.pass_()
        self.stand.minutes += 1
        records = []
        for place, version in enumerate(versions):
            if version.name in self.stand.dying:
                version.excluded_steps[step.name] = "signal 11"
                continue
            if version.failures[step.name] < self.stand.failing.get(version.name, 0):
                version.failures[step.name] += 1
                if version.failures[step.name] == MAX_FAILURES:
                    version.excluded_steps[step.name] = "no exact count"
                continue
            records.append(self._record(number, step, version, place))
        self.stand.store.record_runs(self.session, records)
        self.stand.fuse.pass_()

    def tell_passes_in(self, task: object) -> None:
        """Nothing here takes long."""

    def count_round(self, number: int, step: Step, versions: Sequence[MeasuredVersion]) -> None:
        """One counted pass, written at once."""
        self.stand.fuse.pass_()
        counts = self.stand.counts
        assert counts is not None
        records = []
        for place, version in enumerate(versions):
            if version.name in self.stand.uncountable:
                continue
            records.append(self._finished(number, step, version, place, self._counted(version, counts)))
        self.stand.store.record_runs(self.session, records)
        self.stand.counted += 1
        self.stand.fuse.pass_()

    def _noise(self, version: MeasuredVersion, deviation: float) -> float:
        seed = f"{total_rounds(self.stand.store)} {version.name}"
        return random.Random(seed).gauss(0.0, deviation)

    def _counted(self, version: MeasuredVersion, counts: Mapping[str, float]) -> Mapping[str, float]:
        return {"instructions_per_op": counts[version.name] * (1 + self._noise(version, SCATTER))}

    def _record(self, number: int, step: Step, version: MeasuredVersion, place: int) -> RunRecord:
        if self.stand.counts is not None and self.stand.counts_alone:
            return self._finished(number, step, version, place, self._counted(version, self.stand.counts))
        qps = self.stand.rates[version.name] * (1 + self._noise(version, NOISE))
        values = {"qps": qps, "server_cpu_us_per_op": 1e6 / qps, **self.stand.metrics}
        return self._finished(number, step, version, place, values)

    def _finished(
        self, number: int, step: Step, version: MeasuredVersion, place: int, values: Mapping[str, float]
    ) -> RunRecord:
        return RunRecord(
            build=version.build,
            configuration=None,
            step=step.name,
            step_position=3,
            repetition=number,
            position=10 * number + place,
            status=RunStatus.FINISHED,
            failure=None,
            started_at=NIGHT,
            ended_at=NIGHT,
            measurement=Measurement(values, ()),
        )


def total_rounds(store: Store) -> int:
    """Rounds in a history."""
    with store.database.reading() as connection:
        rows = connection.exec_driver_sql(
            "SELECT COUNT(*) FROM (SELECT DISTINCT session_id, repetition FROM runs)"
        )
        return int(rows.scalar_one())


def total_sessions(store: Store) -> int:
    """Sessions in a history, whatever became of them."""
    with store.database.reading() as connection:
        return int(connection.exec_driver_sql("SELECT COUNT(*) FROM sessions").scalar_one())


def a_question(good: str, bad: str, **changes: Any) -> Question:
    """Of a step of write-heavy, by throughput that got worse."""
    question = Question(
        engine=Engine.POSTGRES,
        good=good,
        bad=bad,
        suite="write-heavy",
        profile="smoke",
        step=STEP,
        metric="qps",
        direction="worse",
        confidence=0.95,
        git="/somewhere/postgres.git",
    )
    return replace(question, **changes)


def version_of(commit: str) -> str:
    """As a bisect calls a commit."""
    return f"postgres@git:{commit[:12]}"
