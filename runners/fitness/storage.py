"""Where Tidemark writes: room, file system, and how long a flush takes."""

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

from runners.fitness.finding import Reading, note, ok, unfit
from runners.fitness.kernel import Kernel
from runners.fitness.place import Place
from suites.definition import load_suite
from suites.sizing import sizes, this_machine

GOOD_FILE_SYSTEMS = {"ext4", "xfs"}
COPYING_FILE_SYSTEMS = {"btrfs", "zfs", "bcachefs"}
"""Real ones that write every page anew: measurable, but not what most servers run on."""

FLUSHES = 20
FLUSHED_BYTES = 8192
SLOW_MEDIAN_MS = 10.0
SLOW_WORST_MS = 200.0
TOO_QUICK_MS = 0.02
"""No device is written so quickly: the flush ends in memory."""

LEAST_FREE = 0.1
"""Share of a file system below which allocation slows down, as the garbage collection of flash does."""

FICLONE = 0x40049409
"""ioctl_ficlone(2): share the blocks of another file."""


@dataclass(frozen=True)
class Mount:
    """A line of /proc/mounts."""

    device: str
    folder: str
    kind: str
    options: str


def mounts(text: str) -> list[Mount]:
    """The lines of /proc/mounts, later ones above earlier ones. Blanks are written as `\\040` (fstab(5))."""
    rows = [line.split(" ") for line in text.splitlines()]
    return [
        Mount(_unescaped(row[0]), _unescaped(row[1]), row[2], row[3])
        for row in rows
        if len(row) >= 4 and row[1].startswith("/")
    ]


def mount_of(path: Path, found: Sequence[Mount]) -> Mount | None:
    """The mount that `path` lies on: the deepest one, of equals the last."""
    holding = [each for each in found if path.is_relative_to(each.folder)]
    return max(reversed(holding), key=lambda each: len(Path(each.folder).parts), default=None)


def home_mount(kernel: Kernel, home: Path) -> Mount | None:
    """The mount of the home as this process sees it."""
    return mount_of(home.resolve(), mounts(kernel.read("/proc/self/mounts") or ""))


def file_system(place: Place) -> Reading:
    """A file system of a disk. Raises ValueError when the home lies on no mount that is known."""
    found = home_mount(place.kernel, place.home)
    if found is None:
        raise ValueError("no mount holds the home")
    reflink = "with reflink" if has_reflink(place.home) else "no reflink"
    text = f"{found.kind} on {found.device} at {found.folder}, {found.options}; {reflink}"
    if found.kind in GOOD_FILE_SYSTEMS:
        return ok(text)
    if found.kind in COPYING_FILE_SYSTEMS:
        return note(text)
    return unfit(text, "export TIDEMARK_HOME=FOLDER    # one on ext4 or xfs")


def has_reflink(folder: Path) -> bool:
    """Whether files in `folder` can share blocks: tried on two small ones."""
    try:
        with tempfile.TemporaryFile(dir=folder) as one, tempfile.TemporaryFile(dir=folder) as other:
            one.write(b"x" * 4096)
            one.flush()
            fcntl.ioctl(other.fileno(), FICLONE, one.fileno())
    except OSError:
        return False
    return True


def free_disk(place: Place) -> Reading:
    """Room for a session of write-heavy in the short profile."""
    usage = shutil.disk_usage(place.home)
    suite = load_suite("write-heavy")
    needed = sizes(suite, suite.profile("short"), this_machine()).disk_bytes
    text = f"{usage.free / 1e9:.1f} GB of {usage.total / 1e9:.1f} GB free"
    if usage.free < needed:
        return unfit(
            f"{text}; write-heavy, short, needs {needed / 1e9:.1f} GB",
            "export TIDEMARK_HOME=FOLDER    # one with more room",
        )
    return note(text) if usage.free < LEAST_FREE * usage.total else ok(text)


def flush_latency(place: Place) -> Reading:
    """A disk that answers soon, and every time."""
    return judge_flushes(flush_seconds(place.home))


def flush_seconds(folder: Path, times: int = FLUSHES) -> list[float]:
    """How long each fsync of a small new file in `folder` takes that has grown by one page before."""
    spent = []
    with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
        for _ in range(times):
            file.write(b"x" * FLUSHED_BYTES)
            began = time.perf_counter()
            os.fsync(file.fileno())
            spent.append(time.perf_counter() - began)
    return spent


def judge_flushes(seconds: Sequence[float]) -> Reading:
    """What `seconds` of single flushes say of the disk."""
    median, worst = 1000 * statistics.median(seconds), 1000 * max(seconds)
    text = f"median {median:.2f} ms, worst {worst:.2f} ms of {len(seconds)} fsyncs"
    if median > SLOW_MEDIAN_MS or worst > SLOW_WORST_MS:
        return unfit(f"{text} (limits {SLOW_MEDIAN_MS:.0f} and {SLOW_WORST_MS:.0f} ms)")
    return note(f"{text}: too quick to have reached a disk") if median < TOO_QUICK_MS else ok(text)


def _unescaped(text: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), text)
