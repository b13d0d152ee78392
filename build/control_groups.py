"""The control group in which this process runs, as the kernel describes it, and its limits.

Only version 2 is read, whose one hierarchy has all controllers (cgroups(7)).
"""

import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
ROOT = Path("/")


@dataclass(frozen=True)
class OwnGroup:
    """The group of this process."""

    mount: Path
    """The folder where groups are mounted: the root of what this process sees of them."""
    folder: Path

    @property
    def path(self) -> tuple[Path, ...]:
        """The folders of our own group and of those above it, the nearest first."""
        above = [folder for folder in self.folder.parents if folder.is_relative_to(self.mount)]
        return (self.folder, *above)


def own_group(proc: Path = PROC, root: Path = ROOT) -> OwnGroup | None:
    """Return our group; None on a machine that has none of version 2, or does not tell.

    `proc` is where /proc lies, and `root` what paths of the kernel are relative to.
    """
    group = next((path for controllers, path in _memberships(proc) if not controllers), None)
    for line in text_in(proc / "self/mountinfo").splitlines():
        before, _, after = line.partition(" - ")
        fields = before.split(" ")
        if group is not None and len(fields) >= 5 and after.startswith("cgroup2 "):
            mount = root / _unescaped(fields[4]).lstrip("/")
            return OwnGroup(mount, mount / _below(group, fields[3]))
    return None


def controllers_of_version_1(proc: Path = PROC) -> frozenset[str]:
    """Return the controllers in hierarchies of version 1, which groups of version 2 then do not have."""
    return frozenset(name for controllers, _ in _memberships(proc) for name in controllers.split(",") if name)


def _memberships(proc: Path) -> Iterator[tuple[str, str]]:
    """Yield the controllers of each hierarchy, with the path of our group there; version 2 names none.

    Lines of /proc/self/cgroup are `hierarchy:controllers:path`.
    """
    for line in text_in(proc / "self/cgroup").splitlines():
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        yield controllers, path


def memory_limit(proc: Path = PROC, root: Path = ROOT) -> int | None:
    """Return the bytes of memory that our own group, or one above it, may use; None without a limit."""
    limits = [number_in(folder / "memory.max") for folder in own_path(proc, root)]
    return min((limit for limit in limits if limit is not None), default=None)


def cpu_quota(proc: Path = PROC, root: Path = ROOT) -> float | None:
    """Return the cores' worth of time that our own group, or one above it, may use; None without a quota."""
    quotas = []
    for folder in own_path(proc, root):
        words = text_in(folder / "cpu.max").split()
        quota, period = (_whole(word) for word in words) if len(words) == 2 else (None, None)
        if quota and period:
            quotas.append(quota / period)
    return min(quotas, default=None)


def own_path(proc: Path = PROC, root: Path = ROOT) -> tuple[Path, ...]:
    """Return the folders of our own group and of those above it, any of which may have a limit."""
    own = own_group(proc, root)
    return () if own is None else own.path


def _below(group: str, mounted: str) -> str:
    """Return the path of a group below the one that is mounted; '' for one that is not visible below it."""
    path = Path("/", group)
    if ".." in path.parts or not path.is_relative_to(mounted):
        return ""
    return str(path.relative_to(mounted))


def numbers_in(file: Path) -> dict[str, int]:
    """Return the numbers in a file such as `cpu.stat`, with `name number` on a line; none if it is gone."""
    found = {
        name: _whole(value) for name, value in re.findall(r"^(\w+) ([0-9]+)$", text_in(file), re.MULTILINE)
    }
    return {name: number for name, number in found.items() if number is not None}


def number_in(file: Path) -> int | None:
    """Return the number in a file such as `memory.max`; None for `max`, or if it is gone."""
    return _whole(text_in(file))


def _whole(text: str) -> int | None:
    """A number of at most 64 bits; None for anything else, such as `max`, which sets no limit."""
    number = int(text) if re.fullmatch(r"[0-9]{1,20}", text) else 2**64
    return number if number < 2**64 else None


def text_in(file: Path) -> str:
    """Return the text of a file of the kernel; empty if there is none, or it is gone."""
    with contextlib.suppress(OSError, ValueError):
        return file.read_text(errors="replace").strip()
    return ""


def _unescaped(text: str) -> str:
    """Return a path of mountinfo, in which blanks are octal numbers (proc(5))."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), text)
