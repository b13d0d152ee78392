"""The block device behind a folder, whose speed a control group can limit."""

import os
from dataclasses import dataclass
from pathlib import Path

from suites.control_groups.limits import LimitError

SYS = Path("/sys")

_NO_DEVICE = {
    "overlay": "overlay, the file system of a container, whose files lie on another one",
    "tmpfs": "a tmpfs, whose files are memory themselves",
    "ramfs": "a ramfs, whose files are memory themselves",
    "btrfs": "btrfs, which distributes its files to devices itself",
    "zfs": "ZFS, which distributes its files to devices itself",
}
"""File systems without a block device of their own: what they are."""


@dataclass(frozen=True)
class BlockDevice:
    """A whole disk, or one that the device mapper makes of others."""

    number: str
    """Its major and minor number, such as `254:0`."""
    name: str
    """`vda`, or `dm-0 (vg-data)` of the device mapper."""


def device_of(folder: Path, kind: str = "this file system", sys: Path = SYS) -> BlockDevice:
    """Return the device of the file system, of a `kind`, on which `folder` lies, or is going to.

    Of a partition it is the whole disk, which is what the kernel limits; of the device mapper the mapped
    device itself. Raises LimitError where there is no such device.
    """
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    status = existing.stat().st_dev
    return device_of_number(os.major(status), os.minor(status), folder, kind, sys)


def device_of_number(major: int, minor: int, folder: Path, kind: str, sys: Path) -> BlockDevice:
    """Return the device with the numbers of the file system of `folder`. Raises LimitError."""
    if major == 0:  # an anonymous device: files are elsewhere
        raise LimitError(
            f"the disk of servers cannot be limited on {_NO_DEVICE.get(kind, kind)}: it has no block device",
            where=str(folder),
            hint="set TIDEMARK_HOME to a folder on ext4 or xfs, or omit --disk",
        )
    number = f"{major}:{minor}"
    try:
        described = (sys / "dev/block" / number).resolve(strict=True)
        if (described / "partition").exists():
            described = described.parent
            number = (described / "dev").read_text().strip()
    except OSError as error:
        raise LimitError(
            f"the disk of servers cannot be limited: /sys does not show their device, {number}",
            where=str(folder),
            hint="mount /sys in this container, or omit --disk",
        ) from error
    return BlockDevice(number, _name(described))


def _name(described: Path) -> str:
    mapped = described / "dm/name"
    return f"{described.name} ({mapped.read_text().strip()})" if mapped.exists() else described.name
