"""What the disk behind a folder does, measured for a second with direct reads and writes."""

import contextlib
import mmap
import os
import random
import tempfile
import threading
import time
from pathlib import Path

from suites.control_groups.declared import DiskSpeed

SECONDS = 0.5
"""How long is written, and then how long is read."""

WRITTEN, MAX_WRITTEN = 2**20, 256 * 2**20
"""The bytes of a write, and of all of them at most."""

READ = 4096
"""The bytes of a read."""

READERS = 16
"""How many reads are asked for at the same time: enough for any disk that a server would be given less of."""

BUSY_SHARE = 0.8
"""The share of a core beyond which the reads are limited by this program, not by the disk."""


def probe(folder: Path) -> DiskSpeed:
    """Return the random reads per second, and the bytes per second written, of the disk behind `folder`.

    What cannot be measured is None: without direct I/O both are, and reads when a core was busy asking for
    them. Takes twice SECONDS.
    """
    with tempfile.NamedTemporaryFile(dir=folder, prefix="probe-") as file:
        try:
            descriptor = os.open(file.name, os.O_RDWR | os.O_DIRECT | os.O_CLOEXEC)
        except OSError:
            return DiskSpeed()
        try:
            size, rate = _write(descriptor)
            return DiskSpeed(_reads_per_second(descriptor, size), rate)
        except OSError:
            return DiskSpeed()
        finally:
            os.close(descriptor)


def slower_than(speed: DiskSpeed, found: DiskSpeed) -> str:
    """Return what a disk was found to do where that is less than `speed`; empty where it is not."""
    parts = []
    if speed.iops is not None and found.iops is not None and found.iops < speed.iops:
        parts.append(f"{found.iops} random reads per second")
    rate, done = speed.bytes_per_second, found.bytes_per_second
    if rate is not None and done is not None and done < rate:
        parts.append(f"{done / 10**6:.0f} MB/s of writes")
    return " and ".join(parts)


def _write(descriptor: int) -> tuple[int, int]:
    """Return the bytes written one after the other, and how many that were per second."""
    with mmap.mmap(-1, WRITTEN) as page:  # aligned, as direct I/O has to be
        page.write(random.randbytes(WRITTEN))
        size, began = 0, time.monotonic()
        while size < MAX_WRITTEN and time.monotonic() < began + SECONDS:
            size += os.pwritev(descriptor, [page], size)
        return size, int(size / (time.monotonic() - began))


def _reads_per_second(descriptor: int, size: int) -> int | None:
    """Return the random reads per second of the `size` bytes that are written; None if a core was busy."""
    done = [0] * READERS
    began, used = time.monotonic(), time.process_time()

    def read(number: int) -> None:
        choose = random.Random(number)
        with mmap.mmap(-1, READ) as page, contextlib.suppress(OSError):
            while time.monotonic() < began + SECONDS:
                os.preadv(descriptor, [page], choose.randrange(size // READ) * READ)
                done[number] += 1

    readers = [threading.Thread(target=read, args=(number,), daemon=True) for number in range(READERS)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    seconds = time.monotonic() - began
    if time.process_time() - used > BUSY_SHARE * seconds:
        return None
    return int(sum(done) / seconds)
