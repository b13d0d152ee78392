"""Checks of the disk that Tidemark writes to: free space, file system, flush latency."""

import fcntl
import os
import re
import shutil
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from runners.fitness.checked_machine import CheckedMachine
from runners.fitness.finding import Reading, note, ok, unfit
from runners.fitness.kernel import Kernel
from suites.definition import load_suite
from suites.sizing import sizes, this_machine

GOOD_FILE_SYSTEMS = {"ext4", "xfs"}
COPYING_FILE_SYSTEMS = {"btrfs", "zfs", "bcachefs"}
"""Copy-on-write file systems: usable, but not what most servers run on."""

FLUSHES = 20
FLUSHED_BYTES = 8192
SLOW_MEDIAN_MS = 10.0
SLOW_WORST_MS = 200.0
TOO_QUICK_MS = 0.02
"""No device flushes faster than this: the flush ends in memory."""

MIN_FREE = 0.1
"""The share of free space below which allocation and the garbage collection of flash slow down."""

FICLONE = 0x40049409
"""ioctl_ficlone(2), which shares the blocks of another file."""


@dataclass(frozen=True)
class Mount:
    """A line of /proc/mounts."""

    device: str
    folder: str
    kind: str
    options: str


def mounts(text: str) -> list[Mount]:
    """Parse /proc/mounts; later mounts hide earlier ones. Blanks are escaped as `\\040` (fstab(5))."""
    rows = [line.split(" ") for line in text.splitlines()]
    return [
        Mount(_unescaped(row[0]), _unescaped(row[1]), row[2], row[3])
        for row in rows
        if len(row) >= 4 and row[1].startswith("/")
    ]


def mount_of(path: Path, found: Sequence[Mount]) -> Mount | None:
    """Return the mount that holds `path`: the deepest one, the last of equals; None when there is none."""
    holding = [mount for mount in found if path.is_relative_to(mount.folder)]
    return max(reversed(holding), key=lambda mount: len(Path(mount.folder).parts), default=None)


def home_mount(kernel: Kernel, home: Path) -> Mount | None:
    """Return the mount of the home as this process sees it."""
    return mount_of(home.resolve(), mounts(kernel.read("/proc/self/mounts") or ""))


def file_system(machine: CheckedMachine) -> Reading:
    """Check for a file system on a disk. Raises ValueError when no known mount holds the home."""
    found = home_mount(machine.kernel, machine.home)
    if found is None:
        raise ValueError("no mount holds the home")
    reflink = "with reflink" if has_reflink(machine.home) else "no reflink"
    text = f"{found.kind} on {found.device} at {found.folder}, {found.options}; {reflink}"
    if found.kind in GOOD_FILE_SYSTEMS:
        return ok(text)
    if found.kind in COPYING_FILE_SYSTEMS:
        return note(text)
    return unfit(text, "export TIDEMARK_HOME=FOLDER    # one on ext4 or xfs")


def has_reflink(folder: Path) -> bool:
    """Return whether files in `folder` can share blocks, tried with two small ones."""
    try:
        with tempfile.TemporaryFile(dir=folder) as first, tempfile.TemporaryFile(dir=folder) as other:
            first.write(b"x" * 4096)
            first.flush()
            fcntl.ioctl(other.fileno(), FICLONE, first.fileno())
    except OSError:
        return False
    return True


def free_disk(machine: CheckedMachine) -> Reading:
    """Check for enough space for a session of write-heavy in the short profile."""
    usage = shutil.disk_usage(machine.home)
    suite = load_suite("write-heavy")
    needed = sizes(suite, suite.profile("short"), this_machine()).disk_bytes
    text = f"{usage.free / 1e9:.1f} GB of {usage.total / 1e9:.1f} GB free"
    if usage.free < needed:
        return unfit(
            f"{text}; write-heavy, short, needs {needed / 1e9:.1f} GB",
            "export TIDEMARK_HOME=FOLDER    # one with more space",
        )
    return note(text) if usage.free < MIN_FREE * usage.total else ok(text)


def flush_latency(machine: CheckedMachine) -> Reading:
    """Check that flushes are fast, and never slow."""
    return judge_flushes(flush_seconds(machine.home))


def flush_seconds(folder: Path, times: int = FLUSHES) -> list[float]:
    """Return the seconds of single fsyncs of a new file in `folder`, which grows by a page before each."""
    spent = []
    with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
        for _ in range(times):
            file.write(b"x" * FLUSHED_BYTES)
            began = time.perf_counter()
            os.fsync(file.fileno())
            spent.append(time.perf_counter() - began)
    return spent


def judge_flushes(seconds: Sequence[float]) -> Reading:
    """Return the reading for the `seconds` of single flushes."""
    median, worst = 1000 * statistics.median(seconds), 1000 * max(seconds)
    text = f"median {median:.2f} ms, worst {worst:.2f} ms of {len(seconds)} fsyncs"
    if median > SLOW_MEDIAN_MS or worst > SLOW_WORST_MS:
        return unfit(f"{text} (limits {SLOW_MEDIAN_MS:.0f} and {SLOW_WORST_MS:.0f} ms)")
    return note(f"{text}: too fast to have reached a disk") if median < TOO_QUICK_MS else ok(text)


def _unescaped(text: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), text)
