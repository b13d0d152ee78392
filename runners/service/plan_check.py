"""What the nights of a plan need on this machine: each need is looked at, and a test alert is sent.

`./tidemark check --plan` prints them, with what a person has to do; nothing is changed.
"""

import argparse
import os
import platform
import shutil
import subprocess
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from itertools import chain
from pathlib import Path

from build.accounts import blocked_folder
from build.engines import ENGINES
from build.errors import TidemarkError, did_you_mean, shell_line
from build.home import ROOT, SHARED_HOME, Home
from build.host import why_not
from build.sources.git import mirror
from build.sources.releases import known_releases
from build.sources.repository import git_address
from build.version import Engine, is_prerelease
from runners.alerting.notices.sending import send_test
from runners.alerting.tokens import STORE, credential
from runners.alerting.tracker import MissingTokenError, TrackerError
from runners.alerting.tracker_check import EXPIRY_DAYS, send_test_alert
from runners.alerting.tracker_registry import open_tracker
from runners.fitness.checked_machine import CheckedMachine
from runners.fitness.checks import examine
from runners.fitness.finding import FIX, Level
from runners.measuring import preparation
from runners.measuring.machine_lock import measuring_alone
from runners.nightly.keys.tracked import Tracked
from runners.nightly.plan import Alerts, Plan, Task, find_box, load_plan
from runners.service.install import InstallError, Site, require_reachable
from runners.service.installed import installed_variables, plan_in_use
from suites.definition import Suite, load_suite
from suites.generators.registry import require_runnable
from suites.sizing import fit_together, sizes, this_machine

LISTS = ("packages.txt", "packages-profiles.txt", "packages-companions.txt")
"""The lists of `setup`, in `runners/`."""

WANTED, SMALL = "short", "smoke"
"""The profile for nights, and the one for trying out."""

WIDTH = 110


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


def check_plan(arguments: argparse.Namespace) -> int:
    """Print what the nights of a plan need; return 0, or 1 when something has to be corrected before."""
    installed = installed_variables()
    path = plan_in_use(arguments.plan or None).absolute()
    plan = load_plan(path)
    box = find_box(plan, arguments.box or installed.get("TIDEMARK_BOX"), platform.node())
    homes = (os.environ.get("TIDEMARK_HOME"), installed.get("TIDEMARK_HOME"))
    home = Home(Path(next(filter(None, homes), SHARED_HOME)).absolute())
    place = next(folder for folder in (home.path, *home.path.parents) if folder.is_dir())
    wrong = []
    for need in chain(_needs(plan, path, box, home, place), _people(plan, box)):
        print(_shown(need), flush=True)
        if need.state is NeedState.WRONG:
            wrong.append(need.name)
    if wrong:
        print(f"\nTo be corrected before the first night: {', '.join(wrong)}.")
    elif not installed:
        print(f"\nNext: sudo {shell_line(ROOT / 'tidemark', 'service', 'install', '--box', box)}")
    return 1 if wrong else 0


def _shown(need: Need) -> str:
    """Return state, name and text of a need in columns, and what is to be done below them."""
    head = f"{need.state:<5}  {need.name:<18}  "
    indent = " " * len(head)
    lines = textwrap.wrap(
        need.text,
        WIDTH,
        initial_indent=head,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,  # not within paths
    )
    if need.to_do:
        lines.append(f"{indent}to do: {need.to_do}")  # never wrapped, so that it can be copied
    return "\n".join(lines)


def _needs(plan: Plan, path: Path, box: str, home: Home, place: Path) -> Iterator[Need]:
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
    for task in plan.tasks_of(box):
        suite = suite_of(task)
        if task.profile == SMALL and WANTED in suite.profiles:
            room = session_bytes(suite, WANTED, most_versions(plan, task)) / 1e9
            text = (
                f"{suite.name} in {SMALL} tells gross changes only; a session in {WANTED} takes {room:.1f} GB"
            )
            yield Need("profile", NeedState.NOTE, text, f'profile = "{WANTED}" in the plan, if there is room')


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
    """Check what `service install` refuses: whether the user of nights reaches checkout, plan and home."""
    try:
        require_reachable(Site(box, home.path))
    except InstallError as error:
        return Need("folders", NeedState.WRONG, f"{error.what}: {error.where}", error.hint)
    return Need("folders", NeedState.OK, f"plan {path}, checkout {ROOT}, home {home.path}")


# --- disk and memory


def session_bytes(suite: Suite, profile_name: str, versions: int) -> int:
    """Return the most bytes that a session with so many versions takes on this machine."""
    profile = suite.profile(profile_name)
    return preparation.session_bytes(profile, sizes(suite, profile, this_machine()), versions)


