"""What tests of real servers share: folders that the server user can reach, a Home, and compiled builds.

A folder made here is checked when it goes: no process may work below it, and no shared memory that appeared
while it was there may be left without an owner. Builds come from the build cache of `build.home.locate()`
(`$TIDEMARK_HOME`); the two of the demo are compiled when they are not there, older ones are skipped.
"""

import contextlib
import itertools
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

# As the program does (runners/__main__.py), before NumPy is imported: where a core is busy, threads that wait
# for each other take many times the processor time of one.
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import psutil
import pytest
from hypothesis import HealthCheck, settings

from benchmarks.real_builds.planted_history import PlantedHistory, make_history
from build.cache.archives import ArchiveError, import_
from build.errors import TidemarkError
from build.finished_build import Build
from build.home import ROOT, Home, locate
from build.installs import PrefixError
from build.progress import Silent
from build.provide import find, provide
from build.request import BuildRequest
from build.version import parse_version
from suites.processes import run
from tests.new_servers.data_directories import new_folder, shared_folder

# An example takes as long as the machine lets it: what is slow is measured by benchmarks, alone.
settings.register_profile("beside others", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("beside others")

POSTGRES_18 = "postgres@18.6"
POSTGRES_17 = "postgres@17.11"
POSTGRES_15 = "postgres@15.18"
POSTGRES_13 = "postgres@13.23"
MYSQL_9 = "mysql@9.7.2"
MARIADB_11 = "mariadb@11.8.6"

SHARED_BUILDS = ROOT.parent / "shared" / "builds"
"""Where an install tree of MySQL may lie, to spare an hour of compiling."""

MEMORY_PATIENCE = 3.0
"""Seconds for which orphaned memory may be seen: a server that somebody else runs may just be ending."""


def pytest_configure(config: pytest.Config) -> None:
    """Before the workers begin, which share it."""
    whole_run = contextlib.ExitStack()
    whole_run.enter_context(shared_folder())
    config.add_cleanup(whole_run.close)


def pytest_report_header() -> list[str]:
    """Which servers and which sysbench the real-server tests meet."""
    versions = (POSTGRES_18, POSTGRES_17, POSTGRES_15, POSTGRES_13, MYSQL_9, MARIADB_11)
    found = {text: _cached(text) for text in versions}
    known = [f"{text} ({build.prefix.name if build else 'not cached'})" for text, build in found.items()]
    try:
        sysbench = run(["sysbench", "--version"], what="sysbench --version").strip()
    except (OSError, TidemarkError):
        sysbench = "sysbench is not installed"
    return [f"servers: {', '.join(known)}", f"load generator: {sysbench}"]


def _cached(version: str) -> Build | None:
    with contextlib.suppress(TidemarkError):
        return find(BuildRequest(parse_version(version)), locate())
    return None


# --- order

DEEP_FOLDERS = {
    "tests/report": "writes whole sites, and reads them in a browser",
    "tests/runners/alerting": "whole lives of issues and messages, against trackers that misbehave",
    "tests/outputs": "every output of a hostile history",
    "tests/workflows": "runs workflows in act",
    "tests/history/test_released.py": "histories of every schema that was released",
}
"""Where nearly all tests are deep, and why. Those that would be missed first are marked as slow."""

SERVERS_SHARE = 0.8
"""The part of the run by whose end all modules with real servers have begun."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave long tests out unless they are asked for, spread modules with real servers, ask for reasons.

    Servers wait half of their time, so they belong among tests that only compute. None of them begins last,
    when the other workers would have nothing left to do.
    """
    if "long" not in config.option.markexpr:
        config.hook.pytest_deselected(items=[item for item in items if item.get_closest_marker("long")])
        items[:] = [item for item in items if not item.get_closest_marker("long")]
    for item in items:
        for folder, why in DEEP_FOLDERS.items():
            if item.path.is_relative_to(ROOT / folder):
                item.add_marker(pytest.mark.deep(why))
        for marker in (mark for mark in item.iter_markers() if mark.name in COSTLY):
            if not marker.args:
                raise pytest.UsageError(f"{item.nodeid}: {marker.name} needs a reason: {COSTLY_HELP}")
    modules = dict.fromkeys(item.path for item in items)
    with_servers = {item.path for item in items if item.get_closest_marker("server")}
    places: dict[Path, float] = {}
    for share, kind in ((SERVERS_SHARE, with_servers), (1.0, modules.keys() - with_servers)):
        chosen = [path for path in modules if path in kind]
        places |= {path: share * number / len(chosen) for number, path in enumerate(chosen)}
    items.sort(key=lambda item: places[item.path])


# --- processor time

COSTLY = ("deep", "slow")
COSTLY_HELP = "what would be missed without the test"

CHEAP_SECONDS = 2.0
"""Of processor time, in the test itself and the processes that it awaits. A costlier test has a marker."""

UNEXPLAINED = "seconds of processor time"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    before = sum(os.times()[:4])
    yield
    spent = sum(os.times()[:4]) - before
    if spent > CHEAP_SECONDS and not any(map(item.get_closest_marker, (*COSTLY, "server", "long"))):
        item.user_properties.append((UNEXPLAINED, spent))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name costly tests that do not say why; seconds differ by machine, so this is no failure."""
    reports = [report for report in terminalreporter.getreports("passed") if report.when == "call"]
    costly = [(value, report.nodeid) for report in reports for name, value in report.user_properties]
    if costly:
        terminalreporter.section(f"more than {CHEAP_SECONDS:.0f} s of processor time, without a marker")
        for seconds, name in sorted(costly, reverse=True):
            terminalreporter.line(f"{seconds:6.1f} s  {name}")


# --- folders


@pytest.fixture(scope="session")
def server_folders() -> Callable[[], AbstractContextManager[Path]]:
    """Makes folders as `server_folder` is one, for fixtures that live longer than a test."""
    return _server_folder


@pytest.fixture
def server_folder() -> Iterator[Path]:
    """A folder with a short path that every user can reach; pytest's tmp_path is 0700.

    Fails the test when, at its end, processes work below it or shared memory is left.
    """
    with _server_folder() as folder:
        yield folder


@pytest.fixture(scope="session")
def lock_names(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Paths of files that are not there, in one folder: for a further folder pytest looks at all others."""
    folder = tmp_path_factory.mktemp("locks")
    return (folder / f"{number}.lock" for number in itertools.count())


@pytest.fixture(autouse=True)
def lock_of_its_own(lock_names: Iterator[Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """What a test measures is kept apart only from what the same test measures."""
    path = next(lock_names)
    monkeypatch.setenv("TIDEMARK_LOCK", str(path))
    return path


@pytest.fixture(scope="session")
def shared_home() -> Home:
    """The Home whose builds tests share, whatever a test says to its own programs."""
    return locate()


@pytest.fixture
def home(shared_home: Home) -> Iterator[Home]:
    """A Home of its own, of the kind of `server_folder`, that shares builds, tarballs and compiled tools.

    Git mirrors are its own: those of repositories that tests make would stay for ever.
    """
    with _server_folder() as folder:
        for real in (shared_home.builds, shared_home.ccache, shared_home.tools):
            real.mkdir(parents=True, exist_ok=True)
            (folder / real.name).symlink_to(real)
        (folder / shared_home.sources.name).mkdir()
        shared_home.sources.mkdir(parents=True, exist_ok=True)
        for tarball in filter(Path.is_file, shared_home.sources.iterdir()):
            (folder / tarball.parent.name / tarball.name).symlink_to(tarball)
        yield Home(folder)


@contextlib.contextmanager
def _server_folder() -> Iterator[Path]:
    before = _orphans_of_system_v() | _segments_of_posix()
    folder = new_folder()
    try:
        yield folder
    finally:
        strays = [(process, process.cmdline()) for process in _working_below(folder)]
        for process, _ in strays:
            process.kill()
        shutil.rmtree(folder, ignore_errors=True)
    assert not strays, f"processes were left below {folder}: {strays}"
    memory = _lasting_orphans(before)
    assert not memory, f"shared memory was left by servers below {folder}: {sorted(memory)}"


def _working_below(folder: Path) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if Path(process.cwd()).is_relative_to(folder):
                found.append(process)
    return found


def _lasting_orphans(before: set[str]) -> set[str]:
    """Orphans that were not there before and do not go away."""
    deadline = time.monotonic() + MEMORY_PATIENCE
    while (left := _orphans() - before) and time.monotonic() < deadline:
        time.sleep(0.1)
    return left


def _orphans() -> set[str]:
    """Shared memory of the kinds that Postgres uses, attached by nobody."""
    return _orphans_of_system_v() | _orphans_of_posix()


def _orphans_of_system_v() -> set[str]:
    """Columns of /proc/sysvipc/shm: key shmid perms size cpid lpid nattch (ipc/shm.c)."""
    rows = [line.split() for line in Path("/proc/sysvipc/shm").read_text().splitlines()[1:]]
    return {f"System V {row[1]}" for row in rows if row[6] == "0" and not psutil.pid_exists(int(row[4]))}


def _orphans_of_posix() -> set[str]:
    """While any server lives, segments that nobody maps may be its: Postgres pins some for later."""
    names = _segments_of_posix()
    return names if names and not any(map(_is_server, psutil.process_iter(["name"]))) else set()


def _is_server(process: psutil.Process) -> bool:
    """A server under callgrind goes by the name of its tool."""
    return str(process.info["name"]).startswith(("postgres", "callgrind"))


def _segments_of_posix() -> set[str]:
    return {str(path) for path in Path("/dev/shm").glob("PostgreSQL.*")}


# --- builds


def _provided(version: str) -> Build:
    return provide(BuildRequest(parse_version(version)), locate(), Silent())


def _provided_if_cached(version: str) -> Build:
    build = _cached(version)
    if build is None:
        pytest.skip(f"{version} is not in the build cache: ./tidemark build {version}")
    return build


@pytest.fixture(scope="session")
def postgres_18() -> Build:
    """The contender of the demo; compiled when it is not in the cache."""
    return _provided(POSTGRES_18)


@pytest.fixture(scope="session")
def postgres_17() -> Build:
    """The base of the demo; compiled when it is not in the cache."""
    return _provided(POSTGRES_17)


@pytest.fixture(scope="session")
def postgres_15() -> Build:
    """For tests over a range of versions: the first to keep statistics in memory. Skips when not cached."""
    return _provided_if_cached(POSTGRES_15)


@pytest.fixture(scope="session")
def postgres_13() -> Build:
    """For tests over a range of versions: the oldest that is supported. Skips when not cached."""
    return _provided_if_cached(POSTGRES_13)


@pytest.fixture(scope="session")
def mysql_9() -> Build:
    """From the cache, else the install tree that lies beside the checkout; skips where there is neither."""
    build = _cached(MYSQL_9)
    if build is None:
        archives = sorted(SHARED_BUILDS.glob("mysql-9.7.2-*.tar.zst"))
        if not archives:
            pytest.skip(f"{MYSQL_9} is not in the build cache: ./tidemark build {MYSQL_9}")
        try:
            build = import_(archives[0], locate(), Silent())
        except (ArchiveError, PrefixError) as error:  # of another distribution, for example
            pytest.skip(str(error))
    return build


@pytest.fixture(scope="session")
def mariadb_11() -> Build:
    """From the cache; skips where it is not there, because compiling it takes too long for a test."""
    return _provided_if_cached(MARIADB_11)


@pytest.fixture(scope="session")
def planted(tmp_path_factory: pytest.TempPathFactory) -> PlantedHistory:
    """The git history of Postgres with a slow commit; a test may add branches, and changes no other."""
    return make_history(tmp_path_factory.mktemp("planted") / "postgres", locate())
