"""What the nights of a plan need on this machine: each need is looked at, and none is changed."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from build.accounts import blocked_folder
from build.engines import ENGINES
from build.errors import TidemarkError, did_you_mean, shell_line
from build.home import ROOT, Home
from build.sources.git import mirror
from build.sources.releases import known_releases
from build.sources.repository import git_address
from build.version import Engine, is_prerelease
from runners.fitness.checked_machine import CheckedMachine
from runners.fitness.checks import examine
from runners.fitness.finding import FIX, Level
from runners.initializing.found import PROFILES
from runners.initializing.packages import missing_packages
from runners.initializing.space import fits_in_memory, most_versions, night_bytes, session_bytes, suite_of
from runners.installing.escaping import InstallError
from runners.installing.site import require_reachable, site
from runners.measuring.machine_lock import measuring_alone
from runners.nightly.keys.tracked import Tracked
from runners.nightly.plan import Plan
from suites.definition import load_suite
from suites.generators.registry import require_runnable
from suites.sizing import this_machine


class NeedState(StrEnum):
    """How it is with one need."""

    OK = "ok"
    NOTE = "note"
    """Worth knowing; nights are measured all the same."""

    LEFT = "to do"
    """A person has to do something that Tidemark cannot; the command is said."""

    WRONG = "wrong"
    """Nights would fail, or their results would not be reliable."""


@dataclass(frozen=True)
class Need:
    """One thing that nights need, as it was found."""

    name: str
    state: NeedState
    text: str
    to_do: str = ""
    """What a person does about it, a command if that is enough; empty if nothing is to be done."""

    secret: str = ""
    """What a person types when the command asks for it, such as `the token`; empty for other commands."""


def needs(plan: Plan, path: Path, box: str, home: Home, place: Path) -> Iterator[Need]:
    """Yield what the nights of a box need, as it is now.

    `path` is that of the plan, and `place` the home, or the folder on its disk in which it will be made.
    """
    yield from _machine(place)
    yield _space(plan, box, place)
    yield from _profiles(plan, box)
    yield _memory(plan, box)
    yield from _programs(plan, box)
    for engine, tracked in plan.engines.items():
        yield from _sources(engine, tracked, home)
    yield _service(path, box, home)


def _machine(place: Path) -> Iterator[Need]:
    """Run the checks of `./tidemark check`, unless a session is measuring."""
    try:
        with measuring_alone(Home(place), in_home=False):
            findings = list(examine(CheckedMachine(place)))
    except (TidemarkError, OSError) as error:  # such as a session that is measuring
        why = error.what if isinstance(error, TidemarkError) else str(error)
        yield Need("machine", NeedState.NOTE, f"not checked: {why}", "./tidemark check")
        return
    unfit = [finding for finding in findings if finding.reading.level is Level.UNFIT]
    for finding in unfit:
        is_set = finding.reading.remedy == FIX
        state = NeedState.NOTE if is_set else NeedState.WRONG
        text = f"{finding.reading.text}{'; set before each night by tidemark-tune' if is_set else ''}"
        yield Need(finding.check.name, state, text, finding.reading.remedy or finding.reading.look)
    if not unfit:
        yield Need("machine", NeedState.OK, "fit for benchmarking; ./tidemark check has the details")


def _space(plan: Plan, box: str, place: Path) -> Need:
    """Compare the free space with the largest session, and with what builds may take beside it."""
    usage = shutil.disk_usage(place)
    needed = night_bytes(plan, box)
    builds = plan.retention.builds_gb * 1e9
    text = f"{usage.free / 1e9:.1f} GB free at {place}; a session takes up to {needed / 1e9:.1f} GB"
    if usage.free < needed:
        return Need(
            "space", NeedState.WRONG, text, "another disk for --home, or a smaller profile in the plan"
        )
    if usage.free < needed + builds:
        text += f", and builds up to {plan.retention.builds_gb:g} GB"
        return Need("space", NeedState.NOTE, text, "a smaller retention.builds_gb in the plan")
    return Need("space", NeedState.OK, text)


def _profiles(plan: Plan, box: str) -> Iterator[Need]:
    """Yield the suites that run in a profile for trying out, with what the profile for nights takes."""
    wanted, small = PROFILES
    for task in plan.tasks_of(box):
        suite = suite_of(task)
        if task.profile == small and wanted in suite.profiles:
            room = session_bytes(suite, wanted, most_versions(plan, task)) / 1e9
            text = (
                f"{suite.name} in {small} tells gross changes only; a session in {wanted} takes {room:.1f} GB"
            )
            yield Need("profile", NeedState.NOTE, text, f'profile = "{wanted}" in the plan, if there is room')


def _memory(plan: Plan, box: str) -> Need:
    """Tell which tasks have servers that do not fit into the memory of this machine."""
    has = f"{this_machine().memory_bytes / 1e9:.1f} GB"
    large = [f"{task.suite} {task.profile}" for task in plan.tasks_of(box) if not fits_in_memory(task)]
    if large:
        text = f"{has} are too little for one server of {', '.join(dict.fromkeys(large))}"
        return Need(
            "memory of servers", NeedState.WRONG, text, "a smaller profile or fewer clients in the plan"
        )
    return Need("memory of servers", NeedState.OK, f"{has}; a server of each suite fits")


def _programs(plan: Plan, box: str) -> Iterator[Need]:
    lacking = missing_packages()
    if lacking:
        text = f"not installed: {', '.join(lacking)}"
        yield Need("programs", NeedState.WRONG, text, f"sudo {shell_line(ROOT / 'tidemark')} setup")
        return
    for suite in dict.fromkeys(task.suite for task in plan.tasks_of(box)):
        try:
            require_runnable(load_suite(suite))
        except TidemarkError as error:
            yield Need(f"programs of {suite}", NeedState.WRONG, error.what, error.hint)
            return
    yield Need("programs", NeedState.OK, "compilers, libraries and load generators are installed")


def _sources(engine: Engine, tracked: Tracked, home: Home) -> Iterator[Need]:
    """Look for branches and releases in the git source, which is asked for their names alone."""
    address = git_address(engine, tracked.git) or ENGINES[engine].upstream.git  # as a night does
    name = f"git of {engine}"
    blocked = blocked_folder(Path(address)) if Path(address).is_dir() else None
    if blocked is not None:
        text = f"the user of nights cannot enter {blocked}"
        yield Need(
            name, NeedState.WRONG, text, f"{shell_line('chmod', 'o+x', blocked)}, or a clone elsewhere"
        )
        return
    try:
        source = mirror(address, engine, home)
        names = set(source.names())
    except TidemarkError as error:
        yield Need(name, NeedState.WRONG, f"{error.what} ({error.where})", error.hint)
        return
    branches = [branch.partition("#")[0] for branch in tracked.branches]
    for branch in branches:
        if branch not in names:
            meant = did_you_mean(branch, names)
            yield Need(name, NeedState.WRONG, f"{source.shown} has no branch {branch}", meant)
    if names.issuperset(branches):
        yield Need(name, NeedState.OK, f"{source.shown}: {', '.join(branches) or 'reached'}")
    yield from _releases(engine, tracked, names, home)


def _releases(engine: Engine, tracked: Tracked, names: set[str], home: Home) -> Iterator[Need]:
    """Yield the releases that no list of digests and no tag knows."""
    known = known_releases(engine, home)
    asked = [tracked.base_version.ref, *(release.partition("#")[0] for release in tracked.releases)]
    for release in asked:
        if tracked.base_version.is_install and release == tracked.base_version.ref:
            continue
        if release not in known and ENGINES[engine].release_tag(release) not in names:
            final = [other for other in known if not is_prerelease(other)]
            text = f"{engine} {release}: neither a tag nor a digest is known of it"
            yield Need("releases", NeedState.WRONG, text, did_you_mean(release, final))


def _service(path: Path, box: str, home: Home) -> Need:
    """Check what `runner install` refuses: whether the user of nights reaches checkout, plan and home."""
    try:
        require_reachable(site(path, box, "", home=home.path))
    except InstallError as error:
        return Need("folders", NeedState.WRONG, f"{error.what}: {error.where}", error.hint)
    return Need("folders", NeedState.OK, f"plan {path}, checkout {ROOT}, home {home.path}")
