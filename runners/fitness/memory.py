"""Checks of memory: transparent huge pages, swap, proactive reclaim, available memory."""

import re
from collections.abc import Mapping, Sequence

from build.control_groups import memory_limit
from runners.fitness.checked_machine import CheckedMachine
from runners.fitness.finding import FIX, NOT_VISIBLE, Reading, note, ok, unfit
from runners.fitness.kernel import Kernel

THP = "/sys/kernel/mm/transparent_hugepage/enabled"
THP_DEFRAG = "/sys/kernel/mm/transparent_hugepage/defrag"
SWAPPINESS = "/proc/sys/vm/swappiness"
SWAPS = "/proc/swaps"
MEMINFO = "/proc/meminfo"

MAX_SWAPPINESS = 10
"""Above this the kernel swaps out the cache of a server while there is page cache that could be dropped."""

MIN_AVAILABLE = 0.5
"""The share of memory that the short profile of write-heavy uses for the buffer cache of a server."""

GIB_IN_KIB = 1024**2

KDAMONDS = "/sys/kernel/mm/damon/admin/kdamonds/*"
RECLAIMING = {"pageout", "cold", "lru_deprio"}
"""The actions of DAMON that take memory back, or have it taken back first; the others keep data in memory."""

RECLAIMING_MODULES = ("damon_reclaim", "damon_lru_sort")


def thp_setting(kernel: Kernel) -> str:
    """Return the setting as `madvise, defrag madvise`, or NOT_VISIBLE."""
    enabled, defrag = kernel.choice(THP), kernel.choice(THP_DEFRAG)
    if enabled is None:
        return NOT_VISIBLE
    return enabled if defrag is None else f"{enabled}, defrag {defrag}"


def swap_setting(kernel: Kernel) -> str:
    """Return `off`, or `on, swappiness 60`."""
    if not _swap_kib(kernel)[0]:
        return "off"
    return f"on, swappiness {kernel.number(SWAPPINESS)}"


def huge_pages(machine: CheckedMachine) -> Reading:
    """Check that huge pages are only used on request: neither engine requests them."""
    found = thp_setting(machine.kernel)
    if found == NOT_VISIBLE:
        return note(found)
    return unfit(found, FIX) if "always" in re.split(r"[, ]+", found) else ok(found)


def swap(machine: CheckedMachine) -> Reading:
    """Check that there is no swap, or that it is unused with a low swappiness."""
    size, used = _swap_kib(machine.kernel)
    if not size:
        return ok("none")
    text = f"{size / GIB_IN_KIB:.1f} GiB, {used / GIB_IN_KIB:.1f} GiB of it used"
    swappiness = machine.kernel.number(SWAPPINESS)
    text += f", swappiness {swappiness}"
    if used:
        return unfit(text, "swapoff --all")
    if swappiness is None or swappiness > MAX_SWAPPINESS:
        return unfit(text, FIX)
    return note(text, "swapoff --all")


def proactive_reclaim(machine: CheckedMachine) -> Reading:
    """Check that DAMON takes no memory back that nobody else asks for. What it does only root may read."""
    kernel = machine.kernel
    if found := reclaiming(kernel):
        return unfit("; ".join(found.values()), "; ".join(found))
    unreadable = [
        f"kdamond {_number_of(folder)}"
        for folder in _kdamonds(kernel)
        if kernel.read(f"{folder}/state") is None
    ]
    if unreadable:
        return note(
            f"{', '.join(unreadable)} may be at work: only root reads it", look="sudo ./tidemark check"
        )
    return ok("none")


def reclaiming(kernel: Kernel) -> Mapping[str, str]:
    """Return what of DAMON takes memory back, as far as it may be read, by the command that turns it off."""
    found: dict[str, str] = {}
    for folder in _kdamonds(kernel):
        if kernel.read(f"{folder}/state") == "on":
            schemes = kernel.names(f"{folder}/contexts/*/schemes/*/action")
            actions = {kernel.read(scheme) or "" for scheme in schemes} & RECLAIMING
            if actions:
                text = f"{', '.join(sorted(actions))} by kdamond {_number_of(folder)}"
                found[f"echo off > {folder}/state"] = text
    for module in RECLAIMING_MODULES:
        enabled = f"/sys/module/{module}/parameters/enabled"
        if kernel.read(enabled) == "Y":
            found[f"echo N > {enabled}"] = module
    return found


def _kdamonds(kernel: Kernel) -> Sequence[str]:
    """Return the folders of the kernel threads of DAMON."""
    return [folder for folder in kernel.names(KDAMONDS) if _number_of(folder).isdecimal()]


def _number_of(folder: str) -> str:
    return folder.rpartition("/")[2]


def available(machine: CheckedMachine) -> Reading:
    """Check for enough available memory. Raises ValueError when the kernel does not report it."""
    sizes = memory_kib(machine.kernel.read(MEMINFO) or "")
    if not sizes.get("MemTotal") or "MemAvailable" not in sizes:
        raise ValueError("no MemTotal and MemAvailable")
    limit = memory_limit(machine.kernel.path("/proc"), machine.kernel.root)
    total = sizes["MemTotal"] if limit is None else min(sizes["MemTotal"], limit // 1024)
    free = min(sizes["MemAvailable"], total)
    share = free / total
    text = f"{free / GIB_IN_KIB:.1f} GiB of {total / GIB_IN_KIB:.1f} GiB available"
    text += " (limit of its control group)" if total < sizes["MemTotal"] else ""
    return unfit(text, look="ps aux --sort -rss | head") if share < MIN_AVAILABLE else ok(text)


def memory_kib(meminfo: str) -> Mapping[str, int]:
    """Parse the lines `Name:  123 kB` of /proc/meminfo into KiB by name."""
    return {name: int(size) for name, size in re.findall(r"^(\w+):\s+(\d+) kB$", meminfo, re.MULTILINE)}


def swaps_kib(swaps: str) -> tuple[int, int]:
    """Return size and used part of all swap areas in KiB: the third and fourth column of /proc/swaps."""
    rows = [line.rsplit(None, 4) for line in swaps.splitlines()[1:]]
    areas = [row for row in rows if len(row) == 5]
    return sum(int(row[2]) for row in areas), sum(int(row[3]) for row in areas)


def _swap_kib(kernel: Kernel) -> tuple[int, int]:
    return swaps_kib(kernel.read(SWAPS) or "")
