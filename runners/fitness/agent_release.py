"""GitHub's runners on this machine: which release each is, and how old it is.

GitHub sends no jobs to a runner that has not installed a new release within 30 days of its publication
(enforced since September 2026). A runner updates itself within a week, unless it was configured not to.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from runners.fitness.checked_machine import CheckedMachine
from runners.fitness.finding import Reading, note, ok
from runners.fitness.kernel import Kernel

NO_JOBS_DAYS = 30
"""Days after a release was published from which runners of an earlier one get no jobs."""

UNITS = "/etc/systemd/system/actions.runner.*.service"
"""The units that `svc.sh install` of a runner writes."""

LISTENER = "bin/Runner.Listener.dll"
"""The program of a runner; archives keep the time when it was built."""

_FOLDER = re.compile(r"^WorkingDirectory=(/\S.*?)\s*$", re.MULTILINE)
_VERSION = r"(\d{1,4}\.\d{1,6}\.\d{1,6})"
_LOGGED = re.compile(rf"\bVersion: {_VERSION}\s*$", re.MULTILINE)
_UPDATED = re.compile(rf"bin\.{_VERSION}")
_LOG_BYTES = 1 << 16


@dataclass(frozen=True)
class AgentRelease:
    """The release of GitHub's runner in a folder."""

    folder: Path
    version: tuple[int, ...] | None
    """None when neither an update nor a log says it."""

    built_at: datetime
    """In UTC, at most some days before it was published."""

    @property
    def name(self) -> str:
        """The runner with its version, for people."""
        version = "" if self.version is None else f" {'.'.join(map(str, self.version))}"
        return f"GitHub's runner{version} in {self.folder}"

    def age_days(self, now: datetime) -> int:
        """Return the whole days since it was built."""
        return (now - self.built_at).days

    def line(self, now: datetime) -> str:
        """Return its version and age in one line, and what an old release means."""
        found = f"{self.name} was built {self.age_days(now)} days ago"
        if not self.is_old(now):
            return found
        return (
            f"{found}: GitHub sends it no jobs from {NO_JOBS_DAYS} days after a newer release; is it barred"
            " from updating itself (config.sh --disableupdate)?"
        )

    def is_old(self, now: datetime) -> bool:
        """Return whether a newer release may have been out for longer than jobs are sent without it."""
        return self.age_days(now) > NO_JOBS_DAYS


def agent_releases(kernel: Kernel) -> Iterator[AgentRelease]:
    """Yield the release of each runner that is installed as a service; a folder without one is left out."""
    for unit in kernel.names(UNITS):
        named = _FOLDER.search(kernel.read(unit) or "")
        if named is None:
            continue
        folder = kernel.path(named[1])
        try:
            built = datetime.fromtimestamp((folder / LISTENER).stat().st_mtime, UTC)
        except OSError:
            continue
        yield AgentRelease(Path(named[1]), _version(folder), built)


def parse_version(text: str) -> tuple[int, ...] | None:
    """Return the numbers of a version such as `v2.331.0`; None for anything else."""
    match = re.fullmatch(f"v?{_VERSION}", text)
    return None if match is None else tuple(map(int, match[1].split(".")))


def agent(machine: CheckedMachine) -> Reading:
    """Read the releases of the runners of this machine."""
    now, releases = datetime.now(UTC), list(agent_releases(machine.kernel))
    text = "; ".join(release.line(now) for release in releases)
    if any(release.is_old(now) for release in releases):
        return note(text, look="docs/hardware.md#githubs-runner")
    return ok(text or "no runner of GitHub is installed as a service")


def _version(folder: Path) -> tuple[int, ...] | None:
    """Return the version that an update or the latest log says; nothing in the folder is executed."""
    try:
        updated = _UPDATED.fullmatch((folder / "bin").readlink().name)
    except OSError:  # no link: it was never updated
        updated = None
    if updated is not None:
        return parse_version(updated[1])
    for log in sorted((folder / "_diag").glob("Runner_*.log"), reverse=True):
        try:
            with log.open("rb") as file:
                logged = _LOGGED.search(file.read(_LOG_BYTES).decode(errors="replace"))
        except OSError:
            continue
        if logged is not None:
            return parse_version(logged[1])
    return None
