"""The clean-up of a session: its processes, shared memory and data folder are removed however it ended."""

import contextlib
import os
import re
import sys
from collections.abc import Collection, Iterator
from pathlib import Path

import psutil

from build.files import remove_folder
from build.home import Home
from runners.interrupts import cleaned_up_by
from suites.control_groups.group import groups_below
from suites.control_groups.limits import LimitError
from suites.leftovers import leftovers

OWNER = "owner"
"""The file in the data folder of a session that identifies its Tidemark process."""

_SESSION = re.compile(r"s[0-9a-f]{8}|b[0-9]+")
"""The names that sessions and benchmarks give to their data folders."""


@contextlib.contextmanager
def data_folder(home: Home, name: str) -> Iterator[Path]:
    """Create a folder for the servers of one session; remove it, its processes and their memory afterwards.

    Child processes from before it are not its own: the next commit may be compiled beside it, and longer.
    Folders of sessions whose Tidemark process was killed are removed first.
    """
    others = psutil.Process().children()
    home.data.mkdir(parents=True, exist_ok=True)
    sweep(home)
    folder = home.data / name
    folder.mkdir(mode=0o755)
    (folder / OWNER).write_text(f"{os.getpid()} {_started(os.getpid())}")
    with cleaned_up_by("stopping the servers and removing their data"):
        try:
            yield folder
        finally:
            try:
                _end_children(others)
            finally:
                clean(folder)


def sweep(home: Home) -> list[str]:
    """Remove the folders of sessions whose Tidemark process was killed; return their names.

    A home may have been put into a folder that has a `data` of somebody else: other folders are left alone.
    """
    swept = []
    for stale in home.data.iterdir() if home.data.is_dir() else ():
        if _is_ours(stale) and not _owned_by_living(stale):
            clean(stale)
            swept.append(stale.name)
    return swept


def clean(folder: Path) -> None:
    """Kill every process that works below `folder`, remove what its servers held outside of it, delete it."""
    held = [leftover for data in folder.glob("*/data") for leftover in leftovers(data)]
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
            print(f"tidemark: {error}", file=sys.stderr)
    remove_folder(folder)


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


def _owned_by_living(folder: Path) -> bool:
    try:
        pid, started = (folder / OWNER).read_text().split()
        return _started(int(pid)) == started
    except (OSError, ValueError):
        return False


def _started(pid: int) -> str:
    """Return when a process started, which tells it from others with the same pid; '' when there is none."""
    with contextlib.suppress(psutil.Error):
        return f"{psutil.Process(pid).create_time():.2f}"
    return ""
