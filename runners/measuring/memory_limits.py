"""Whether servers can have the memory that a session declares for them, before anything is compiled."""

import os

from build.home import Home
from runners.fitness.kernel import Kernel
from runners.fitness.storage import home_mount
from runners.measuring.request import Request
from suites.control_groups.group import PREFIX, make_group
from suites.control_groups.limits import LimitError, memory_text
from suites.control_groups.page_cache import require_page_cache
from suites.engines import SERVERS
from suites.sizing import MEMORY_SHARE, Hardware, Sizes, fit_together, least_memory


def require_memory(request: Request, needed: Sizes, machine: Hardware, home: Home) -> None:
    """Raise LimitError if a server cannot have the memory that is declared for it, by making a group for one.

    Without a declared memory nothing is required.
    """
    declared = needed.memory_bytes
    if declared is None:
        return
    for version in request.versions:
        beside = SERVERS[version.engine].memory_beside_buffers
        least = least_memory(request.profile, needed, beside)
        if declared < least:
            raise LimitError(
                f"{memory_text(declared)} of memory are too little for {version}: it has "
                f"{memory_text(needed.buffer_bytes)} of buffers, and needs {memory_text(beside)} beside them",
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
    mount = home_mount(Kernel(), home.data)
    require_page_cache(home.data, mount.kind if mount is not None else "")
    make_group(f"{PREFIX}tried-{os.getpid()}", declared).remove()
