"""Folders of a build cache as the program finds them, without a compile."""

import hashlib
import json
import os
from datetime import datetime
from pathlib import Path

from build.cache import store
from build.home import Home
from tests.manifests import a_manifest


def a_build_of(home: Home, version: str, used: datetime, *, size: int = 4096, imported: bool = False) -> str:
    """Write a build of `size` bytes that was last used at a moment; return its key."""
    engine, _, ref = version.partition("@")
    release = ref if ref[:1].isdigit() else "19devel"
    key = hashlib.sha256(version.encode()).hexdigest()
    folder = home.builds / store.folder_name(engine, release, key)
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "server").write_bytes(os.urandom(size))
    store.write_manifest(
        folder, a_manifest(version=version, release=release, key=key, source={"digest": "sha256:00"})
    )
    if imported:
        (folder / store.IMPORTED).write_text(json.dumps({}))
    use(folder, used)
    return key


def use(folder: Path, when: datetime) -> None:
    """Record that a build was used at a moment."""
    mark = folder.parent / ".used" / folder.name
    mark.parent.mkdir(exist_ok=True)
    mark.touch()
    os.utime(mark, (when.timestamp(), when.timestamp()))
