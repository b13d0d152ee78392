"""A session: versions built, served, loaded, measured step by step, and stored."""

import secrets
import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from build.build import Build
from build.errors import TidemarkError
from build.home import ROOT, Home
from build.make import provide
from build.progress import Progress
from build.version import Engine, Version
from history.records import Machine, SessionStart, SessionStatus
from history.store import Store
from runners.machine import changes, describe
from runners.sweep import data_folder, measuring_alone, stoppable
from runners.work import Request, Serve, Work, turns
from suites.capabilities import require_engine
from suites.engines import make_server, require_short_sockets
from suites.generators.load import Generator
from suites.generators.pgbench import Pgbench
from suites.generators.sysbench import Sysbench
from suites.processes import require_reachable, tool
from suites.server import Server, ServerError
from suites.sizing import Sizes, require_disk, sizes, this_machine

BUILD_BYTES = 1_500_000_000
"""Room for the sources, scratch folder and result of one compile."""

LONGEST_DATA_NAME = "s00000000/99-99"
"""For checking the length of socket paths before anything is done."""


@dataclass
class Outcome:
    """What came of a session."""

    uid: str = ""
    not_built: dict[Version, str] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    """What failed and why, each reason once."""

    @property
    def whole(self) -> bool:
        """Whether everything that was asked for was measured."""
        return not self.not_built and not self.failures


def run_session(request: Request, home: Home, store: Store, progress: Progress) -> Outcome:
    """Carry out `request`; every finished step is in the history before the next begins.

    Raises TidemarkError when nothing could be measured at all, KeyboardInterrupt after cleaning up.
    """
    with stoppable(), measuring_alone(home):
        room = _check(request, home)
        outcome = Outcome()
        serve = _serving(request, room)
        builds = _builds(request, home, progress, outcome, serve)
        uid = secrets.token_hex(4)
        outcome.uid = uid
        generator = _generator(request, room, builds)
        machine = describe(home.path)
        changed = changes(store.latest_machine(machine.hostname), machine)
        start = _start(request, uid, room, generator, outcome, machine)
        session = store.start_session(_marked(start, changed))
        progress.note(f"session {uid}: {request.suite.name}, {request.profile_name}, in {store.where}")
        for change in changed:
            progress.note(f"the machine has changed since its last session: {change}")
        status = SessionStatus.FAILED
        try:
            with data_folder(home, f"s{uid}") as folder:
                work = Work(request, room, serve, generator, store, session, progress)
                work.run(turns(builds, request.repetitions), folder)
                outcome.failures = work.failures
            status = SessionStatus.FINISHED
        except KeyboardInterrupt:
            status = SessionStatus.INTERRUPTED
            raise
        finally:
            store.finish_session(session, status)
        return outcome


def _check(request: Request, home: Home) -> Sizes:
    """Everything that can be known to fail before a compile begins. Returns the sizes."""
    if request.suite.generator == "sysbench":
        tool("sysbench")
    tool("setpriv")
    require_short_sockets(home.data / LONGEST_DATA_NAME)
    home.path.mkdir(parents=True, exist_ok=True)
    require_reachable(home.path)
    room = sizes(request.suite, request.profile, this_machine())
    require_disk(home.path, room.disk_bytes + BUILD_BYTES)
    return room


def _builds(request: Request, home: Home, progress: Progress, outcome: Outcome, serve: Serve) -> list[Build]:
    """The versions that can be had. One that cannot is reported, and does not stop the others."""
    builds = []
    for version in request.versions:
        try:
            build = provide(version, home, progress)
            require_engine(build, request.suite.engines, request.suite.name)
            serve(build, home.data)  # refuses what the version cannot do, and makes nothing yet
            builds.append(build)
        except TidemarkError as error:
            if len(request.versions) == 1:
                raise
            outcome.not_built[version] = str(error)
            progress.note(f"{version} is left out: {error}")
    if not builds:
        raise ServerError("none of the versions can be measured", hint="see the messages above")
    return builds


def _generator(request: Request, room: Sizes, builds: Sequence[Build]) -> Generator:
    """The load generator; of pgbench the newest, so that one client serves all servers."""
    if request.suite.generator == "pgbench":
        postgres = [build for build in builds if build.version.engine is Engine.POSTGRES]
        return Pgbench(request.suite, room, max(postgres, key=lambda build: build.numbers))
    return Sysbench(request.suite, room)


def _serving(request: Request, room: Sizes) -> Serve:
    def serve(build: Build, folder: Path) -> Server:
        settings = request.settings_of(build.version.engine)
        return make_server(build, room, request.durability, folder, settings)

    return serve


def _marked(start: SessionStart, changed: Sequence[str]) -> SessionStart:
    """The session, marked when its machine is no longer what it was: series do not join across it."""
    return replace(start, options={**start.options, "machine_changed": list(changed)}) if changed else start


def _start(
    request: Request, uid: str, room: Sizes, generator: Generator, outcome: Outcome, machine: Machine
) -> SessionStart:
    return SessionStart(
        uid=uid,
        machine=machine,
        suite=request.suite.name,
        profile=request.profile_name,
        suite_digest=request.suite.digest,
        seed=request.suite.seed,
        durability=request.durability,
        repetitions=request.repetitions,
        command=shlex.join(sys.argv),
        tools={
            "generator": generator.version(),
            "tidemark": _own_version(),
            "python": sys.version.split()[0],
        },
        options={
            "seconds": request.profile.seconds,
            "threads": room.threads,
            "tables": room.tables,
            "rows_per_table": room.rows_per_table,
            "settings": dict(request.settings),
            "not_built": {str(version): reason for version, reason in outcome.not_built.items()},
        },
    )


def _own_version() -> str:
    """The commit of this checkout, or `unknown` where git is missing."""
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
