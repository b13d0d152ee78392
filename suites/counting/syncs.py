"""How often a server makes its log durable, counted from its system calls with strace.

A server's own counters could count what it does not do. strace sees the calls that the kernel carries out,
needs no special rights for a program that it starts itself, and with a filter in the kernel stops the server
for the traced calls alone: a commit, or a page that is written.
"""

import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from build.errors import TidemarkError
from build.files import read_checked
from suites.processes import as_server_user, run, tool

OLDEST = (5, 3)
"""The oldest version of strace that filters calls in the kernel."""

LARGEST_FILE = 256 * 1024**2
"""Of strace, in bytes; some hundred kilobytes are usual."""

_CALLS = "fsync,fdatasync,?open,openat,write,pwrite64,pwritev,pwritev2"
"""Those that flush a file, and those that write into one, which flush it if it was opened for that."""

PROBE_SECONDS = 5.0
"""How long strace may take to write what it saw of a program that has ended."""

_NOT_ALLOWED = "a container may need the capability SYS_PTRACE, or another seccomp profile"

_VERSION = re.compile(r"strace -- version ([0-9]{1,4})\.([0-9]{1,4})")

# The number of the process or thread precedes each line with -f. -y adds the path of a file to its number.
_LINE = re.compile(r"([0-9]{1,10}) +(.*)")
_UNFINISHED = " <unfinished ...>"
_RESUMED = re.compile(r"<\.\.\. [a-z0-9]{1,20} resumed>(.*)")
_FLUSHED = re.compile(r"f(?:data)?sync\([0-9]+<([^>]*)>\) += 0")
_OPENED = re.compile(r"open(?:at)?\(.*\bO_D?SYNC\b.*\) += [0-9]+<([^>]*)>")
_WRITTEN = re.compile(r"p?write(?:64|v2?)?\([0-9]+<([^>]*)>, .*\) += [0-9]+")


class SyncError(TidemarkError):
    """strace is missing, too old or not allowed to trace, or what it wrote cannot be read."""


@dataclass(frozen=True)
class SyncTrace:
    """A trace of a server's calls, which strace writes into a file."""

    command: tuple[str, ...]
    """The words that run a server under strace."""
    file: Path
    log_files: re.Pattern[str]
    """Matches the paths of the files of the server's log."""

    def syncs(self) -> int:
        """Return how often the log was flushed since the server's start. Raises SyncError."""
        try:
            # It is of the server's user, who could put anything there.
            lines = read_checked(self.file, LARGEST_FILE).decode(errors="replace").splitlines()
        except OSError as error:
            raise SyncError(
                f"what strace wrote cannot be read: {error.strerror}", where=str(self.file)
            ) from error
        return log_syncs(lines, self.log_files.search)


def sync_trace(folder: Path, log_files: str) -> SyncTrace:
    """Return a trace whose file is in `folder`, which the server's user can write.

    `log_files` is a regular expression of the paths of the log. Raises SyncError, and ProcessError without
    strace.
    """
    file = folder / "calls"
    # -D: the server stays the child, so that signals and its end are its own.
    words = ("-D", "-f", "-y", "-qq", "--seccomp-bpf", "--string-limit=0", "--signal=none")
    command = (_program(), *words, f"--trace={_CALLS}", f"--output={file}")
    trace = SyncTrace(command, file, re.compile(log_files))
    _require_allowed(trace)
    return trace


def _program() -> str:
    """Return the path of strace. Raises ProcessError without it, and SyncError if it is too old."""
    program = tool("strace")
    version = run([program, "--version"], what="strace --version")
    match = _VERSION.match(version)
    if match is None or (int(match[1]), int(match[2])) < OLDEST:
        said = version.partition("\n")[0][:100]
        raise SyncError(
            f"{said} is too old to count syncs", where=program, hint="install strace 5.3 or newer"
        )
    return program


def _require_allowed(trace: SyncTrace) -> None:
    """Raise SyncError if strace may not trace programs here, by tracing one that opens files."""
    said = run(as_server_user([*trace.command, tool("true")]), what="strace", cwd=trace.file.parent)
    deadline = time.monotonic() + PROBE_SECONDS
    while not (trace.file.exists() and trace.file.stat().st_size):
        if time.monotonic() > deadline:
            raise SyncError(
                f"strace traces nothing: {said.strip()[:200] or 'it says nothing'}", hint=_NOT_ALLOWED
            )
        time.sleep(0.01)


def log_syncs(lines: Iterable[str], is_log: Callable[[str], object]) -> int:
    """Return how often the log was flushed, by lines of strace: by fsync, fdatasync, or a write that flushes.

    `is_log` says whether a path is one of the log. Lines of other kinds, and calls that failed, do not count.
    """
    begun: dict[str, str] = {}
    synchronous: set[str] = set()
    count = 0
    for line in lines:
        if (found := _LINE.match(line)) is None:
            continue
        process, call = found[1], found[2]
        if call.endswith(_UNFINISHED):
            begun[process] = call.removesuffix(_UNFINISHED)
            continue
        if resumed := _RESUMED.match(call):
            call = begun.pop(process, "") + resumed[1]
        if opened := _OPENED.match(call):
            synchronous.add(opened[1])
        elif flushed := _FLUSHED.match(call):
            count += bool(is_log(flushed[1]))
        elif (written := _WRITTEN.match(call)) and written[1] in synchronous:
            count += bool(is_log(written[1]))
    return count
