"""The clean-up of a session: its processes, shared memory and data folder are removed however it ended."""

import contextlib
import os
import re
import shlex
import sys
from collections.abc import Collection, Iterator
from pathlib import Path

import psutil

from build.files import make_folder, open_checked, remove_folder
from build.home import Home
from build.lock import open_lock, taken
from history.store.process import is_of_this_kernel, own_boot_id
from runners.interrupts import cleaned_up_by
from runners.measuring.machine_lock import signature, signed_by
from suites.control_groups.declared import LimitError
from suites.control_groups.group import groups_below
from suites.engines import leftovers

OWNER = "owner"
"""The file in the data folder of a session that its Tidemark process has signed, and locks while it runs."""

_SESSION = re.compile(r"s[0-9a-f]{8}|b[0-9]+")
"""The names that sessions and benchmarks give to their data folders."""


@contextlib.contextmanager
def data_folder(home: Home, name: str) -> Iterator[Path]:
    """Create a folder for the servers of one session; remove it, its processes and their memory afterwards.

    Child processes from before it are not its own: the next commit may be compiled beside it, and longer.
    Folders of sessions whose Tidemark process was killed are removed first.
    """
    others = psutil.Process().children()
    make_folder(home.data)
    sweep(home)
    folder = home.data / name
    folder.mkdir(mode=0o755)
    owner = open_lock(folder / OWNER)
    try:
        taken(owner)
        os.write(owner, signature().encode())
        with cleaned_up_by("stopping the servers and removing their data"):
            try:
                yield folder
            finally:
                try:
                    _end_children(others)
                finally:
                    clean(folder)
    finally:
        os.close(owner)


def sweep(home: Home) -> list[str]:
    """Remove the folders of sessions whose Tidemark process was killed; return their names.

    A home may have been put into a folder that has a `data` of somebody else: other folders are left alone.
    """
    return [stale.name for stale in list(home.data.glob("*")) if _is_ours(stale) and _removed(stale)]


def _removed(stale: Path) -> bool:
    """Remove the folder of a session if that has ended for certain; return whether it was removed.

    A living session holds a lock on OWNER, which every container of its machine sees. Whether other machines
    that share the folder see it depends on its file system.
    """
    try:
        owner = open_checked(stale / OWNER, writable=True)
    except FileNotFoundError:  # it was killed at once
        clean(stale)
        return True
    except OSError:
        return False
    try:
        if not taken(owner):
            return False
        signed = signed_by(os.pread(owner, 256, 0).decode(errors="replace"))
        if signed is not None and not is_of_this_kernel(signed[2]) and signed[1] != os.uname().nodename:
            _complain(
                f"{stale} is left: whether the session of host {signed[1]} has ended is not known here; "
                f"if it has: rm -r {shlex.quote(str(stale))}"
            )
            return False
        clean(stale, is_of_here=signed is None or signed[2] == own_boot_id())
        return True
    except OSError:  # of a file system without locks
        return False
    finally:
        os.close(owner)


def clean(folder: Path, *, is_of_here: bool = True) -> None:
    """Kill every process that works below `folder`, remove what its servers held outside of it, delete it.

    What a server of another container or boot held went with that; here its ids are those of others.
    """
    servers = folder.glob("*/data") if is_of_here else ()
    held = [leftover for data in servers for leftover in leftovers(data)]
    victims = list(_working_below(folder))
    for process in victims:
        with contextlib.suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(victims, timeout=10)
    for leftover in held:
        leftover.remove()
    for group in groups_below(folder):
        try:
            group.remove()
        except LimitError as error:  # which harms no result
            _complain(str(error))
    remove_folder(folder)


def _complain(text: str) -> None:
    print(f"tidemark: {text}", file=sys.stderr)


def _end_children(others: Collection[psutil.Process]) -> None:
    """End all child processes but others: one whose start was interrupted may be known to the kernel only."""
    own = [child for child in psutil.Process().children() if child not in others]
    children = list(own)
    for child in own:
        with contextlib.suppress(psutil.Error):
            children += child.children(recursive=True)
    for child in children:
        with contextlib.suppress(psutil.Error):
            child.terminate()
    for child in psutil.wait_procs(children, timeout=5)[1]:
        with contextlib.suppress(psutil.Error):
            child.kill()


def _working_below(folder: Path) -> Iterator[psutil.Process]:
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if Path(process.cwd()).is_relative_to(folder):
                yield process


def _is_ours(folder: Path) -> bool:
    """Whether a session made this folder; one that was killed at once has not written OWNER yet."""
    return (folder / OWNER).is_file() or _SESSION.fullmatch(folder.name) is not None
