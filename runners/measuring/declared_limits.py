"""Whether servers can have the memory and disk that a session declares for them."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from build.home import Home
from build.progress import Progress
from build.version import Version
from runners.fitness.disk_probe import probe, slower_than
from runners.fitness.kernel import Kernel
from runners.fitness.memory import reclaiming
from runners.fitness.storage import home_mount
from runners.measuring.request import Request
from suites.control_groups.declared import DiskSpeed, LimitError, memory_text
from suites.control_groups.group import PREFIX, DiskLimit, GroupLimit, MemoryLimit, make_group
from suites.control_groups.storage import device_of, require_attributed, require_page_cache
from suites.engines import engine_of, own_sizes
from suites.sizing import MEMORY_SHARE, Hardware, Sizes, fit_together, least_memory


def require_declared(request: Request, needed: Sizes, machine: Hardware, home: Home) -> None:
    """Raise LimitError if a server cannot have what is declared for it, by making a group for one.

    Where nothing is declared, nothing is required. It is done before anything is compiled.
    """
    limits: list[GroupLimit] = []
    mount = home_mount(Kernel(), home.data)
    kind = mount.kind if mount is not None else ""
    if needed.memory_bytes is not None:
        _require_memory(request, needed, needed.memory_bytes, machine)
        require_page_cache(home.data, kind)
        limits.append(MemoryLimit(needed.memory_bytes))
    if needed.disk is not None:
        limits.append(DiskLimit(device_of(home.data, kind), needed.disk))
        require_attributed(home.data, kind)
    if limits:
        make_group(f"{PREFIX}tried-{os.getpid()}", limits).remove()


def note_resources(request: Request, sizes: Sizes, folder: Path, progress: Progress) -> None:
    """Note what servers with data in `folder` do not have: the declared disk, all or equal memory."""
    note_slow_disk(sizes.disk, folder, progress)
    note_reclaim(request, sizes, Kernel(), progress)
    note_unequal_caches(request, sizes, progress)


def note_slow_disk(declared: DiskSpeed | None, folder: Path, progress: Progress) -> None:
    """Note when the disk behind `folder` does less than is declared, by a probe of a second."""
    if declared is not None and (found := slower_than(declared, probe(folder))):
        progress.note(
            f"the disk does less than --disk {declared}, in a probe of a second {found}: what waits for the "
            "disk waits for its own speed"
        )


def note_reclaim(request: Request, sizes: Sizes, kernel: Kernel, progress: Progress) -> None:
    """Note when the kernel drops data from the page cache early, and how to turn it off."""
    if found := reclaiming_data(request, sizes, kernel):
        progress.note(
            f"the kernel takes back memory that was not used for a while ({'; '.join(found.values())}), so "
            f"that servers may cache less than they could; to turn it off: {'; '.join(found)}"
        )


def reclaiming_data(request: Request, sizes: Sizes, kernel: Kernel) -> Mapping[str, str]:
    """Return what drops data from the page cache early, by the command that turns it off.

    It is nothing where all data fit into buffers, or all servers read past the page cache.
    """
    if sizes.data_bytes <= sizes.buffer_bytes or not _by_page_cache(request)[1]:
        return {}
    return reclaiming(kernel)


def _by_page_cache(request: Request) -> tuple[Sequence[Version], Sequence[Version]]:
    """Return the versions that read and write past the page cache, and those that go through it."""
    alone: list[Version] = []
    beside: list[Version] = []
    for version in request.versions:
        is_direct = engine_of(version.engine).writes_directly(request.settings_of(version))
        (alone if is_direct else beside).append(version)
    return alone, beside


def note_unequal_caches(request: Request, sizes: Sizes, progress: Progress) -> None:
    """Note when engines do not get the same memory to cache data that their buffers cannot hold.

    Beside buffers of the same size, one that goes through the page cache has what the machine leaves of it.
    """
    if sizes.memory_bytes is not None or sizes.data_bytes <= sizes.buffer_bytes:
        return
    alone, beside = (", ".join(map(str, versions)) for versions in _by_page_cache(request))
    if alone and beside:
        progress.note(
            f"not the same memory: each has {memory_text(sizes.buffer_bytes)} of buffers, beside which the "
            f"page cache holds data of {beside} and none of {alone}; --memory gives each as much"
        )


def _require_memory(request: Request, needed: Sizes, declared: int, machine: Hardware) -> None:
    for version in request.versions:
        beside = engine_of(version.engine).memory_beside_buffers
        least = least_memory(request.profile, needed, beside)
        if declared < least:
            own = own_sizes(version.engine, needed, request.settings_of(version))
            raise LimitError(
                f"{memory_text(declared)} of memory are too little for {version}: it has "
                f"{memory_text(own.buffer_bytes)} of buffers, and needs {memory_text(beside)} beside them",
                where="--memory",
                hint=f"give it {memory_text(least)} at least",
            )
    if not fit_together(1, needed, machine):
        most = memory_text(int(machine.memory_bytes * MEMORY_SHARE) // 2**20 * 2**20)
        raise LimitError(
            f"{memory_text(declared)} of memory are more than this machine has for a server: it has "
            f"{memory_text(machine.memory_bytes)}",
            where="--memory",
            hint=f"give it {most} at most; the rest is for load generators and copies of the data",
        )
