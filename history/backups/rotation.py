"""The copies of a history that a nightly service keeps in a folder: one a day, and which are deleted."""

from collections.abc import Mapping
from pathlib import Path

from build.addresses import without_secrets
from build.errors import TidemarkError, shell_line
from history.backups.backup import back_up, sessions_of
from history.errors import HistoryError
from history.timestamps import now

PREFIX = "history-"
"""The name of a copy begins so, and goes on with its day, by the clock of the box."""

Held = Mapping[Path, frozenset[str]]
"""Copy -> the uids of the sessions in it."""


def renew_copies(target: Path | str, folder: Path, keep: int) -> list[str]:
    """Copy the history at a path or URL into a folder, and delete copies beyond `keep`; returns problems.

    There is one copy for each day: a later one of the day replaces it. A copy that fails deletes nothing.
    Only one process may do it at a time: see to it by the lock of the machine.
    """
    if not keep:
        return []
    latest = folder / f"{PREFIX}{now():%Y-%m-%d}.db"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for left in folder.glob(f".{PREFIX}*.part*"):  # by a night that was killed
            left.unlink()
        back_up(target, latest)
    except (TidemarkError, OSError) as error:
        return [f"the history could not be copied: {error}"]
    held, problems = _read(folder)
    if latest not in held:  # as on a disk that fails: nothing may be deleted
        return problems
    try:
        for path in superseded(held, latest, keep):
            path.unlink()
    except OSError as error:
        problems.append(f"an old copy of the history could not be deleted: {error}")
    return [*problems, *_lost(held, latest, target)]


def share_a_disk(target: Path | str, folder: Path) -> bool:
    """Return whether a history in a file and the folder of its copies are on one file system."""
    if isinstance(target, str):
        return False
    try:
        return target.stat().st_dev == folder.stat().st_dev
    except OSError:  # there is no history or no copy yet
        return False


def superseded(held: Held, latest: Path, keep: int) -> list[Path]:
    """Return the copies to delete so that about `keep` are left: the latest, and those with most sessions.

    Sessions are never deleted from a history, so that a copy with fewer of them is an older state of it. The
    dates in the names do not count: a clock may have been wrong. Each copy that is deleted has all of its
    sessions in one that is kept; one of another history, or of a history that was lost, is left alone.
    """
    others = sorted(held.keys() - {latest}, key=lambda path: (len(held[path]), path.name), reverse=True)
    kept, deleted = [latest], []
    for path in others:
        if len(kept) >= keep and any(held[path] <= held[other] for other in kept):
            deleted.append(path)
        else:
            kept.append(path)
    return deleted


def _read(folder: Path) -> tuple[dict[Path, frozenset[str]], list[str]]:
    """Return what each copy holds, and a problem for each that cannot be read."""
    held, problems = {}, []
    for path in sorted(folder.glob(f"{PREFIX}*.db")):
        try:
            held[path] = frozenset(sessions_of(path))
        except (HistoryError, OSError) as error:
            problems.append(
                f"the copy {path.name} of the history cannot be read, and is not deleted: {error}"
            )
    return held, problems


def _lost(held: Held, latest: Path, target: Path | str) -> list[str]:
    """Return a problem when another copy holds sessions that the history no longer has."""
    lost = {path: sessions - held[latest] for path, sessions in held.items()}
    path = max(lost, key=lambda path: (len(lost[path]), path.name))
    if not lost[path]:
        return []
    history = without_secrets(str(target))
    merge = shell_line("./tidemark", "history", "merge", path, "--history", history)
    return [
        f"the history lacks {len(lost[path])} sessions of its copy {path.name}, such as {min(lost[path])};"
        f" the copy is not deleted: add them by {merge}, or move the copy elsewhere"
    ]
