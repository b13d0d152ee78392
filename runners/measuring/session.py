"""A session: versions built, served, loaded, measured step by step, and stored."""

import secrets
import shlex
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from build.build import Build
from build.errors import TidemarkError
from build.home import ROOT, Home
from build.inferno import provide_inferno
from build.make import provide
from build.progress import Progress
from build.version import Engine, Version
from history.changes.confirmation import METRIC_CONFIDENCE
from history.comparison.compare import CONFIDENCE, THRESHOLD
from history.stats.estimators import MINIMUM_REPETITIONS
from history.stats.repeated_intervals import Design
from history.store.records import CONFIRMS, CalibratedNoise, Machine, SessionStart, SessionStatus
from history.store.writer import Store
from runners.measuring.cleanup import data_folder
from runners.measuring.machine_facts import changes, describe
from runners.measuring.machine_lock import measuring_alone
from runners.measuring.request import Request, Sampled
from runners.measuring.rounds import Rounds
from runners.measuring.session_versions import Serve
from runners.measuring.undecided import METRIC, Deciding
from suites.capabilities import require_engine
from suites.definition import Mode
from suites.engines import make_server, require_short_sockets
from suites.generators.load import Generator
from suites.generators.pgbench import Pgbench
from suites.generators.sysbench import Sysbench
from suites.processes import require_reachable, tool
from suites.profiling.perf import find_perf
from suites.profiling.profiler import Profiling
from suites.server import Server, ServerError
from suites.sizing import Sizes, fit_together, require_disk, sizes, this_machine

BUILD_BYTES = 1_500_000_000
"""Room for the sources, scratch folder and result of one compile."""

LONGEST_DATA_NAME = "s00000000/99-99"
"""For checking the length of socket paths before anything is done."""

RESUMABLE_HOURS = 24.0
"""How old an interrupted session may be that is gone on with: the machine drifts, its base with it."""


@dataclass
class SessionOutcome:
    """What came of a session."""

    uid: str = ""
    not_built: dict[Version, str] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    """What failed and why, each reason once."""

    @property
    def whole(self) -> bool:
        """Whether everything that was asked for was measured."""
        return not self.not_built and not self.failures


@dataclass(frozen=True)
class Sitting:
    """A session whose rounds somebody else chooses."""

    uid: str
    rounds: Rounds
    builds: Sequence[Build]
    """The request's versions."""

    room: Sizes
    folder: Path
    """For the data directories of servers."""


Conduct = Callable[[Sitting], None]


def run_session(
    request: Request,
    home: Home,
    store: Store,
    progress: Progress,
    given: Mapping[Version, Build] | None = None,
    conduct: Conduct | None = None,
) -> SessionOutcome:
    """Carry out `request`; every finished step is in the history before the next begins.

    `given` are builds to take for some versions instead of those of the build cache. `conduct` chooses the
    rounds, and what further builds take part in them, instead of the request.

    Raises TidemarkError when nothing could be measured at all, KeyboardInterrupt after cleaning up.
    """
    with measuring_alone(home):
        room = _check(request, home)
        outcome = SessionOutcome()
        serve = _serving(request, room)
        builds = _builds(request, home, progress, outcome, serve, given or {})
        generator = _generator(request, room, builds)
        profiling = _profiling(request, home, progress)
        machine = describe(home.path)
        changed = changes(store.latest_machine(machine.hostname), machine)
        start = _start(request, secrets.token_hex(4), room, generator, outcome, machine)
        if profiling is not None:
            start = replace(
                start,
                options={**start.options, "perf": {"event": profiling.perf.described, "when": request.perf}},
            )
        taken = store.resume_session(start, builds, _resumable_since()) if request.resume else None
        session = store.start_session(_marked(start, changed)) if taken is None else taken.id
        outcome.uid = start.uid if taken is None else taken.uid
        again = "" if taken is None else f", gone on with after {len(taken.recorded)} rounds of steps"
        named = f"session {outcome.uid}: {request.suite.name}, {request.profile_name}, in {store.where}"
        progress.note(named + again)
        for change in changed:
            progress.note(f"the machine has changed since its last session: {change}")
        status = SessionStatus.FAILED
        try:
            with data_folder(home, f"s{outcome.uid}") as folder:
                deciding = _deciding(request, builds, store.noise(start, METRIC))
                rounds = Rounds(
                    request, room, serve, generator, store, session, progress, deciding, profiling
                )
                rounds.recorded = {} if taken is None else taken.recorded
                if conduct is not None:
                    conduct(Sitting(outcome.uid, rounds, builds, room, folder))
                elif request.needs_contender and len(builds) == 1:
                    progress.note(f"nothing is left to compare {builds[0].version} with")
                else:
                    rounds.run(builds, folder)
                outcome.failures = rounds.failures
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
    if request.profile.mode is Mode.LONG and not fit_together(len(request.versions), room, this_machine()):
        raise ServerError(
            f"{len(request.versions)} servers do not fit into memory together, and in long mode all are up",
            where=f"profile {request.profile_name}: buffer_to_memory",
            hint="measure fewer versions at once, or take a profile with a smaller buffer cache",
        )
    # Each version has its loaded data and a copy that it works on.
    needed = len(request.versions) * (room.disk_bytes + room.data_bytes)
    require_disk(home.path, needed + BUILD_BYTES)
    return room


