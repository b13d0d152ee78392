"""Commits in a repository whose speeds on a machine are known: sessions are real, servers are not."""

import os
import random
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from build.compile_commands import CompileError
from build.errors import TidemarkError
from build.finished_build import Build
from build.home import Home
from build.progress import Silent
from build.request import BuildRequest
from build.sources.source import SourceError
from history.spool.opening import open_recorded
from runners.measuring import preparation
from runners.measuring import session as session_module
from runners.measuring.passes import counted_passes
from runners.measuring.passes.work_proofs import WorkProofs
from runners.measuring.request import Exact
from runners.measuring.round_measurement import RoundMeasurement
from runners.measuring.session_versions import MeasuredVersion
from runners.nightly.night import measure
from runners.nightly.night_result import NightResult
from runners.nightly.plan import Plan
from suites.counting.counted_pass import CountedPass
from suites.counting.executed_functions import WatchedFunction
from suites.counting.tool import Callgrind
from suites.measurement import Measurement
from suites.metrics import COUNTED_TRANSACTIONS, INSTRUCTIONS
from suites.profiling.stacks import COUNTED_EVENT, COUNTED_FREQUENCY, StepProfile
from suites.server import ServerError
from suites.sizing import Hardware, sizes
from suites.turns.failures import ServerDiedError
from tests.history.handmade import MACHINE, NIGHT
from tests.manifests import a_manifest
from tests.runners.measuring.journal import FakeServer, Journal

BASE = "postgres@17.11"
STEPS = ("update-index", "delete", "insert")
BRANCH = "postgres@master"


def counted_profile(functions: Mapping[str, int]) -> StepProfile:
    """A profile of one query with these instructions in each function."""
    stacks = {f"client backend;main;{name}": count for name, count in functions.items()}
    return StepProfile(
        COUNTED_EVENT, COUNTED_FREQUENCY, 1.0, 0, stacks, dict.fromkeys([*functions, "main"], 1)
    )


