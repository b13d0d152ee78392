"""A control group for one server, with less memory, or a slower disk, than the machine has."""

import contextlib
import errno
import hashlib
import os
import signal
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from build.programs.control_groups import PROC, ROOT, Hierarchy, hierarchies, numbers
from suites.control_groups.disk_speed import DiskUse
from suites.control_groups.kernel import KERNEL, GroupKernel
from suites.control_groups.limited import DiskLimit, GroupLimit, MemoryLimit
from suites.control_groups.limits import LimitError, MemoryUse, memory_text

PREFIX = "tidemark-"
"""The names of all groups that Tidemark makes begin with it."""

ASIDE = f"{PREFIX}itself"
"""The group into which Tidemark moves, where its own has to be free of processes."""

REMOVE_SECONDS = 10.0
"""How long a group may refuse to be removed, as it does while its last process ends."""

KILLED = "killed by the kernel: it needed more memory than its limit,"
"""What a failure says before the limit, when the kernel has killed a process of the group."""

_ENTER = 'while [ "$1" != -- ]; do echo 0 > "$1" || exit 1; shift; done; shift; exec "$@"'
"""Moves the shell itself, which 0 stands for, and becomes the program. Run before the user is changed: the
server's user may not write into the group."""


_EVENTS = {1: "memory.oom_control", 2: "memory.events"}
"""By version, the file with a line `oom_kill`: how many processes of a group the kernel has killed."""

_USED = {1: "memory.usage_in_bytes", 2: "memory.current"}
"""By version, the file with the bytes of memory in use, page cache included."""


@dataclass(frozen=True)
class GroupPart:
    """The folder of a group in one hierarchy, and what is limited there."""

    folder: Path
    version: int
    limits: tuple[GroupLimit, ...] = ()


@dataclass(frozen=True)
class ControlGroup:
    """A group that exists: in version 1 it has a folder for each controller, in version 2 one."""

    parts: tuple[GroupPart, ...]
    kernel: GroupKernel = KERNEL

    @property
    def folder(self) -> Path:
        """Its folder, or the first of them."""
        return self.parts[0].folder

    def entered_by(self, argv: Sequence[str]) -> list[str]:
        """Return the command line that enters the group and becomes `argv` there, in the same process."""
        files = [str(part.folder / "cgroup.procs") for part in self.parts]
        return ["/bin/sh", "-c", _ENTER, "sh", *files, "--", *argv]

    def limit(self, *, is_on: bool) -> None:
        """Set the limits, or lift them for a while. Raises LimitError."""
        for part in self.parts:
            for limit in part.limits:
                try:
                    (limit.set if is_on else limit.lift)(part.folder, part.version, self.kernel)
                except OSError as error:
                    raise LimitError(
                        f"the kernel refuses a server {limit}: {error.strerror}",
                        where=str(part.folder),
                        hint=f"see the kernel's log (dmesg), or omit {limit.option}",
                    ) from error

    def kills(self) -> int:
        """Return how many processes of the group the kernel has killed; 0 if it does not say.

        Without a limit of memory these are none of the group's doing.
        """
        return sum(
            dict(numbers(_text(part.folder / _EVENTS[part.version]))).get("oom_kill", 0)
            for part, _ in self._memory()
        )

    def use(self) -> MemoryUse | None:
        """Return the use of its memory, 0 if the kernel does not say; None without a limit of it."""
        for part, limit in self._memory():
            used = _text(part.folder / _USED[part.version])
            return MemoryUse(int(used) if used.isdecimal() else 0, limit.amount)
        return None

    def disk_use(self) -> DiskUse | None:
        """Return what it has read and written of a disk with a limit; None without one, or without counts."""
        for part in self.parts:
            for limit in part.limits:
                if isinstance(limit, DiskLimit):
                    with contextlib.suppress(OSError):
                        return limit.use(part.folder, part.version)
        return None

    def killed(self) -> str:
        """Return the sentence about a process that the kernel has killed."""
        return " ".join([KILLED, *(memory_text(limit.amount) for _, limit in self._memory())])

    def remove(self) -> None:
        """Kill what still runs in the group, and remove it. Raises LimitError."""
        for part in self.parts:
            self._remove(part.folder)

    def _remove(self, folder: Path) -> None:
        deadline = time.monotonic() + REMOVE_SECONDS
        while True:
            for pid in _text(folder / "cgroup.procs").split():
                with contextlib.suppress(OSError, ValueError):
                    os.kill(int(pid), signal.SIGKILL)
            try:
                self.kernel.remove(folder)
            except FileNotFoundError:
                return
            except OSError as error:
                if error.errno != errno.EBUSY or time.monotonic() > deadline:
                    raise LimitError(
                        f"the control group of a server cannot be removed: {error.strerror}",
                        where=str(folder),
                        hint="end the processes in its cgroup.procs, then remove it by rmdir",
                    ) from error
                time.sleep(0.05)
            else:
                return

    def _memory(self) -> Iterator[tuple[GroupPart, MemoryLimit]]:
        for part in self.parts:
            for limit in part.limits:
                if isinstance(limit, MemoryLimit):
                    yield part, limit


