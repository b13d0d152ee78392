"""Where the files of a server lie: the block device whose speed is limited, and the page cache.

A page of a file counts for the group that reads or writes it first. What Tidemark has copied or initialized
is in its own page cache, where the server would find more of its data than fit into the memory of its group
(Documentation/admin-guide/cgroup-v2.rst, Memory Ownership).
"""

import os
from dataclasses import dataclass
from pathlib import Path

from build.files import flush_file_system, open_checked
from suites.control_groups.declared import LimitError

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


UNCACHED_NOWHERE = {
    "tmpfs": "a tmpfs, whose files are memory themselves",
    "ramfs": "a ramfs, whose files are memory themselves",
    "zfs": "ZFS, whose cache belongs to no control group",
}
"""File systems on which memory cannot be limited: what they are."""

ATTRIBUTED = ("ext2", "ext4", "f2fs", "xfs")
"""File systems whose writes of the page cache count for the group that made the pages dirty, although the
kernel does them later (Documentation/admin-guide/cgroup-v2.rst, Writeback). btrfs has no block device."""


def require_attributed(folder: Path, kind: str) -> None:
    """Raise LimitError if what is written in `folder`, on a file system of a `kind`, counts for no group."""
    if kind not in ATTRIBUTED:
        raise LimitError(
            f"the disk of servers cannot be limited on {kind or 'this file system'}: what the kernel writes "
            "from its page cache counts for no control group there",
            where=str(folder),
            hint="set TIDEMARK_HOME to a folder on ext4 or xfs, or omit --disk",
        )


def require_page_cache(folder: Path, kind: str) -> None:
    """Raise LimitError if files in `folder`, on a file system of a `kind`, do not count as page cache."""
    if kind in UNCACHED_NOWHERE:
        raise LimitError(
            f"memory of servers cannot be limited on {UNCACHED_NOWHERE[kind]}",
            where=str(folder),
            hint="set TIDEMARK_HOME to a folder on a disk; or no memory: neither --memory nor --profile io",
        )


def forget(folder: Path) -> None:
    """Write the files in `folder` to disk, and drop them from the page cache. Raises OSError.

    The server that reads one of them reads it from the disk then, and has it in the page cache of its group.
    """
    flush_file_system(folder)  # pages that are not on the disk yet would stay
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                descriptor = open_checked(Path(place) / name)
            except OSError:
                continue  # no file, or gone
            try:
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(descriptor)
