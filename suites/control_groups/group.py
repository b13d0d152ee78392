"""A control group for one server, with less memory than the machine has; the page cache counts too.

The files are those of the kernel's version 1 (Documentation/admin-guide/cgroup-v1/memory.rst) or 2
(Documentation/admin-guide/cgroup-v2.rst).
"""

import contextlib
import errno
import hashlib
import os
import signal
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from build.programs.control_groups import MEMORY, PROC, ROOT, Hierarchy, hierarchies, hierarchy_of, numbers
from suites.control_groups.kernel import KERNEL, GroupKernel
from suites.control_groups.limits import LimitError, MemoryUse, memory_text

PREFIX = "tidemark-"
"""The names of all groups that Tidemark makes begin with it."""

ASIDE = f"{PREFIX}itself"
"""The group into which Tidemark moves, where its own has to be free of processes."""

REMOVE_SECONDS = 10.0
"""How long a group may refuse to be removed, as it does while its last process ends."""

KILLED = "killed by the kernel: it needed more memory than its limit,"
"""What a failure says before the limit, when the kernel has killed a process of the group."""

_ENTER = 'echo 0 > "$1" && shift && exec "$@"'
"""Moves the shell itself, which 0 stands for, and becomes the program. Run before the user is changed: the
server's user may not write into the group."""


@dataclass(frozen=True)
class _MemoryFiles:
    """The files of a group with the limit of its memory, and what they count."""

    limit: str
    swapped: str
    """The limit of the swap, or of memory and swap together."""
    used: str
    """The bytes in use, page cache included."""
    events: str
    """Has a line `oom_kill`: how many of its processes the kernel has killed."""


_FILES = {
    1: _MemoryFiles(
        "memory.limit_in_bytes",
        "memory.memsw.limit_in_bytes",
        "memory.usage_in_bytes",
        "memory.oom_control",
    ),
    2: _MemoryFiles("memory.max", "memory.swap.max", "memory.current", "memory.events"),
}


@dataclass(frozen=True)
class ControlGroup:
    """A group that exists."""

    folder: Path
    version: int
    memory_bytes: int
    kernel: GroupKernel = KERNEL

    def entered_by(self, argv: Sequence[str]) -> list[str]:
        """Return the command line that enters the group and becomes `argv` there, in the same process."""
        return ["/bin/sh", "-c", _ENTER, "sh", str(self.folder / "cgroup.procs"), *argv]

    def kills(self) -> int:
        """Return how many processes of the group the kernel has killed; 0 if it does not say."""
        return dict(numbers(self._text(_FILES[self.version].events))).get("oom_kill", 0)

    def use(self) -> MemoryUse:
        """Return how much of its memory is in use; 0 if the kernel does not say."""
        used = self._text(_FILES[self.version].used)
        return MemoryUse(int(used) if used.isdecimal() else 0, self.memory_bytes)

    def killed(self) -> str:
        """Return the sentence about a process that the kernel has killed."""
        return f"{KILLED} {memory_text(self.memory_bytes)}"

    def remove(self) -> None:
        """Kill what still runs in the group, and remove it. Raises LimitError."""
        deadline = time.monotonic() + REMOVE_SECONDS
        while True:
            for pid in self._text("cgroup.procs").split():
                with contextlib.suppress(OSError, ValueError):
                    os.kill(int(pid), signal.SIGKILL)
            try:
                self.kernel.remove(self.folder)
            except FileNotFoundError:
                return
            except OSError as error:
                if error.errno != errno.EBUSY or time.monotonic() > deadline:
                    raise LimitError(
                        f"the control group of a server cannot be removed: {error.strerror}",
                        where=str(self.folder),
                        hint="end the processes in its cgroup.procs, then remove it by rmdir",
                    ) from error
                time.sleep(0.05)
            else:
                return

    def limit(self) -> None:
        """Set the limit; the group gets no swap, which would be memory of another speed. Raises OSError."""
        files = _FILES[self.version]
        self.kernel.write(self.folder / files.limit, str(self.memory_bytes))
        # Without swap in the kernel, the file is missing.
        if (self.folder / files.swapped).exists():
            none = self.memory_bytes if self.version == 1 else 0
            self.kernel.write(self.folder / files.swapped, str(none))

    def _text(self, name: str) -> str:
        with contextlib.suppress(OSError):
            return (self.folder / name).read_text().strip()
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
    memory_bytes: int,
    kernel: GroupKernel = KERNEL,
    proc: Path = PROC,
    root: Path = ROOT,
) -> ControlGroup:
    """Make a group of a name with a limit of memory, as near to our own group as the kernel allows.

    Below our own group, or beside it, the limits that we run under ourselves apply too. Raises LimitError,
    which says why there can be none, and what to do.
    """
    found = hierarchy_of(MEMORY, proc, root)
    if found is None:
        raise LimitError(
            f"no control group can be made for a server of {memory_text(memory_bytes)}: this machine has no "
            f"{'memory controller' if hierarchies(proc, root) else 'file system of control groups'}",
            where="--memory",
            hint="boot its kernel with cgroup_enable=memory, and mount control groups (cgroups(7)); or omit "
            "--memory",
        )
    refusals: list[str] = []
    for parent in _parents(found, kernel, refusals):
        group = ControlGroup(parent / name, found.version, memory_bytes, kernel)
        try:
            with contextlib.suppress(FileExistsError):
                kernel.make(group.folder)
            group.limit()
        except OSError as error:
            refusals.append(f"{group.folder}: {error.strerror}")
            with contextlib.suppress(OSError):
                kernel.remove(group.folder)
        else:
            return group
    raise LimitError(
        f"no control group can be made for a server of {memory_text(memory_bytes)}: {refusals[-1]}",
        where="--memory",
        hint=_way_out(is_root=os.geteuid() == 0),
    )


def _way_out(*, is_root: bool) -> str:
    if is_root:
        return (
            "run Tidemark outside of the container, or give that a writable /sys/fs/cgroup of its own "
            "(docker: --privileged --cgroupns=private); or no memory: neither --memory nor --profile io"
        )
    return (
        "run it as root, or where systemd delegates control groups: systemd-run --user --scope "
        "-p Delegate=yes ./tidemark ...; or no memory: neither --memory nor --profile io"
    )


def _parents(found: Hierarchy, kernel: GroupKernel, refusals: list[str]) -> Iterator[Path]:
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
            yield from _with_controller(found, parent, kernel, refusals)
    try:
        _step_aside(found.own, kernel)
    except OSError as error:
        refusals.append(f"{found.own}: {error.strerror}")
        return
    yield from _with_controller(found, found.own, kernel, refusals)


def _is_root_of_all(folder: Path) -> bool:
    """Whether a group of version 2 is the root of the kernel, the only one that has no type."""
    return not (folder / "cgroup.type").exists()


def _with_controller(
    found: Hierarchy, parent: Path, kernel: GroupKernel, refusals: list[str]
) -> Iterator[Path]:
    """Yield `parent` once its children have the memory controller, as all groups above it must have."""
    above = [folder for folder in (parent, *parent.parents) if folder.is_relative_to(found.mount)]
    try:
        for folder in reversed(above):
            enabled = folder / "cgroup.subtree_control"
            if MEMORY not in enabled.read_text().split():
                kernel.write(enabled, f"+{MEMORY}")
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
    found, prefix = hierarchy_of(MEMORY, proc, root), _prefix_of(folder)
    if found is None:
        return []
    return [
        ControlGroup(Path(place) / name, found.version, 0)
        for place, children, _ in os.walk(found.mount)
        for name in children
        if name.startswith(prefix)
    ]