def _text(path: Path) -> str:
    with contextlib.suppress(OSError):
        return path.read_text().strip()
    return ""


def group_name(server: Path) -> str:
    """Return the name of the group of the server in a folder: the same for whoever looks for it later."""
    return f"{_prefix_of(server.parent)}{_digest(server)}"


def _prefix_of(folder: Path) -> str:
    return f"{PREFIX}{_digest(folder)}-"


def _digest(folder: Path) -> str:
    return hashlib.sha256(bytes(folder.resolve())).hexdigest()[:12]


def make_group(
    name: str,
    limits: Sequence[GroupLimit],
    kernel: GroupKernel = KERNEL,
    proc: Path = PROC,
    root: Path = ROOT,
) -> ControlGroup:
    """Make a group of a name with limits, as near to our own group as the kernel allows.

    Below our own group, or beside it, the limits that we run under ourselves apply too. Raises LimitError,
    which says why there can be none, and what to do.
    """
    found: dict[Hierarchy, list[GroupLimit]] = {}
    for limit in limits:
        found.setdefault(_hierarchy_of(limit, proc, root), []).append(limit)
    made: list[GroupPart] = []
    try:
        for hierarchy, of_it in found.items():
            made.append(_make_part(hierarchy, name, of_it, kernel))
    except LimitError:
        for part in made:
            with contextlib.suppress(OSError):
                kernel.remove(part.folder)
        raise
    return ControlGroup(tuple(made), kernel)


def hierarchy_with(limit: type[GroupLimit], proc: Path = PROC, root: Path = ROOT) -> Hierarchy | None:
    """Return the hierarchy whose controller has a kind of limit; None without it."""
    return next(
        (
            found
            for found in hierarchies(proc, root)
            if limit.controllers[found.version][0] in found.controllers
        ),
        None,
    )


def _hierarchy_of(limit: GroupLimit, proc: Path, root: Path) -> Hierarchy:
    found = hierarchy_with(type(limit), proc, root)
    if found is not None:
        return found
    controller = f"{limit.controllers[2][0]} controller"
    raise LimitError(
        f"no control group can be made for a server with {limit}: this machine has no "
        f"{controller if hierarchies(proc, root) else 'file system of control groups'}",
        where=limit.option,
        hint=f"{limit.without}, and mount control groups (cgroups(7)); or omit {limit.option}",
    )


