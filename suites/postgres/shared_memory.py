"""Finding and removing the shared memory of a killed postmaster.

The main area of Postgres' shared memory is anonymous, and freed with its processes. A small System V segment
(the interlock against two postmasters on one data directory) and POSIX segments in /dev/shm survive SIGKILL.
"""

import contextlib
import subprocess
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import psutil

from build import environment
from build.files import read_checked
from suites.processes import as_server_user

POSIX_FOLDER = Path("/dev/shm")  # where Linux keeps them
_POSIX_NAME = "PostgreSQL.*"
_ID_LINE = 6  # of postmaster.pid, from 0: "key id" (src/include/utils/pidfile.h: LOCK_FILE_LINE_SHMEM_KEY)


@dataclass(frozen=True)
class Segments:
    """The shared memory segments of one postmaster."""

    system_v: int | None
    """Id of the System V segment."""

    posix: frozenset[Path]

    def remove(self) -> None:
        """Remove the segments that still exist and that no process uses."""
        if self.system_v is not None:
            # A segment that is gone already is what we want; ipcrm says so and fails. With the rights of the
            # server user, who wrote the number that it is called with.
            ipcrm = as_server_user(["ipcrm", "-m", str(self.system_v)])
            subprocess.run(ipcrm, capture_output=True, env=environment.measured(), check=False)
        for path in self.posix - _mapped():
            with contextlib.suppress(OSError):
                # A running server has segments that no process maps at the moment.
                if not _servers_of(path.stat().st_uid):
                    path.unlink()


def segments_of(data: Path) -> Segments:
    """Return the segments of the server on the data directory `data`, which runs or was killed."""
    return Segments(_system_v(data), frozenset(_posix_owned_like(data)))


def of_postmaster(data: Path) -> list[Segments]:
    """Return the segments if the postmaster runs or was killed; empty after a clean shutdown."""
    return [segments_of(data)] if (data / "postmaster.pid").exists() else []


def _system_v(data: Path) -> int | None:
    with contextlib.suppress(OSError, IndexError, ValueError):
        # It is of the server's user, who could put anything there.
        lines = read_checked(data / "postmaster.pid").decode().splitlines()
        return int(lines[_ID_LINE].split()[1])
    return None


def _posix_owned_like(data: Path) -> list[Path]:
    """Return the POSIX segments of the owner of `data`; `remove` keeps those of the owner's other servers."""
    try:
        owner = data.lstat().st_uid  # a link belongs to whoever made it, not to the owner of its target
    except OSError:
        return []
    segments = []
    for path in POSIX_FOLDER.glob(_POSIX_NAME):
        with contextlib.suppress(OSError):
            if path.stat().st_uid == owner:
                segments.append(path)
    return segments


def _servers_of(user: int) -> bool:
    """Return whether any Postgres server of `user` is running, under valgrind or not."""
    for process in psutil.process_iter(["name", "cmdline", "uids"]):
        uids = process.info["uids"]
        if uids is None or uids.real != user:
            continue
        # Under valgrind the process has another name, and its command line ends with the server's.
        if process.info["name"] == "postgres" or any(
            Path(word).name == "postgres" and option == "-D"
            for word, option in pairwise(process.info["cmdline"] or ())
        ):
            return True
    return False


def _mapped() -> set[Path]:
    """Return every POSIX segment that is mapped by some process."""
    mapped = set()
    for maps in Path("/proc").glob("[0-9]*/maps"):
        with contextlib.suppress(OSError):
            for line in maps.read_text(errors="replace").splitlines():
                _, separator, name = line.partition(str(POSIX_FOLDER) + "/")
                if separator:
                    mapped.add(POSIX_FOLDER / name.removesuffix(" (deleted)"))
    return mapped
