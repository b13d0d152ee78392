"""The page cache of a server's files, which counts for the group that reads or writes a page first.

What Tidemark has copied or initialized is in its own page cache, where the server would find more of its data
than fit into the memory of its group (Documentation/admin-guide/cgroup-v2.rst, Memory Ownership).
"""

import os
from pathlib import Path

from build.files import flush_file_system, open_checked
from suites.control_groups.limits import LimitError

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
