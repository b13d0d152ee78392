"""Whether a failure is a version's own, which another night would show again, or one of the machine."""

import re
import shutil
from contextlib import suppress
from pathlib import Path

from build.cache.earlier_compiles import compiler_errors, is_of_machine
from build.compile_commands import CompileError
from build.errors import TidemarkError
from build.recipes.recipe import RecipeError
from history.store.records import FailureCause, VersionFailure
from suites.capabilities import CapabilityError
from suites.control_groups.group import KILLED
from suites.data_copies.store import CopyError
from suites.sizing import DiskSpaceError

MIN_FREE_BYTES = 500_000_000
"""With less free space than this, in bytes, a failure is attributed to the disk."""

LONGEST_REASON = 2_000
"""The most characters of the reason of a failure that a session keeps."""

_OF_MACHINE = re.compile(
    r"No space left on device|Disk quota exceeded|Read-only file system|Input/output error"
    r"|[Cc]annot allocate memory|[Oo]ut of memory|Too many open files|Resource temporarily unavailable"
    r"|Address already in use|Permission denied|is not installed|SIGKILL|signal 9\b"
)
"""What servers, clients and the kernel say when something besides the server is to blame. SIGKILL is sent by
the kernel when memory runs out, and by people."""


def build_failure(error: TidemarkError) -> VersionFailure:
    """Return why a version has no build, or cannot run a suite.

    It is the version's own failure only if the compiler or the linker complained, now or when it was tried
    before, or if its release or a setting is not supported. All else is tried again: no network, a full disk,
    a missing package, a wrong checksum, a compiler that was killed, a configure script that failed.
    """
    reason = str(error)
    complaints = compiler_errors(error) if isinstance(error, CompileError) else []
    if complaints and not is_of_machine(error):
        log = f" (log: {error.where})" if error.where else ""
        return VersionFailure(FailureCause.VERSION, f"does not compile: {complaints[0]}{log}\n{reason}")
    is_unsupported = isinstance(error, RecipeError | CapabilityError)
    return VersionFailure(FailureCause.VERSION if is_unsupported else FailureCause.MACHINE, reason)


def run_failure(error: TidemarkError, folder: Path | None) -> VersionFailure:
    """Return why a version failed while it was loaded or measured; its files are below `folder`, if known.

    Whether the base failed as well, which speaks for the machine, is for the session to say.
    """
    reason = str(error)
    is_full = False
    if folder is not None:
        with suppress(OSError):
            is_full = shutil.disk_usage(folder).free < MIN_FREE_BYTES
    if KILLED in reason:  # in its own group, where nothing but the version itself takes memory
        return VersionFailure(FailureCause.VERSION, reason[:LONGEST_REASON])
    if is_full or isinstance(error, CopyError | DiskSpaceError) or _OF_MACHINE.search(reason):
        return VersionFailure(FailureCause.MACHINE, reason[:LONGEST_REASON])
    return VersionFailure(FailureCause.VERSION, reason[:LONGEST_REASON])
