"""A control group for one server, with less memory, or a slower disk, than the machine has.

The files of the kernel are described in Documentation/admin-guide/cgroup-v2.rst.
"""

import contextlib
import errno
import hashlib
import os
import re
import signal
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from build.control_groups import (
    PROC,
    ROOT,
    OwnGroup,
    controllers_of_version_1,
    number_in,
    numbers_in,
    own_group,
    text_in,
)
from suites.control_groups.declared import DiskSpeed, DiskUse, LimitError, MemoryUse, memory_text
from suites.control_groups.storage import BlockDevice

MEMORY, IO = "memory", "io"
"""Controllers."""

PREFIX = "tidemark-"
"""The names of all groups that Tidemark makes begin with it."""

ASIDE = f"{PREFIX}itself"
"""The group into which Tidemark moves, where its own has to be free of processes."""

REMOVE_SECONDS = 10.0
"""How long a group may refuse to be removed, as it does while its last process ends."""

KILLED = "killed by the kernel: it needed more memory than its limit,"
"""What a failure says before the limit, when the kernel has killed a process of the group."""

_ENTER = 'echo 0 > "$1" || exit 1; shift; exec "$@"'
"""Moves the shell itself, which 0 stands for, and becomes the program. Run before the user is changed: the
server's user may not write into the group."""

_WITHOUT = {MEMORY: "boot its kernel with cgroup_enable=memory", IO: "use a kernel with CONFIG_BLK_CGROUP"}
"""What to do on a kernel without a controller."""

_VERSION_1 = frozenset({"memory", "blkio"})
"""The controllers of memory and disks, as a machine has them that has version 1 of control groups."""


class GroupKernel:
    """The file system of control groups; a test has one of its own."""

    def make(self, folder: Path) -> None:
        """Make a group, in which the kernel puts its files. Raises OSError."""
        folder.mkdir()

    def remove(self, folder: Path) -> None:
        """Remove a group without processes and children. Raises OSError."""
        folder.rmdir()

    def write(self, file: Path, text: str) -> None:
        """Write into a file of a group. Raises OSError when the kernel refuses it."""
        file.write_text(text)


KERNEL = GroupKernel()
"""That of this machine."""


@dataclass(frozen=True)
class MemoryLimit:
    """So many bytes of memory, page cache included; no swap, which would be memory of another speed."""

    amount: int

    option: ClassVar[str] = "--memory"
    """The option of a command line that asks for it."""
    controllers: ClassVar[tuple[str, ...]] = (MEMORY,)
    """The controllers that it needs."""

    def set(self, folder: Path, kernel: GroupKernel, *, is_on: bool) -> None:
        """Limit the group in a folder, or let it have as much as there is. Raises OSError."""
        kernel.write(folder / "memory.max", str(self.amount) if is_on else "max")
        swapped = folder / "memory.swap.max"
        if swapped.exists():  # it is missing without swap in the kernel
            kernel.write(swapped, "0")

    def __str__(self) -> str:
        return f"{memory_text(self.amount)} of memory"


@dataclass(frozen=True)
class DiskLimit:
    """So many requests and bytes per second, of reads and of writes each, of one device.

    The writes of the page cache count too, for which the kernel needs the memory controller.
    """

    device: BlockDevice
    speed: DiskSpeed

    option: ClassVar[str] = "--disk"
    """The option of a command line that asks for it."""
    controllers: ClassVar[tuple[str, ...]] = (IO, MEMORY)
    """The controllers that it needs."""

    def set(self, folder: Path, kernel: GroupKernel, *, is_on: bool) -> None:
        """Limit the group in a folder, or let it use the device without a limit. Raises OSError."""
        file, speed = folder / "io.max", self.speed if is_on else DiskSpeed()
        if not file.exists():  # which the kernel would call a lack of permission
            raise OSError(errno.ENOENT, f"no {file.name}: the kernel has no CONFIG_BLK_DEV_THROTTLING")
        rate, iops = speed.bytes_per_second, speed.iops
        most = (("rbps", rate), ("wbps", rate), ("riops", iops), ("wiops", iops))
        words = " ".join(f"{name}={'max' if value is None else value}" for name, value in most)
        try:
            kernel.write(file, f"{self.device.number} {words}")
        except OSError as error:
            reason = os.strerror(error.errno or errno.EIO)
            raise OSError(error.errno, f"{reason} (limiting {self.device.name})") from error

    def use(self, folder: Path) -> DiskUse:
        """Return what the group in a folder has read and written of the device. Raises OSError."""
        lines = (folder / "io.stat").read_text().splitlines()
        ours = " ".join(line for line in lines if line.startswith(f"{self.device.number} "))
        counts = re.findall(r"(\w+)=([0-9]{1,20})", ours)
        used = Counter({name: int(value) for name, value in counts})
        return DiskUse(self.speed, (used["rios"], used["wios"]), (used["rbytes"], used["wbytes"]))

    def __str__(self) -> str:
        return f"a disk of {self.speed}"


GroupLimit = MemoryLimit | DiskLimit