class Lab:
    """Commits with speeds by step, the nights that measure them, and what was measured, in order."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.home, self.source = Home(folder / "home"), folder / "source"
        self.home.path.mkdir()
        self.source.mkdir()
        self.history = ""
        """The URL of a history on a server; a file of the home unless said."""
        self.git("init", "-q", "-b", "master")
        self.speeds: dict[str, Mapping[str, float]] = {}
        """By version, and by step; 1 unless said."""
        self.day = 0
        self.measured: list[tuple[tuple[str, ...], str, int]] = []
        """Versions, step and round."""
        self.counts: dict[str, Mapping[str, float]] | None = None
        """Instructions per query by version, and by step, 1 unless said; None where nothing is counted."""
        self.functions: dict[str, Mapping[str, int]] = {}
        """Instructions per query by version and function, where passes keep stacks apart."""
        self.executed: set[str] = set()
        """The functions that every step executes, of those that are watched."""
        self.passes: list[tuple[str, str]] = []
        """Version and step of every counted pass."""
        self.unbuildable: set[str] = set()
        """Versions with an error of the compiler."""
        self.unavailable: set[str] = set()
        """Versions whose source cannot be fetched."""
        self.unconfigurable: set[str] = set()
        """Versions whose configure script fails, which says nothing of their source."""
        self.unloadable: dict[str, str] = {}
        """Why versions cannot be loaded."""
        self.dying: dict[str, str] = {}
        """How the servers of versions die in every round."""
        self.disturbed = ""
        """Why every round is disturbed."""
        self.broken_machine = False
        self.before_round: Callable[[int], None] = lambda count: None
        self.minutes_a_round = 0.0
        self.minutes = 0.0
        self.progress = Silent()
        self._pretend(monkeypatch)

    def commit(
        self,
        speeds: Mapping[str, float] | None = None,
        counts: Mapping[str, float] | None = None,
        at: datetime | None = None,
    ) -> str:
        """The branch moves, `at` a time if one is given; the name of its new version."""
        (self.source / "server.c").write_text(f"int version = {len(self.speeds)};\n")
        self.git("add", "server.c")
        self.git("commit", "-q", "-m", f"day {self.day}", at=at)
        name = f"postgres@git:{self.git('rev-parse', 'HEAD')[:12]}"
        self.speeds[name] = speeds or {}
        if self.counts is not None:
            self.counts[name] = counts or {}
        return name

    def plan(self, **changes: Any) -> Plan:
        task = {
            "suite": "write-heavy",
            "profile": "smoke",
            "steps": list(STEPS),
            "rounds": 4,
            "perf": False,
        }
        tracked = {"base": BASE, "branches": ["master"], "git": str(self.source)}
        box = {"label": "x", "hostname": "*", "budget_minutes": 100.0, **changes.pop("box", {})}
        whole = {"boxes": {"db1": box}, "engines": {"postgres": tracked}, "tasks": [task], "backups": 0}
        return Plan.model_validate(whole | changes)

    def night(self, **changes: Any) -> NightResult:
        """Carry out a night of the next day."""
        self.day += 1
        return self.again(**changes)

    def again(self, **changes: Any) -> NightResult:
        """The same night once more."""
        with open_recorded(self.history or self.home.history, self.home, clock=self.clock) as store:
            return measure(
                self.plan(**changes),
                "db1",
                MACHINE.hostname,
                self.home,
                store,
                self.progress,
                clock=lambda: self.minutes * 60,
            )

    def killed(self, after: int) -> None:
        """Begin the night in a process that dies as by kill -9, before its round number `after`."""
        child = os.fork()
        if child == 0:
            try:
                self.before_round = lambda count: os._exit(9) if count == after else None
                self.again()
            finally:
                os._exit(1)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 9

    def provide(self, request: BuildRequest, home: Home, progress: object) -> Build:
        """Stands in for the build cache."""
        version = request.version
        if self.broken_machine:
            raise TidemarkError("the disk is full")
        if str(version) in self.unbuildable:
            log = self.home.path / "build.log"
            log.write_text("server.c:7: error: nobody knows it\n")
            raise CompileError("make failed", where=str(log))
        if str(version) in self.unconfigurable:
            raise CompileError("configure failed: no liburing")
        if str(version) in self.unavailable:
            raise SourceError("no source has it: the network is unreachable")
        ref = version.ref.removeprefix("git:")
        source = {"kind": "git", "digest": f"git:{ref.ljust(40, '0')}:aa", "location": "here"}
        manifest = a_manifest(source=source, compiler={"version": "gcc"})
        return Build(version, "18.0", f"key of {version}", Path("/nowhere"), manifest)

    def clock(self) -> datetime:
        """The time in the history."""
        return NIGHT + timedelta(days=self.day, seconds=len(self.measured))

    def git(self, *words: str, at: datetime | None = None) -> str:
        """Run git in the repository; what it says."""
        identity = ["-c", "user.name=T", "-c", "user.email=t@example.org"]
        command = ["git", "-C", str(self.source), *identity, *words]
        dates = {} if at is None else dict.fromkeys(("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"), at.isoformat())
        ran = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ | dates)
        return ran.stdout.strip()

    def _pretend(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def check(request: Any, home: Home) -> Any:
            return sizes(request.suite, request.profile, Hardware(2, 24 * 1024**3))

        @contextmanager
        def data_folder(home: Home, name: str) -> Any:
            yield home.path

        class Generator:
            def version(self) -> str:
                return "none"

        monkeypatch.setattr(session_module, "check_request", check)
        monkeypatch.setattr(preparation, "provide", self.provide)
        monkeypatch.setattr(session_module, "data_folder", data_folder)
        monkeypatch.setattr(preparation, "require_engine", lambda *_: None)
        monkeypatch.setattr(session_module, "describe", lambda _: MACHINE)
        monkeypatch.setattr(session_module, "callgrind_of", self._callgrind)
        monkeypatch.setattr(WorkProofs, "add_to", lambda *given: list(given[-1]))
        monkeypatch.setattr(counted_passes, "count", self._count)
        monkeypatch.setattr(session_module, "make_generator", lambda *_, **__: Generator())
        monkeypatch.setattr(
            session_module, "server_factory", lambda *_: lambda build, folder: FakeServer(build, Journal())
        )
        monkeypatch.setattr(session_module, "resumable_since", lambda: self.clock() - timedelta(days=1))
        monkeypatch.setattr(RoundMeasurement, "load", self._load)
        monkeypatch.setattr(RoundMeasurement, "from_loaded_data", self._measure)

    def _callgrind(self, request: Any, progress: object) -> object | None:
        wanted = request.exact is not Exact.NO and request.passes
        return Callgrind("valgrind", "valgrind-3.19.0") if wanted and self.counts is not None else None

    def _count(
        self,
        server: Any,
        generator: object,
        step: Any,
        *_: object,
        stacks: bool,
        watched: Sequence[WatchedFunction],
    ) -> CountedPass:
        assert self.counts is not None
        name = str(server.build.version)
        self.passes.append((name, step.name))
        scatter = random.Random(f"{step.name} {len(self.passes)}").gauss(0.0, 0.0003)
        level = self.counts.get(name, {}).get(step.name, 1.0)
        functions = self.functions.get(name) if stacks else None
        profile = None if functions is None else counted_profile(functions)
        instructions = 50_000 * level * (1 + scatter)
        values = {INSTRUCTIONS: instructions, COUNTED_TRANSACTIONS: 400.0}
        names = {watching.name for watching in watched} & self.executed
        return CountedPass(values, profile, executed=frozenset(names) if watched else None)

    def _load(self, version: MeasuredVersion) -> None:
        why = self.unloadable.get(version.name)
        if why is not None:
            version.broken, version.load_error = why, ServerError(why)

    def _measure(
        self, number: int, step: Any, active: Sequence[Any]
    ) -> tuple[list[Measurement], tuple[str, ...]]:
        self.before_round(len(self.measured))
        for place, server in enumerate(active):
            if server.name in self.dying:
                raise ServerDiedError(self.dying[server.name], place)
        names = tuple(server.name for server in active)
        draws = random.Random(f"{names[0] == BASE} {step.name} {number} {self.day}")
        self.measured.append((names, step.name, number))
        self.minutes += self.minutes_a_round
        tonight = 1000 * draws.lognormvariate(0, 0.1)
        found = []
        for server in active:
            speed = self.speeds.get(server.name, {}).get(step.name, 1.0) * draws.lognormvariate(0, 0.005)
            found.append(Measurement({"qps": tonight * speed, "server_cpu_us_per_op": 100 / speed}, ()))
        return found, (self.disturbed,) if self.disturbed else ()
