"""What a control group limits: memory, or the speed of a disk; which files of the kernel say so.

They are described in Documentation/admin-guide/cgroup-v2.rst.
"""

import errno
import os
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from suites.control_groups.devices import BlockDevice
from suites.control_groups.disk_speed import DiskSpeed, DiskUse
from suites.control_groups.kernel import GroupKernel
from suites.control_groups.limits import memory_text

MEMORY, IO = "memory", "io"
"""Controllers."""


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
