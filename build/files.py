"""Folders and files that other users can read, and that are never visible half-written."""

import os
import subprocess
import tempfile
from pathlib import Path


def make_folder(path: Path) -> Path:
    """Create a folder and its parents, accessible to all users whatever the umask; return the folder.

    The servers run as an unprivileged user, who needs access to the programs installed below it.
    """
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for folder in missing:
        folder.chmod(0o755)
    return path


def write_atomically(path: Path, text: str) -> None:
    """Replace a file so that a reader, even after a power failure, sees either the old or the new text."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w") as file:
            file.write(text)
            file.flush()
            os.fsync(handle)
        Path(name).chmod(0o644)
        os.rename(name, path)  # noqa: PTH104 # named as the system call: a single atomic rename
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def flush_file_system(path: Path) -> None:
    """Flush everything written so far to the file system of `path`, so that it survives a power failure.

    One syncfs(2) is far cheaper than an fsync of each of the thousands of files of an install tree.
    """
    subprocess.run(["sync", "--file-system", str(path)], check=True)
