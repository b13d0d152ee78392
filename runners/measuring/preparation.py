"""What a session needs before its first round: sizes, builds, a load generator, perf, a test design."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from build.errors import TidemarkError, shell_line
from build.extending import ExtensionCompileError
from build.extension import ExtensionError
from build.finished_build import Build
from build.home import Home
from build.installs import FOLDERS, prefix_of
from build.progress import Progress
from build.provide import provide
from build.version import Version
from history.changes.confirmation import METRIC_CONFIDENCE
from history.comparison.options import CONFIDENCE, THRESHOLD
from history.series.variants import TWIN
from history.stats.estimators import MINIMUM_REPETITIONS
from history.stats.repeated_intervals import Design
from history.store.reader import Reader
from history.store.records import CalibratedNoise, Machine, VersionFailure
from runners.measuring.declared_limits import require_declared
from runners.measuring.failures.cause import build_failure
from runners.measuring.layouts import require_layouts
from runners.measuring.request import Exact, Request, Sampled, counted_once, is_slowly_counted
from runners.measuring.sequential_verdicts import SequentialVerdicts
from runners.measuring.session_versions import Serve
from runners.measuring.variants import definition_of
from suites.additions.registry import COMPANIONS
from suites.additions.variant import CompanionName
from suites.capabilities import SettingError, require_engine
from suites.counting.tool import Callgrind, find_callgrind
from suites.data_copies.store import DataCopies
from suites.engines import make_server, require_settings, require_short_sockets
from suites.generators.registry import GENERATORS, require_runnable
from suites.keys.profile import Mode, Profile
from suites.keys.step import Step
from suites.postgres.initdb_options import require_initdb
from suites.processes import require_reachable, require_readable, tool
from suites.profiling.perf import find_perf
from suites.profiling.profiler import Profiling
from suites.server import Server, ServerError
from suites.sizing import Sizes, fit_together, require_clients, require_disk, sizes, this_machine
from suites.slices import require_few_slices

BUILD_BYTES = 1_500_000_000
"""The disk space in bytes for the sources, the scratch folder and the result of one compile."""

LONGEST_DATA_NAME = "s00000000/99-99"
"""The longest name below the data folder, used to check the length of socket paths before anything is
done."""


def check_request(request: Request, home: Home) -> Sizes:
    """Check everything that can be known to fail before a compile begins; return the sizes of the data.

    Raises TidemarkError when a program, memory, disk space or access to the home is missing.
    """
    require_layouts(request)
    for version in request.versions:
        is_pooled = CompanionName.PGBOUNCER in request.companions_of(version)
        request.suite.require_layers(request.layers_of(version), is_pooled=is_pooled)
    profile = request.profile
    anew = request.suite.name if request.suite.holds_connections else ""
    anew = anew or next((step.name for step in request.steps if step.timed), "")
    if profile.mode is Mode.LONG and anew:
        raise ServerError(
            f"{anew} needs a fresh server in every round, which long mode does not start",
            where="--mode",
            hint="omit --mode, or use --mode rounds",
        )
    if profile.mode is Mode.ROUNDS:
        servers = len(request.versions)
        require_few_slices(servers, profile.seconds, profile.slice_seconds, profile.warm_seconds)
    require_runnable(request.suite)
    tool("setpriv")
    require_short_sockets(home.data / LONGEST_DATA_NAME)
    home.path.mkdir(parents=True, exist_ok=True)
    require_reachable(home.path)
    for version in request.versions:
        if version.is_install:
            require_readable(prefix_of(version, home), FOLDERS)
    needed = sizes(request.suite, request.profile, this_machine(), request.steps)
    for version in request.versions:
        require_initdb(request.initdb_of(version), version.engine, needed.wal_limit_bytes)
    chosen = {version: request.settings_of(version) for version in request.versions}
    require_clients(needed, chosen, this_machine())
    require_declared(request, needed, this_machine(), home)
    if request.profile.mode is Mode.LONG and not fit_together(len(request.versions), needed, this_machine()):
        raise ServerError(
            f"{len(request.versions)} servers do not fit into memory together; in long mode all are up",
            where=f"profile {request.profile_name}: buffer_to_memory",
            hint="measure fewer versions at once, or use a profile with a smaller buffer cache",
        )
    companions = (name for version in request.versions for name in request.companions_of(version))
    disk_bytes = sum(COMPANIONS[name].disk_bytes for name in companions)
    require_disk(home.path, disk_bytes + session_bytes(profile, needed, len(request.versions)))
    return needed


def session_bytes(profile: Profile, needed: Sizes, servers: int) -> int:
    """Return the bytes that a session of so many servers takes on disk, without companions.

    Each has its loaded data and a copy that it works on, and perhaps one for later sessions; something may
    have to be compiled.
    """
    copies = 2 if profile.keeps_copy else 1
    return servers * (needed.disk_bytes + copies * needed.data_bytes) + BUILD_BYTES


def provide_builds(
    request: Request, home: Home, progress: Progress, serve: Serve, given: Mapping[Version, Build]
) -> tuple[list[Build], dict[Version, VersionFailure]]:
    """Return the builds of the versions, and the reasons of those that cannot be built or run the suite.

    One version that fails does not stop the others. Raises TidemarkError when none is left of a session that
    is not unattended, or one because an extension cannot be compiled for the others; there also SettingError
    for a setting that a variant's server does not have.
    """
    builds: list[Build] = []
    not_built: dict[Version, VersionFailure] = {}
    lacks_extension = False
    for version in request.versions:
        try:
            build = given.get(version) or provide_one(request, version, home, progress)
            require_engine(build, request.suite.engines, request.suite.name)
            serve(build, home.data)  # raises for what the version cannot do; creates nothing
            builds.append(build)
        except TidemarkError as error:
            is_mistake = isinstance(error, SettingError) and version.variant
            if (len(request.versions) == 1 or is_mistake) and not request.unattended:
                raise
            not_built[version] = build_failure(error)
            progress.note(f"{version} is skipped: {error}")
            lacks_extension |= isinstance(error, ExtensionCompileError | ExtensionError)
    if lacks_extension and len(builds) == 1 and not request.unattended:
        raise ServerError(
            f"an extension is missing in all versions but {builds[0].version}, with nothing to compare",
            hint="see the messages above; name refs that compile, or measure one version with --alone",
        )
    if not builds and not request.unattended:
        raise ServerError("none of the versions can be measured", hint="see the messages above")
    for first, other in _same(request, builds):
        progress.note(f"{first} and {other} are the same build with the same settings: only noise differs")
    return builds, not_built


def _same(request: Request, builds: Sequence[Build]) -> Iterator[tuple[Version, Version]]:
    """Yield pairs of versions whose servers are the same; the twin of a calibration is meant to be."""
    for place, build in enumerate(builds):
        for other in builds[place + 1 :]:
            same = build.key == other.key and build.version.plain == other.version.plain
            given = [
                (
                    request.settings_of(compared),
                    definition.companions,
                    definition.indexes,
                    definition.layers,
                    definition.initdb,
                )
                for compared in (build.version, other.version)
                for definition in (definition_of(compared, request.variants),)
            ]
            if same and not other.version.variant.endswith(TWIN) and given[0] == given[1]:
                yield build.version, other.version


def provide_one(request: Request, version: Version, home: Home, progress: Progress) -> Build:
    """Return the build of one version, compiled as its variant says. Raises TidemarkError."""
    return replace(provide(request.build_of(version), home, progress), version=version)


def copies_of(request: Request, home: Home, progress: Progress) -> DataCopies | None:
    """Return the kept copies of loaded data; None if the profile keeps none."""
    return DataCopies(home.copies, progress.note) if request.profile.keeps_copy else None


def profiling_of(request: Request, home: Home, progress: Progress) -> Profiling | None:
    """Return how the steps are profiled; None when they are not, or when perf is missing.

    What is missing is reported, and the session continues without profiles.
    """
    if request.perf is None:
        return None
    try:
        perf = find_perf()
    except TidemarkError as error:
        progress.note(f"no profiles: {error}")
        return None
    profile = request.profile
    seconds = min(profile.perf_seconds, profile.seconds)
    return Profiling(perf, seconds, profile.slice_seconds, request.perf is Sampled.DURING)


def callgrind_of(request: Request, progress: Progress) -> Callgrind | None:
    """Return what counts the instructions of the session; None when they are not counted.

    What is missing is reported, and the session continues without counts, unless they are all it is to do:
    then TidemarkError is raised.
    """
    if request.exact is Exact.NO or not request.passes:
        return None
    try:
        if not GENERATORS[request.suite.generator].counts:
            raise ServerError(f"{request.suite.generator} cannot carry out fixed work between marks")
        slow = next((version for version in request.versions if is_slowly_counted(version)), None)
        if request.has_companions:
            raise ServerError("a server under callgrind has no companions")
        if slow is not None and request.exact not in (Exact.ONLY, Exact.FIRST):
            raise ServerError(f"a pass of {slow} takes minutes; --exact-only or --budget carries passes out")
        found = find_callgrind()
    except TidemarkError as error:
        if request.exact is Exact.ONLY:
            raise
        progress.note(f"no exact counts: {error}")
        return None
    if request.has_many_clients:
        progress.note(f"instructions are counted with one client: {', '.join(_counted_names(request))}")
    return found


def _counted_names(request: Request) -> Iterator[str]:
    """Yield the names of the steps that are counted."""
    return (step.name for step in counted_once(request.steps))


def verdicts_of(
    request: Request, builds: Sequence[Build], noise: Mapping[str, CalibratedNoise]
) -> SequentialVerdicts:
    """Return the verdicts that decide which steps need more rounds; those of a confirmation are stricter."""
    names = [str(build.version) for build in builds]
    design = Design(
        steps=len(request.steps),
        least=max(request.least_rounds, MINIMUM_REPETITIONS),
        cap=max(request.most_rounds, MINIMUM_REPETITIONS),
        confidence=METRIC_CONFIDENCE if request.confirms else CONFIDENCE / 100,
    )
    threshold = request.confirms.threshold if request.confirms else THRESHOLD / 100
    calibrated = {step: calibration.noise for step, calibration in noise.items()}
    metric, layouts = request.suite.primary, request.layouts
    return SequentialVerdicts(names[0], names[1:], design, threshold, calibrated, metric, layouts)


def with_rates(request: Request, machine: Machine, store: Reader, progress: Progress) -> Request:
    """Return the request with the rates of its steps in transactions/s, the same for all versions.

    A step whose rate is a share of a throughput that this machine was never calibrated for is left out, with
    a note. Raises ServerError when no step is left.
    """
    steps: list[Step] = []
    declared = request.profile.declared
    for step in request.steps:
        rate = step.rate if step.rate_per_core is None else step.rate_per_core * this_machine().cores
        if rate is not None and step.rate_of is not None:
            closed = Step(name=step.rate_of, title="")
            of = (closed.at(step.clients[0]) if step.clients else closed).name
            throughput = store.calibrated_throughput(
                machine, request.suite.name, request.profile_name, request.durability, declared, of
            )
            if throughput is None:
                known = ["--suite", request.suite.name, "--profile", request.profile_name, "--step", of]
                known += [*declared.arguments(), str(request.versions[0])]
                progress.note(
                    f"{step.name} is left out: its rate follows from {of}, for which this machine has no"
                    f" calibration: {shell_line('./tidemark', 'calibrate', *known)}"
                )
                continue
            rate *= throughput
        changed = {"rate": rate, "rate_per_core": None, "rate_of": None}
        steps.append(step.model_copy(update=changed) if step.is_open else step)
    if not steps:
        raise ServerError("no step can be measured", hint="see the messages above")
    return replace(request, steps=tuple(steps))


def server_factory(request: Request, needed: Sizes) -> Serve:
    """Return the function that makes the server of a build, with the settings of the request.

    Every build is asked once whether it accepts them.
    """
    accepted: set[Version] = set()

    def serve(build: Build, folder: Path) -> Server:
        settings, layers = request.settings_of(build.version), request.layers_of(build.version)
        if build.version not in accepted:
            require_settings(build, needed, request.durability, settings, layers)
            accepted.add(build.version)
        initdb = request.initdb_of(build.version)
        return make_server(build, needed, request.durability, folder, settings, layers, initdb)

    return serve