def _builds(
    request: Request,
    home: Home,
    progress: Progress,
    outcome: SessionOutcome,
    serve: Serve,
    given: Mapping[Version, Build],
) -> list[Build]:
    """The versions that can be had. One that cannot is reported, and does not stop the others."""
    builds = []
    for version in request.versions:
        try:
            patches = request.patches.get(version.variant, ())
            git = request.git.get(version.engine)
            found = given.get(version) or provide(
                version.plain, home, progress, patches=patches, git_source=git
            )
            build = replace(found, version=version)
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


def _profiling(request: Request, home: Home, progress: Progress) -> Profiling | None:
    """How the steps are profiled. What is missing for that is said, and the run goes on without."""
    if request.perf is None:
        return None
    try:
        perf, inferno = find_perf(), provide_inferno(home, progress)
    except TidemarkError as error:
        progress.note(f"no profiles: {error}")
        return None
    profile = request.profile
    seconds = min(profile.perf_seconds, profile.seconds)
    return Profiling(perf, inferno, seconds, profile.slice_seconds, request.perf is Sampled.DURING)


def _deciding(request: Request, builds: Sequence[Build], noise: Mapping[str, CalibratedNoise]) -> Deciding:
    names = [str(build.version) for build in builds]
    least, cap = request.least_rounds, request.most_rounds
    design = Design(
        steps=len(request.steps),
        least=max(least, MINIMUM_REPETITIONS),
        cap=max(cap, MINIMUM_REPETITIONS),
        confidence=METRIC_CONFIDENCE if request.confirms else CONFIDENCE / 100,
    )
    threshold = request.confirms.threshold if request.confirms else THRESHOLD / 100
    calibrated = {step: each.noise for step, each in noise.items()}
    return Deciding(names[0], names[1:], design, threshold, calibrated)


def _serving(request: Request, room: Sizes) -> Serve:
    def serve(build: Build, folder: Path) -> Server:
        settings = request.settings_of(build.version.engine)
        return make_server(build, room, request.durability, folder, settings)

    return serve


def _resumable_since() -> datetime:
    return datetime.now(UTC) - timedelta(hours=RESUMABLE_HOURS)


def _marked(start: SessionStart, changed: Sequence[str]) -> SessionStart:
    """The session, marked when its machine is no longer what it was: series do not join across it."""
    return replace(start, options={**start.options, "machine_changed": list(changed)}) if changed else start


def _start(
    request: Request, uid: str, room: Sizes, generator: Generator, outcome: SessionOutcome, machine: Machine
) -> SessionStart:
    return SessionStart(
        uid=uid,
        machine=machine,
        suite=request.suite.name,
        profile=request.profile_name,
        suite_digest=request.suite.digest,
        seed=request.suite.seed,
        durability=request.durability,
        repetitions=request.least_rounds,
        command=shlex.join(sys.argv),
        tools={
            "generator": generator.version(),
            "tidemark": _own_version(),
            "python": sys.version.split()[0],
        },
        options={
            "versions": [str(version) for version in request.versions],
            "branches": dict(request.branches),
            "mode": request.profile.mode,
            "seconds": request.profile.seconds,
            "slice_seconds": request.profile.slice_seconds,
            "rounds": {
                "least": request.least_rounds,
                "cap": request.most_rounds,
                "until_decided": request.until_decided,
            },
            "bound_to": room.bound_to,
            "threads": room.threads,
            "tables": room.tables,
            "rows_per_table": room.rows_per_table,
            "settings": dict(request.settings),
            "groups": {step.name: step.group for step in request.steps if step.group},
            "not_built": {str(version): reason for version, reason in outcome.not_built.items()},
            **({"bisect": request.bisect} if request.bisect else {}),
            **({CONFIRMS: request.confirms.option()} if request.confirms else {}),
        },
    )


def _own_version() -> str:
    """The commit of this checkout, or `unknown` where git is missing."""
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
