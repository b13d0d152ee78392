"""Folders that are read like install prefixes, with programs that exist everywhere."""

import shutil
from pathlib import Path


def pretended_prefix(folder: Path, module: bytes = b"module") -> Path:
    """Return a prefix of Postgres in a new folder; its `module` tells it from others."""
    for name in ("bin", "lib"):
        (folder / name).mkdir(parents=True)
    for name in ("postgres", "initdb"):
        shutil.copy(shutil.which("echo") or "/bin/echo", folder / "bin" / name)
    (folder / "lib" / "plpgsql.so").write_bytes(module)
    return folder
