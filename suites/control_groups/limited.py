"""What a control group limits: memory, or the speed of a disk; which files of the kernel say so.

They are described in Documentation/admin-guide/cgroup-v1/memory.rst and blkio-controller.rst, and in
Documentation/admin-guide/cgroup-v2.rst.
"""

import errno
import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Protocol

from build.programs.control_groups import BLKIO, IO, MEMORY
from suites.control_groups.devices import BlockDevice
from suites.control_groups.disk_speed import DiskSpeed, DiskUse
from suites.control_groups.kernel import GroupKernel
from suites.control_groups.limits import memory_text


class GroupLimit(Protocol):
    """A limit of one controller."""

    option: ClassVar[str]
    """The option of a command line that asks for it."""
    controllers: ClassVar[Mapping[int, tuple[str, ...]]]
    """By version of control groups, the controller that has it, and others that it needs."""
    without: ClassVar[str]
    """What to do on a kernel without the controller."""

    def set(self, folder: Path, version: int, kernel: GroupKernel) -> None:
        """Set the limit of the group in a folder. Raises OSError."""

    def lift(self, folder: Path, version: int, kernel: GroupKernel) -> None:
        """Let the group in a folder have as much as there is. Raises OSError."""


@dataclass(frozen=True)
class MemoryLimit:
    """So many bytes of memory, page cache included; no swap, which would be memory of another speed."""

    amount: int

    option: ClassVar[str] = "--memory"
    controllers: ClassVar[Mapping[int, tuple[str, ...]]] = {1: (MEMORY,), 2: (MEMORY,)}
    without: ClassVar[str] = "boot its kernel with cgroup_enable=memory"

    def set(self, folder: Path, version: int, kernel: GroupKernel) -> None:
        """Set the limit of the group in a folder. Raises OSError."""
        limit, swapped, no_swap, _ = _MEMORY_FILES[version]
        kernel.write(folder / limit, str(self.amount))
        # Without swap in the kernel, the file is missing. That of version 1 is of memory and swap together.
        if (folder / swapped).exists():
            kernel.write(folder / swapped, no_swap or str(self.amount))

    def lift(self, folder: Path, version: int, kernel: GroupKernel) -> None:
        """Let the group in a folder have as much memory as there is. Raises OSError."""
        limit, swapped, no_swap, unlimited = _MEMORY_FILES[version]
        if not no_swap and (folder / swapped).exists():  # which is never less than the limit of memory alone
            kernel.write(folder / swapped, unlimited)
        kernel.write(folder / limit, unlimited)

    def __str__(self) -> str:
        return f"{memory_text(self.amount)} of memory"


_MEMORY_FILES = {
    1: ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes", "", "-1"),
    2: ("memory.max", "memory.swap.max", "0", "max"),
}
"""By version: the file of the limit, that of the swap, what is written there for none, and no limit."""


@dataclass(frozen=True)
class DiskLimit:
    """So many requests and bytes per second, of reads and of writes each, of one device.

    In version 2 the writes of the page cache count too, for which the kernel needs the memory controller; in
    version 1 they are those of the kernel's own threads.
    """

    device: BlockDevice
    speed: DiskSpeed

    option: ClassVar[str] = "--disk"
    controllers: ClassVar[Mapping[int, tuple[str, ...]]] = {1: (BLKIO,), 2: (IO, MEMORY)}
    without: ClassVar[str] = "use a kernel with CONFIG_BLK_CGROUP"

    def set(self, folder: Path, version: int, kernel: GroupKernel) -> None:
        """Set the limit of the group in a folder. Raises OSError."""
        self._write(self.speed, folder, version, kernel)

    def lift(self, folder: Path, version: int, kernel: GroupKernel) -> None:
        """Let the group in a folder use the device without a limit. Raises OSError."""
        self._write(DiskSpeed(), folder, version, kernel)

    def use(self, folder: Path, version: int) -> DiskUse:
        """Return what the group in a folder has read and written of the device. Raises OSError."""
        if version == 2:
            used = _counts("=", self._lines(folder / "io.stat"))
            requests, amounts = (used["rios"], used["wios"]), (used["rbytes"], used["wbytes"])
        else:
            requests, amounts = (
                (used["Read"], used["Write"])
                for name in ("io_serviced", "io_service_bytes")
                for used in [_counts(" ", self._lines(folder / f"blkio.throttle.{name}"))]
            )
        return DiskUse(self.speed, requests, amounts)

    def _lines(self, file: Path) -> list[str]:
        """Return the lines of a file about the device, without its number."""
        start = f"{self.device.number} "
        return [line.removeprefix(start) for line in file.read_text().splitlines() if line.startswith(start)]

    def _write(self, speed: DiskSpeed, folder: Path, version: int, kernel: GroupKernel) -> None:
        rate, iops = speed.bytes_per_second, speed.iops
        if version == 2:
            most = (("rbps", rate), ("wbps", rate), ("riops", iops), ("wiops", iops))
            words = (f"{name}={'max' if value is None else value}" for name, value in most)
            self._tell(folder / "io.max", " ".join(words), kernel)
            return
        for way in ("read", "write"):
            for unit, value in (("bps", rate), ("iops", iops)):
                # Zero is no limit.
                self._tell(folder / f"blkio.throttle.{way}_{unit}_device", str(value or 0), kernel)

    def _tell(self, file: Path, text: str, kernel: GroupKernel) -> None:
        if not file.exists():  # which the kernel would call a lack of permission
            raise OSError(errno.ENOENT, f"no {file.name}: the kernel has no CONFIG_BLK_DEV_THROTTLING")
        try:
            kernel.write(file, f"{self.device.number} {text}")
        except OSError as error:
            reason = os.strerror(error.errno or errno.EIO)
            raise OSError(error.errno, f"{reason} (limiting {self.device.name})") from error

    def __str__(self) -> str:
        return f"a disk of {self.speed}"


def _counts(between: str, lines: Sequence[str]) -> Counter[str]:
    """Return the counts of lines such as `rios=12 wios=3`, or `Read 12`; 0 of what they do not have."""
    found = re.findall(rf"(\w+){between}([0-9]{{1,20}})", "\n".join(lines))
    return Counter({name: int(value) for name, value in found})
