"""Folders and files that other users can read, and that are never visible half-written; JSON and TOML."""

import errno
import json
import os
import stat
import subprocess
import tempfile
import tomllib
from pathlib import Path
from typing import Any

from build import environment

SMALL_FILE = 1024**2
"""The most bytes of a file that is expected to have a few lines."""

GROUP_WRITES = 0o020
"""The bit of a mode: on a box, who measures and who reports are two users of one group."""


def make_folder(path: Path) -> Path:
    """Create a folder and its parents, accessible to all users whatever the umask; return the folder.

    The servers run as an unprivileged user, who needs access to the programs installed below it. The group
    may write where it may write in the folder around it.
    """
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for folder in reversed(missing):
        folder.chmod(0o755 | (folder.parent.stat().st_mode & GROUP_WRITES))
    return path


def write_atomically(path: Path, text: str, *, flush: bool = True) -> None:
    """Replace a file so that a reader, even after a power failure, sees either the old or the new text.

    Without `flush` nothing is waited for, and a power failure may leave an empty file.
    """
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w") as file:
            file.write(text)
            file.flush()
            os.fchmod(handle, 0o644)  # by its descriptor: others may have put a link under its name
            if flush:
                os.fsync(handle)
        os.rename(name, path)  # noqa: PTH104 # the system call's own name: one rename
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def open_checked(path: Path, *, writable: bool = False) -> int:
    """Open a regular file that exists, without following a link, and return its descriptor.

    For files in folders in which others may write. What lies there is examined before it is opened: opening a
    pipe would wait for its other end. `writable` opens it for writing, too, if this user may. Raises OSError:
    EISDIR for a folder, ELOOP for a link, EINVAL for what is neither file nor link.
    """
    at_path = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        mode = os.fstat(at_path).st_mode
        if not stat.S_ISREG(mode):
            number, why = _other_kind(mode)
            raise OSError(number, why, str(path))
        # The file that was examined is opened, whatever lies at its path by now.
        same = f"/proc/self/fd/{at_path}"
        try:
            return os.open(same, (os.O_RDWR if writable else os.O_RDONLY) | os.O_CLOEXEC)
        except OSError as error:
            if not writable or error.errno not in (errno.EACCES, errno.EROFS):
                raise
            return os.open(same, os.O_RDONLY | os.O_CLOEXEC)
    finally:
        os.close(at_path)


def read_checked(path: Path, most_bytes: int = SMALL_FILE) -> bytes:
    """Return the content of a file that `open_checked` opens. Raises OSError, also if it has more bytes."""
    with os.fdopen(open_checked(path), "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size > most_bytes:
            raise OSError(errno.EFBIG, f"it has more than {most_bytes} bytes", str(path))
        return file.read(size)


def remove_folder(path: Path) -> None:
    """Delete a folder as far as this user may, even one in which others write meanwhile.

    rm(1) follows no link, waits for no pipe and has no limit of depth; shutil.rmtree opens a pipe that takes
    the place of a folder, and fails below a thousand folders.
    """
    command = ["rm", "--recursive", "--force", "--", str(path)]
    subprocess.run(command, stderr=subprocess.DEVNULL, env=environment.compiling(), check=False)


def _other_kind(mode: int) -> tuple[int, str]:
    if stat.S_ISDIR(mode):
        return errno.EISDIR, "it is a folder"
    if stat.S_ISLNK(mode):
        return errno.ELOOP, "it is a symbolic link"
    return errno.EINVAL, "it is no regular file"


def flush_file_system(path: Path) -> None:
    """Flush everything written so far to the file system of `path`, so that it survives a power failure.

    One syncfs(2) is far cheaper than an fsync of each of the thousands of files of an install tree.
    """
    subprocess.run(["sync", "--file-system", str(path)], env=environment.compiling(), check=True)


def json_value(text: str | bytes) -> Any:
    """Parse JSON. Raises ValueError, also for what is nested too deeply for Python's parser."""
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("brackets are nested too deeply") from error


def toml_value(text: str) -> dict[str, Any]:
    """Parse TOML. Raises ValueError, also for what is nested too deeply for Python's parser."""
    try:
        return tomllib.loads(text)
    except RecursionError as error:
        raise ValueError("brackets are nested too deeply") from error
