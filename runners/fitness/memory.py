"""Memory: huge pages that the kernel makes by itself, swap, and what is free."""

import re
from collections.abc import Mapping

from runners.fitness.finding import FIX, NOT_VISIBLE, Reading, note, ok, unfit
from runners.fitness.kernel import Kernel
from runners.fitness.place import Place

THP = "/sys/kernel/mm/transparent_hugepage/enabled"
THP_DEFRAG = "/sys/kernel/mm/transparent_hugepage/defrag"
SWAPPINESS = "/proc/sys/vm/swappiness"
SWAPS = "/proc/swaps"
MEMINFO = "/proc/meminfo"

MOST_SWAPPINESS = 10
"""Above it the kernel swaps out what a server has cached while there is still page cache to give up."""

LEAST_AVAILABLE = 0.5
"""Share of memory: the short profile of write-heavy gives so much to a server's buffer cache."""

GIB_IN_KIB = 1024**2


def thp_setting(kernel: Kernel) -> str:
    """`madvise, defrag madvise`; else NOT_VISIBLE."""
    enabled, defrag = kernel.choice(THP), kernel.choice(THP_DEFRAG)
    if enabled is None:
        return NOT_VISIBLE
    return enabled if defrag is None else f"{enabled}, defrag {defrag}"


def swap_setting(kernel: Kernel) -> str:
    """`off`, or `on, swappiness 60`."""
    if not _swap_kib(kernel)[0]:
        return "off"
    return f"on, swappiness {kernel.number(SWAPPINESS)}"


def huge_pages(place: Place) -> Reading:
    """None but for who asks: neither engine does."""
    found = thp_setting(place.kernel)
    if found == NOT_VISIBLE:
        return note(found)
    return unfit(found, FIX) if "always" in re.split(r"[, ]+", found) else ok(found)


def swap(place: Place) -> Reading:
    """None, or unused and shunned."""
    size, used = _swap_kib(place.kernel)
    if not size:
        return ok("none")
    text = f"{size / GIB_IN_KIB:.1f} GiB, {used / GIB_IN_KIB:.1f} GiB of it used"
    swappiness = place.kernel.number(SWAPPINESS)
    text += f", swappiness {swappiness}"
    if used:
        return unfit(text, "swapoff --all")
    if swappiness is None or swappiness > MOST_SWAPPINESS:
        return unfit(text, FIX)
    return note(text, "swapoff --all")


def available(place: Place) -> Reading:
    """Enough for a server's buffer cache. Raises ValueError where the kernel does not say."""
    sizes = memory_kib(place.kernel.read(MEMINFO) or "")
    if not sizes.get("MemTotal") or "MemAvailable" not in sizes:
        raise ValueError("no MemTotal and MemAvailable")
    share = sizes["MemAvailable"] / sizes["MemTotal"]
    text = (
        f"{sizes['MemAvailable'] / GIB_IN_KIB:.1f} GiB of {sizes['MemTotal'] / GIB_IN_KIB:.1f} GiB available"
    )
    return unfit(text, "ps aux --sort -rss | head") if share < LEAST_AVAILABLE else ok(text)


def memory_kib(meminfo: str) -> Mapping[str, int]:
    """Lines `Name:  123 kB` of /proc/meminfo."""
    return {name: int(size) for name, size in re.findall(r"^(\w+):\s+(\d+) kB$", meminfo, re.MULTILINE)}


def swaps_kib(swaps: str) -> tuple[int, int]:
    """Size and used part of all swap areas, in KiB, from /proc/swaps: name, type, size, used, priority."""
    rows = [line.rsplit(None, 4) for line in swaps.splitlines()[1:]]
    areas = [row for row in rows if len(row) == 5]
    return sum(int(row[2]) for row in areas), sum(int(row[3]) for row in areas)


def _swap_kib(kernel: Kernel) -> tuple[int, int]:
    return swaps_kib(kernel.read(SWAPS) or "")
