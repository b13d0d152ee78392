"""Files that are there whole or not at all."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from history.transfer.row_source import TransferError


@contextmanager
def written_whole(path: Path, *, replace: bool = False) -> Iterator[Path]:
    """A name beside `path` to write a file under; it becomes `path` when all went well.

    Raises TransferError when something is there already that is not to be replaced, and when the file system
    has no room.
    """
    if path.exists() and not replace:
        raise TransferError("there is something already", where=str(path), hint="choose another name")
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield part
        persist(part)
        part.replace(path)
        persist(path.parent)
    except OSError as error:
        raise TransferError(
            f"it cannot be written: {error.strerror or error}",
            where=str(path),
            hint="free some space, or see its rights",
        ) from error
    finally:
        _remove(part)


def persist(path: Path) -> None:
    """Have the disk write a file, or the names in a folder. Raises OSError."""
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def _remove(part: Path) -> None:
    for ending in ("", "-wal", "-shm", "-journal"):
        part.with_name(part.name + ending).unlink(missing_ok=True)
