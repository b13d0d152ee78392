"""The control groups in which this process runs, as the kernel describes them, and the limits of those.

Version 1 has a hierarchy for each controller, version 2 one for all; a machine may have both, with each
controller in one of them (cgroups(7)).
"""

import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
ROOT = Path("/")

MEMORY, CPU = "memory", "cpu"
"""Controllers, by their names in both versions."""

IO, BLKIO = "io", "blkio"
"""The controller of block devices, by its names in version 2 and in version 1."""


@dataclass(frozen=True)
class Hierarchy:
    """A mounted tree of control groups."""

    version: int
    """1 or 2."""
    mount: Path
    """The folder where it is mounted: the root of what this process sees of it."""
    own: Path
    """The folder of the group in which this process runs."""
    controllers: frozenset[str]
    """The names of its controllers; a tree of version 2 has those that no tree of version 1 has."""

    @property
    def path(self) -> tuple[Path, ...]:
        """The folders of our own group and of those above it, the nearest first."""
        above = [folder for folder in self.own.parents if folder.is_relative_to(self.mount)]
        return (self.own, *above)


def hierarchies(proc: Path = PROC, root: Path = ROOT) -> list[Hierarchy]:
    """Return the mounted hierarchies; none on a machine that has none, or does not tell.

    `proc` is where /proc lies, and `root` what paths of the kernel are relative to.
    """
    groups = _own_groups(_text(proc / "self/cgroup"))
    found = []
    for line in _text(proc / "self/mountinfo").splitlines():
        before, _, after = line.partition(" - ")
        fields, kind = before.split(" "), after.split(" ")
        if len(fields) < 5 or len(kind) < 3 or kind[0] not in ("cgroup", "cgroup2"):
            continue
        mount = root / _unescaped(fields[4]).lstrip("/")
        if kind[0] == "cgroup2":
            version, controllers = 2, frozenset(_text(mount / "cgroup.controllers").split())
            group = groups.get("")
        else:
            version, controllers = 1, frozenset(kind[2].split(","))
            group = next((path for name, path in groups.items() if name in controllers), None)
        if group is not None:
            found.append(Hierarchy(version, mount, mount / _below(group, fields[3]), controllers))
    return found


def hierarchy_of(controller: str, proc: Path = PROC, root: Path = ROOT) -> Hierarchy | None:
    """Return the hierarchy with a controller, which is at most one; None without it."""
    return next((found for found in hierarchies(proc, root) if controller in found.controllers), None)


def memory_limit(proc: Path = PROC, root: Path = ROOT) -> int | None:
    """Return the bytes of memory that our own group, or one above it, may use at most; None without a limit.

    A group of version 1 without a limit has one beyond any memory.
    """
    found = hierarchy_of(MEMORY, proc, root)
    name = "memory.max" if found is not None and found.version == 2 else "memory.limit_in_bytes"
    limits = [_number(folder / name) for folder in (found.path if found is not None else ())]
    return min((limit for limit in limits if limit is not None), default=None)


def cpu_quota(proc: Path = PROC, root: Path = ROOT) -> float | None:
    """Return the cores' worth of time that our own group, or one above it, may use; None without a quota."""
    found = hierarchy_of(CPU, proc, root)
    quotas = []
    for folder in found.path if found is not None else ():
        if found is not None and found.version == 2:
            words = _text(folder / "cpu.max").split()
            quota, period = (_whole(word) for word in words) if len(words) == 2 else (None, None)
        else:
            quota, period = _number(folder / "cpu.cfs_quota_us"), _number(folder / "cpu.cfs_period_us")
        if quota and period:
            quotas.append(quota / period)
    return min(quotas, default=None)


def _own_groups(text: str) -> dict[str, str]:
    """Return the path of our group by controller; '' stands for the tree of version 2.

    Lines of /proc/self/cgroup are `hierarchy:controllers:path`; that of version 2 has no controllers.
    """
    found: dict[str, str] = {}
    for line in text.splitlines():
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        found |= dict.fromkeys(controllers.split(","), path)
    return found


def _below(group: str, mounted: str) -> str:
    """Return the path of a group below the one that is mounted; '' for one that is not visible below it."""
    path = Path("/", group)
    if ".." in path.parts or not path.is_relative_to(mounted):
        return ""
    return str(path.relative_to(mounted))


def numbers(text: str) -> Iterator[tuple[str, int]]:
    """Yield names and numbers of a file such as `cpu.stat`, with `name number` on a line."""
    for name, value in re.findall(r"^(\w+) ([0-9]+)$", text, re.MULTILINE):
        number = _whole(value)
        if number is not None:
            yield name, number


def _number(path: Path) -> int | None:
    return _whole(_text(path))


def _whole(text: str) -> int | None:
    """A number of at most 64 bits; None for anything else, such as `max` and -1, which set no limit."""
    number = int(text) if re.fullmatch(r"[0-9]{1,20}", text) else 2**64
    return number if number < 2**64 else None


def _text(path: Path) -> str:
    with contextlib.suppress(OSError, ValueError):
        return path.read_text(errors="replace").strip()
    return ""


def _unescaped(text: str) -> str:
    """Return a path of mountinfo, in which blanks are octal numbers (proc(5))."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), text)
