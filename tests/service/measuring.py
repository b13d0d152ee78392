"""Sessions of the simulated year: nothing is compiled or measured, and all of it is recorded.

A build is a small file; what a version does in a round is drawn around what its commit says.
"""

import hashlib
import os
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path

from build.cache import store as build_store
from build.cache.pruning import mark_used
from build.finished_build import Build
from build.home import Home
from build.version import Version
from history.store.records import (
    FailureCause,
    Machine,
    RunRecord,
    RunStatus,
    SessionStatus,
    VersionFailure,
)
from history.store.writer import Store
from runners.measuring.preparation import verdicts_of
from runners.measuring.request import Request
from runners.measuring.session import SessionOutcome
from runners.measuring.session_description import describe_session
from suites.measurement import Measurement
from suites.metrics import PRIMARY
from suites.sizing import Hardware, sizes
from tests.manifests import a_manifest
from tests.service.clock import SimulatedClock
from tests.service.commits import CommitYear
from tests.service.planted import Incident

BUILD_BYTES = 20_000
LOG_BYTES = 2_000
SESSION = timedelta(minutes=20)
"""How long a session takes."""

HARDWARE = Hardware(2, 24 * 1024**3)
COST = "server_cpu_us_per_op"
ROUND_NOISE = 0.005
"""The standard deviation of a round, as a share of the throughput."""

DRIFT = 0.1
"""That of what both versions of a round have in common."""

BROKEN = "does not compile: server.c:7: error: expected expression\nmake failed"
CRASH = "the server died: terminated by signal 11: Segmentation fault"


class MadeUpSessions:
    """Stands in for `runners.measuring.session.run_session`."""

    def __init__(self, clock: SimulatedClock, commits: CommitYear, seed: int) -> None:
        self._clock, self._commits, self._seed = clock, commits, seed
        self.box = ""
        """The host name of the box that measures."""

        self.before: Callable[[], None] = lambda: None
        """Called when a session begins: it may raise an OSError, or end the process."""

        self.recorded: list[str] = []
        """The uids of the sessions that ended."""

    def __call__(self, request: Request, home: Home, store: Store, progress: object) -> SessionOutcome:
        """Record a session, as far as its versions can be built."""
        del progress
        self.before()
        broken = VersionFailure(FailureCause.VERSION, BROKEN)
        not_built = {
            version: broken
            for version in request.versions
            if self._commits.suffers(_commit(version), Incident.BROKEN_BUILD)
        }
        builds = [self._build(home, version) for version in request.versions if version not in not_built]
        if len(builds) < 2 or builds[0].version != request.versions[0]:
            return SessionOutcome(not_built=not_built)
        uid = f"{self._seed:02x}{len(self.recorded):06x}"
        needed = sizes(request.suite, request.profile, HARDWARE)
        start = describe_session(request, uid, needed, "made up", not_built, self._machine(), None, None)
        session = store.start_session(start)
        store.record_runs(session, list(self._runs(request, builds, random.Random(uid))))
        crash = VersionFailure(FailureCause.VERSION, CRASH)
        failed = {str(build.version): crash for build in builds if self._crashes(build.version)}
        if failed or not_built:
            store.record_failed(session, {str(name): why for name, why in not_built.items()} | failed)
        self._clock.advance(SESSION)
        store.finish_session(session, SessionStatus.FINISHED)
        self.recorded.append(uid)
        reasons = [f"{name}: {why}" for name, why in failed.items()]
        return SessionOutcome(uid, not_built, reasons, failed, frozenset(failed))

    def _crashes(self, version: Version) -> bool:
        return self._commits.suffers(_commit(version), Incident.CRASH)

    def _runs(self, request: Request, builds: Sequence[Build], draws: random.Random) -> Iterator[RunRecord]:
        places = {step.name: place for place, step in enumerate(request.suite.steps, start=1)}
        began, position = self._clock.shown, 0
        verdicts, open_steps = verdicts_of(request, builds, {}), request.steps
        for number in range(1, request.most_rounds + 1):
            for step in open_steps:
                tonight = 1000 * draws.lognormvariate(0, DRIFT)
                measured = {}
                for build in builds:
                    position += 1
                    crashes = self._crashes(build.version)
                    speed = self._commits.speed(_commit(build.version), step.name)
                    values = _values(tonight, speed * draws.lognormvariate(0, ROUND_NOISE))
                    if not crashes:
                        measured[str(build.version)] = values[PRIMARY]
                    yield RunRecord(
                        build=build,
                        configuration={"shared_buffers": "1GB"},
                        step=step.name,
                        step_position=places[step.plain_name],
                        repetition=number,
                        position=position,
                        status=RunStatus.FAILED if crashes else RunStatus.FINISHED,
                        failure=CRASH if crashes else None,
                        started_at=began,
                        ended_at=began,
                        measurement=None if crashes else Measurement(values, ()),
                    )
                verdicts.add(step.name, number, measured)
            if request.until_decided and number >= request.least_rounds:
                undecided = verdicts.open_steps([step.name for step in open_steps], number)
                open_steps = tuple(step for step in open_steps if step.name in undecided)

    def _machine(self) -> Machine:
        return Machine(f"{self.box:0>16}", self.box, "EPYC 9454P", 2, 24 << 30, "6.12.0", "Debian 13", {})

    def _build(self, home: Home, version: Version) -> Build:
        """Return a build that is in the cache, used at this moment, with the log of its compile."""
        key = hashlib.sha256(str(version).encode()).hexdigest()
        commit, release = _commit(version), "19devel" if version.ref.startswith("git:") else version.ref
        digest = f"git:{self._commits.whole_name(commit)}:aa" if commit else "sha256:00"
        folder = home.builds / build_store.folder_name(version.engine, release, key)
        manifest = a_manifest(
            version=str(version),
            release=release,
            key=key,
            source={"kind": "git" if commit else "cache", "digest": digest, "location": "made up"},
            compiler={"version": "gcc 14.2.0"},
        )
        moment = self._clock.shown.timestamp()
        if not folder.is_dir():
            (folder / "bin").mkdir(parents=True)
            (folder / "bin/server").write_bytes(bytes(BUILD_BYTES))
            build_store.write_manifest(folder, manifest)
            log = home.logs / f"{folder.name}.log"
            log.parent.mkdir(exist_ok=True)
            log.write_bytes(bytes(LOG_BYTES))
            os.utime(log, (moment, moment))
        build = Build(version, release, key, folder, manifest)
        mark_used(home, build)
        for mark in home.builds.glob(f".used/{folder.name}"):
            os.utime(mark, (moment, moment))
        return build


def folder_bytes(folder: Path) -> int:
    """Return what the files below a folder take on the disk."""
    files = (path.lstat() for path in folder.rglob("*") if path.is_file())
    return sum(found.st_blocks * 512 for found in files)


def _commit(version: Version) -> str | None:
    """Return the first hex digits of the commit of a version; None for a release."""
    return version.ref.removeprefix("git:") if version.ref.startswith("git:") else None


def _values(tonight: float, speed: float) -> Mapping[str, float]:
    return {PRIMARY: tonight * speed, COST: 100 / speed}