@dataclass(frozen=True)
class ControlGroup:
    """A group that exists."""

    folder: Path
    limits: tuple[GroupLimit, ...] = ()
    kernel: GroupKernel = KERNEL

    def entered_by(self, argv: Sequence[str]) -> list[str]:
        """Return the command line that enters the group and becomes `argv` there, in the same process."""
        return ["/bin/sh", "-c", _ENTER, "sh", str(self.folder / "cgroup.procs"), *argv]

    def limit(self, *, is_on: bool) -> None:
        """Set the limits, or lift them for a while. Raises LimitError."""
        for limit in self.limits:
            try:
                limit.set(self.folder, self.kernel, is_on=is_on)
            except OSError as error:
                raise LimitError(
                    f"the kernel refuses a server {limit}: {error.strerror}",
                    where=str(self.folder),
                    hint=f"see the kernel's log (dmesg), or omit {limit.option}",
                ) from error

    def kills(self) -> int:
        """Return how many processes of the group the kernel has killed; 0 if it does not say.

        Without a limit of memory these are none of the group's doing.
        """
        if self._memory is None:
            return 0
        return numbers_in(self.folder / "memory.events").get("oom_kill", 0)

    def use(self) -> MemoryUse | None:
        """Return the use of its memory, 0 if the kernel does not say; None without a limit of it."""
        if self._memory is None:
            return None
        return MemoryUse(number_in(self.folder / "memory.current") or 0, self._memory.amount)

    def disk_use(self) -> DiskUse | None:
        """Return what it has read and written of a disk with a limit; None without one, or without counts."""
        for limit in self.limits:
            if isinstance(limit, DiskLimit):
                with contextlib.suppress(OSError):
                    return limit.use(self.folder)
        return None

    def killed(self) -> str:
        """Return the sentence about a process that the kernel has killed."""
        return KILLED if self._memory is None else f"{KILLED} {memory_text(self._memory.amount)}"

    def remove(self) -> None:
        """Kill what still runs in the group, and remove it. Raises LimitError."""
        deadline = time.monotonic() + REMOVE_SECONDS
        while True:
            for pid in text_in(self.folder / "cgroup.procs").split():
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

    @property
    def _memory(self) -> MemoryLimit | None:
        return next((limit for limit in self.limits if isinstance(limit, MemoryLimit)), None)


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
    controllers = list(dict.fromkeys(name for limit in limits for name in limit.controllers))
    own = _group_with(controllers, limits, proc, root)
    refusals: list[str] = []
    for parent in _parents(own, controllers, kernel, refusals):
        made = ControlGroup(parent / name, tuple(limits), kernel)
        try:
            with contextlib.suppress(FileExistsError):
                kernel.make(made.folder)
            for limit in limits:
                limit.set(made.folder, kernel, is_on=True)
        except OSError as error:
            refusals.append(f"{made.folder}: {error.strerror}")
            with contextlib.suppress(OSError):
                kernel.remove(made.folder)
        else:
            return made
    raise _refused(refusals[-1], _way_out(is_root=os.geteuid() == 0), limits)


def _group_with(controllers: Sequence[str], limits: Sequence[GroupLimit], proc: Path, root: Path) -> OwnGroup:
    """Return our own group, on a machine whose groups have the controllers. Raises LimitError."""
    own = own_group(proc, root)
    known = () if own is None else text_in(own.mount / "cgroup.controllers").split()
    missing = [name for name in controllers if name not in known]
    if own is not None and not missing:
        return own
    if _VERSION_1 & controllers_of_version_1(proc):
        raise _refused(
            "those of this machine are of version 1, and version 2 is needed",
            "boot it with the unified hierarchy (systemd.unified_cgroup_hierarchy=1), or use a distribution "
            "that has it: Debian 11+, Ubuntu 22.04+, RHEL 9+",
            limits,
        )
    if own is None:
        raise _refused("this machine has no file system of control groups", "mount it (cgroups(7))", limits)
    raise _refused(f"this machine has no {missing[0]} controller", _WITHOUT[missing[0]], limits)


def _refused(reason: str, way_out: str, limits: Sequence[GroupLimit]) -> LimitError:
    options = " and ".join(limit.option for limit in limits)
    return LimitError(
        f"no control group can be made for a server with {' and '.join(map(str, limits))}: {reason}",
        where=options,
        hint=f"{way_out}; or declare none: no {options}, and no profile with it",
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
    own: OwnGroup, controllers: Sequence[str], kernel: GroupKernel, refusals: list[str]
) -> Iterator[Path]:
    """Yield the groups below which a group may be made, the nearest first; `refusals` get what refused.

    A group whose children have controllers has no processes itself, unless it is the root of all: our own
    becomes one when we step aside, into a child of it, which is done last.
    """
    for parent in own.path:
        if parent != own.folder or _is_root_of_all(parent):
            yield from _with_controllers(own, parent, controllers, kernel, refusals)
    try:
        _step_aside(own.folder, kernel)
    except OSError as error:
        refusals.append(f"{own.folder}: {error.strerror}")
        return
    yield from _with_controllers(own, own.folder, controllers, kernel, refusals)


def _is_root_of_all(folder: Path) -> bool:
    """Whether a group is the root of the kernel, the only one that has no type."""
    return not (folder / "cgroup.type").exists()


def _with_controllers(
    own: OwnGroup, parent: Path, controllers: Sequence[str], kernel: GroupKernel, refusals: list[str]
) -> Iterator[Path]:
    """Yield `parent` once its children have the controllers, as all groups above it must have."""
    above = [folder for folder in (parent, *parent.parents) if folder.is_relative_to(own.mount)]
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
    prefix, own = _prefix_of(folder), own_group(proc, root)
    return [
        ControlGroup(Path(place) / name)
        for place, children, _ in (() if own is None else os.walk(own.mount))
        for name in children
        if name.startswith(prefix)
    ]