def night_bytes(plan: Plan, box: str) -> int:
    """Return the most bytes that a session of the nights of a box takes on this machine; 0 without tasks."""
    tasks = plan.tasks_of(box)
    return max(
        (session_bytes(suite_of(task), task.profile, most_versions(plan, task)) for task in tasks), default=0
    )


def most_versions(plan: Plan, task: Task) -> int:
    """Return how many versions a session of a task has at most, the base included."""
    engines = (plan.engines[engine] for engine in plan.engines_of(task))
    return max((1 + len(tracked.releases) + len(tracked.moving) for tracked in engines), default=0)


def fits_in_memory(task: Task) -> bool:
    """Return whether this machine has the memory for one server with the most clients of a task."""
    suite, machine = suite_of(task), this_machine()
    steps = suite.select(task.steps, task.profile, task.clients)
    return fit_together(1, sizes(suite, suite.profile(task.profile), machine, steps), machine)


def suite_of(task: Task) -> Suite:
    """Return the suite of a task, with the memory and disk that the task declares for each server."""
    return load_suite(task.suite).with_declared(task.memory, task.disk)


# --- programs


def missing_packages(folder: Path = ROOT / "runners") -> list[str]:
    """Return the names of the packages whose probes are not present on this machine."""
    return [package for name in LISTS for package, probe in _listed(folder / name) if not _is_present(probe)]


def _listed(path: Path) -> Iterator[tuple[str, str]]:
    for line in path.read_text(encoding="utf-8").splitlines():
        words = line.split()
        if words and not words[0].startswith("#"):
            yield words[0], words[1]


def _is_present(probe: str) -> bool:
    kind, _, name = probe.partition(":")
    if kind == "header":
        headers = Path("/usr/include")
        return (headers / name).exists() or any(headers.glob(f"*/{name}"))
    if kind == "python":
        found = shutil.which("python3")
        words = [found or "python3", "-P", "-c", f"import {name}"]
        return found is not None and subprocess.run(words, capture_output=True, check=False).returncode == 0
    program = shutil.which(name) or shutil.which(name, path="/usr/sbin")
    return program is not None and (kind == "command" or why_not(program) is None)


# --- people


def _people(plan: Plan, box: str) -> Iterator[Need]:
    """Yield how it is with tracker and routes: an issue is opened and closed, and messages are sent."""
    if plan.alerts.repository is None and not plan.notify:
        yield Need("alerts", NeedState.NOTE, "nobody is told: the plan names no repository and no route")
    if plan.alerts.repository is not None:
        yield _issues(plan.alerts, plan.alerts.repository, box)
    missing = []
    for route in plan.notify:
        try:
            route.address()
        except TidemarkError as error:
            missing.append(route)
            state = NeedState.LEFT if route.needs_credential else NeedState.WRONG
            to_do = _storing(route.credential) if route.needs_credential else error.hint
            yield Need(f"route {route.name}", state, error.what, to_do)
    ready = [route for route in plan.notify if route not in missing]
    for name, failure in send_test(ready, box, datetime.now(UTC)).items():
        if failure is None:
            yield Need(f"route {name}", NeedState.OK, "a test message arrived")
        else:
            yield Need(f"route {name}", NeedState.WRONG, failure.what, failure.hint)


def _issues(alerts: Alerts, repository: str, box: str) -> Need:
    try:
        tracker = open_tracker(alerts.tracker, repository, alerts.url)
        expires_at = tracker.check()
        sent = send_test_alert(tracker, alerts.labels, box, datetime.now(UTC))
        where = sent.issue.address or f"{repository}#{sent.issue.number}"
        text = f"a test alert was opened and closed: {where}"
        if sent.without_labels:
            return Need("issues", NeedState.NOTE, f"{text}; {sent.without_labels}")
    except MissingTokenError as error:
        return Need("issues", NeedState.LEFT, error.what, _storing(credential(alerts.tracker)))
    except TrackerError as error:
        return Need("issues", NeedState.WRONG, f"{error.what} ({error.where})", error.hint)
    if expires_at is not None and (expires_at - datetime.now(UTC)).days < EXPIRY_DAYS:
        soon = f"the token expires at {expires_at:%Y-%m-%d %H:%M} UTC"
        return Need("issues", NeedState.NOTE, f"{text}; {soon}", "renew it before")
    return Need("issues", NeedState.OK, text)


def _storing(name: str) -> str:
    """Return the command that stores a secret, which is typed and ended by Ctrl-D."""
    return f"sudo install -D -m 600 /dev/stdin {STORE}/{name}"
