"""Folders and files that other users can read and that are never half written; JSON and TOML of others."""

import json
import os
import subprocess
import tempfile
import tomllib
from pathlib import Path
from typing import Any


def make_folder(path: Path) -> Path:
    """Make a folder, with its parents, that others may enter whatever the umask is; returns it.

    The servers run as an unprivileged user and have to reach what is installed below it.
    """
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for folder in missing:
        folder.chmod(0o755)
    return path


def write_atomically(path: Path, text: str) -> None:
    """Replace a file: whoever reads it, even after a power cut, sees the old or the new text."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w") as file:
            file.write(text)
            file.flush()
            os.fsync(handle)
        Path(name).chmod(0o644)
        os.rename(name, path)  # noqa: PTH104 # the system call's own name: one rename
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def flush_file_system(path: Path) -> None:
    """Make everything written so far on `path`'s file system survive a power cut.

    One syncfs(2) is far cheaper than an fsync of each of an install tree's thousands of files.
    """
    subprocess.run(["sync", "--file-system", str(path)], check=True)


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
