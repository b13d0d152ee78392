"""Builds of versions, taken from the build cache or compiled into it."""

from dataclasses import replace

from build import host
from build.cache import store
from build.cache.earlier_compiles import forget_failure, known_failure, remember_failure
from build.cache.pruning import mark_used
from build.compile import CompileOptions, compiled
from build.compile_commands import CompileError
from build.engines import git_ref
from build.extending import extended, find_extended
from build.finished_build import Build
from build.home import Home
from build.installs import PrefixError, recorded_install
from build.lock import held
from build.progress import Progress
from build.request import BuildRequest, BuildSpec, build_spec
from build.sources import source
from build.version import Version


def provide(
    request: BuildRequest,
    home: Home,
    progress: Progress,
    *,
    use_ccache: bool = True,
    jobs: int | None = None,
    again: bool = False,
) -> Build:
    """Return the requested build from the cache; compile it if it is not there.

    `jobs` is the number of parallel processes (default: one per core). What is known not to compile here
    fails at once, unless it is to be tried `again`.
    Raises SourceError, RecipeError, HostError, PatchError, ExtensionError or CompileError, all of which are
    TidemarkErrors.
    """
    version = request.version
    if request.extensions:
        server = provide(request.server, home, progress, use_ccache=use_ccache, jobs=jobs, again=again)
        build = extended(server, request.extensions, home, progress)
        mark_used(home, build)
        return build
    found = find(request, home)
    if found is not None and version.is_install:
        return found
    if found is not None:
        progress.note(f"{version}: from the build cache: {found.prefix.name}{_namesakes(found, home)}")
        mark_used(home, found)
        return found
    obtained = source.obtain(version, home, progress, request.git_source)
    options = CompileOptions(jobs or host.cores(), host.ccache_program() if use_ccache else None)
    spec = build_spec(obtained, request)
    if again:
        forget_failure(home, spec)
    build = _imported(request, obtained, home) or _compile_once(spec, home, progress, options)
    mark_used(home, build)
    return build


def find(request: BuildRequest, home: Home) -> Build | None:
    """Return the requested build if it needs neither download nor compiling; None otherwise.

    The result is always None for a branch, because only its source knows the commit it points to today.
    """
    version = request.version
    if request.extensions:
        server = find(request.server, home)
        return None if server is None else find_extended(server, request.extensions, home)
    if version.is_install:
        return _installed(request, home)
    known: list[source.Source | None] = [*source.known_sources(version, home, request.git_source)]
    for asked in dict.fromkeys((replace(request, slim=None), request)):
        for candidate in known or [None]:
            build = _imported(asked, candidate, home)
            if build is None and candidate is not None:
                build = store.find(home, build_spec(candidate, asked).key, version)
            if build is not None:
                return build
    return None


def require_known(version: Version, home: Home, git_source: str | None = None) -> None:
    """Raise GitError for a version whose git source has no such tag or branch, before any work begins.

    It is also raised when the source cannot be reached, unless there is a build of a version of that name.
    """
    if version.is_release or version.is_install:
        return
    if any(build.version.plain == version.plain for build in store.all_builds(home)):
        return
    repository = source.repository_of(version, home, git_source)
    if repository is not None:
        repository.require(git_ref(version))


def _installed(request: BuildRequest, home: Home) -> Build:
    version = request.version
    if not request.is_plain:
        raise PrefixError(
            f"{version} is installed already: it can be neither patched, compiled otherwise nor linked again",
            hint="measure its source, a release, branch or commit, or omit patches, build.KEY and --layouts",
        )
    return recorded_install(version, home)


def _imported(request: BuildRequest, known: source.Source | None, home: Home) -> Build | None:
    # A build is imported in order to be measured, even if compiling on this machine would give another one.
    digest, patches = known.digest if known else None, [patch.sha256 for patch in request.read_patches]
    if request.relinks:
        return None
    return store.imported(home, request.version, digest, patches, request.choices.to_json())


def _namesakes(build: Build, home: Home) -> str:
    """Return which builds an imported one could be mistaken for, and how to name these; empty if none."""
    others = [f"{build.version.engine}@NAME={other.prefix}" for other in store.namesakes(home, build)]
    return f", which was imported; there are others of this version: {', '.join(others)}" if others else ""


def _compile_once(spec: BuildSpec, home: Home, progress: Progress, options: CompileOptions) -> Build:
    """Compile under the lock of the build key, unless another process has compiled the build meanwhile."""

    def on_wait() -> None:
        progress.note(f"{spec.version}: the same build is being compiled already; waiting for it")

    with held(store.lock_path(home, spec.key), on_wait) as lock:
        build = store.find(home, spec.key, spec.version)
        if build is not None:
            progress.note(f"{spec.version}: from the build cache: {build.prefix.name}")
            return build
        loss = store.damaged(home, spec.key)
        if loss:
            progress.note(f"{spec.version}: the build in the cache is damaged, and compiled again: {loss}")
        known = known_failure(home, spec)
        if known is not None:
            raise known
        try:
            return compiled(spec, home, progress, options, lock)
        except CompileError as error:
            remember_failure(home, spec, error)
            raise