def _make_part(found: Hierarchy, name: str, limits: Sequence[GroupLimit], kernel: GroupKernel) -> GroupPart:
    refusals: list[str] = []
    needed = [name for limit in limits for name in limit.controllers[found.version]]
    controllers = [name for name in dict.fromkeys(needed) if name in found.controllers]
    for parent in _parents(found, controllers, kernel, refusals):
        folder = parent / name
        try:
            with contextlib.suppress(FileExistsError):
                kernel.make(folder)
            for limit in limits:
                limit.set(folder, found.version, kernel)
        except OSError as error:
            refusals.append(f"{folder}: {error.strerror}")
            with contextlib.suppress(OSError):
                kernel.remove(folder)
        else:
            return GroupPart(folder, found.version, tuple(limits))
    options = " and ".join(limit.option for limit in limits)
    raise LimitError(
        f"no control group can be made for a server with {' and '.join(map(str, limits))}: {refusals[-1]}",
        where=options,
        hint=f"{_way_out(is_root=os.geteuid() == 0)}; or declare none: no {options}, and no profile with it",
    )


def _way_out(*, is_root: bool) -> str:
    if is_root:
        return (
            "run Tidemark outside of the container, or give that a writable /sys/fs/cgroup of its own "
            "(docker: --privileged --cgroupns=private)"
        )
    return (
        "run it as root, or where systemd delegates control groups: systemd-run --user --scope "
        "-p Delegate=yes ./tidemark ..."
    )


def _parents(
    found: Hierarchy, controllers: Sequence[str], kernel: GroupKernel, refusals: list[str]
) -> Iterator[Path]:
    """Yield the groups below which a group may be made, the nearest first; `refusals` get what refused.

    In version 1 that is any group in which this user may write. In version 2 a group whose children have
    controllers has no processes itself, unless it is the root of all: our own becomes one when we step aside,
    into a child of it, which is done last.
    """
    if found.version == 1:
        yield from found.path
        return
    for parent in found.path:
        if parent != found.own or _is_root_of_all(parent):
            yield from _with_controllers(found, parent, controllers, kernel, refusals)
    try:
        _step_aside(found.own, kernel)
    except OSError as error:
        refusals.append(f"{found.own}: {error.strerror}")
        return
    yield from _with_controllers(found, found.own, controllers, kernel, refusals)


def _is_root_of_all(folder: Path) -> bool:
    """Whether a group of version 2 is the root of the kernel, the only one that has no type."""
    return not (folder / "cgroup.type").exists()


def _with_controllers(
    found: Hierarchy, parent: Path, controllers: Sequence[str], kernel: GroupKernel, refusals: list[str]
) -> Iterator[Path]:
    """Yield `parent` once its children have the controllers, as all groups above it must have."""
    above = [folder for folder in (parent, *parent.parents) if folder.is_relative_to(found.mount)]
    try:
        for folder in reversed(above):
            enabled = folder / "cgroup.subtree_control"
            for controller in controllers:
                if controller not in enabled.read_text().split():
                    kernel.write(enabled, f"+{controller}")
    except OSError as error:
        refusals.append(f"{parent}: {error.strerror}")
    else:
        yield parent


def _step_aside(own: Path, kernel: GroupKernel) -> None:
    """Move all processes of our group into a child of it. Raises OSError."""
    aside = own / ASIDE
    with contextlib.suppress(FileExistsError):
        kernel.make(aside)
    for pid in (own / "cgroup.procs").read_text().split():
        try:
            kernel.write(aside / "cgroup.procs", pid)
        except ProcessLookupError:
            continue  # it has ended meanwhile


def groups_below(folder: Path, proc: Path = PROC, root: Path = ROOT) -> list[ControlGroup]:
    """Return the groups of the servers in the folders of `folder`, wherever they were made, empty or not."""
    prefix = _prefix_of(folder)
    with_limits = dict.fromkeys(hierarchy_with(limit, proc, root) for limit in (MemoryLimit, DiskLimit))
    return [
        ControlGroup((GroupPart(Path(place) / name, found.version),))
        for found in with_limits
        if found is not None
        for place, children, _ in os.walk(found.mount)
        for name in children
        if name.startswith(prefix)
    ]
