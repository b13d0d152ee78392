"""The folder of the kept copies: each is checked before it is used, and none is seen before it is whole."""

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from build.errors import TidemarkError
from build.files import read_checked, remove_folder
from suites.processes import as_server_user, own, run, write_for_server

MANIFEST = "manifest.json"
DATA = "data"
PARTIAL = ".partial"
"""The suffix of a copy that is not finished."""

COPY_SECONDS = 4 * 3600.0
"""Time limit for copying a data directory."""

_NAME = re.compile(r"[0-9a-f]{16}" + f"({re.escape(PARTIAL)})?")

_LONGEST_MANIFEST = 64 * 1024**2


class CopyError(TidemarkError):
    """A kept copy is damaged or was cut off; or there is none of that name."""


@dataclass(frozen=True)
class CopyKey:
    """What decides what loaded data are: equal keys, equal data."""

    version: str
    """The version, for people."""
    suite: str
    profile: str
    parts: Mapping[str, str]
    """Build, digest of the suite, sizes, load generator and settings, in any order."""

    @property
    def name(self) -> str:
        """The name of the copy's folder: 16 hex digits."""
        text = json.dumps(dict(self.parts), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class KeptCopy:
    """A copy in the folder, whole or not."""

    folder: Path
    version: str
    suite: str
    profile: str
    build: str
    """The key of its build; empty if the copy cannot be read."""
    bytes: int
    kept_at: str
    """The moment in UTC, as ISO 8601."""
    damage: str | None
    """Why it cannot be used; None if it can."""

    @property
    def name(self) -> str:
        """The name of its folder."""
        return self.folder.name

    @property
    def data(self) -> Path:
        """The data directory."""
        return self.folder / DATA


class DataCopies:
    """The kept copies below one folder; `note` tells a person what happens to them."""

    def __init__(self, folder: Path, note: Callable[[str], None] = lambda text: None) -> None:
        self.folder = folder
        self._note = note

    def find(self, key: CopyKey) -> Path | None:
        """Return the data directory of a whole copy; None without one. A damaged one is removed."""
        folder = self.folder / key.name
        if not folder.is_dir():
            return None
        kept = read_copy(folder)
        if kept.damage is not None:
            self._note(f"{key.version}: the kept copy {kept.name} is not used, and removed: {kept.damage}")
            remove_folder(folder)
            return None
        self._note(f"{key.version}: from the kept copy {kept.name} of {kept.kept_at}")
        return kept.data

    def save(self, key: CopyKey, loaded: Path) -> None:
        """Keep a copy of `loaded`, whose server is down. A failure is only told."""
        partial = self.folder / f"{key.name}{PARTIAL}"
        remove_folder(partial)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            partial.mkdir(mode=0o700)
            own(partial)
            # As the user whose files they are: root would write through a link that this user puts there.
            command: list[str | Path] = ["cp", "--archive", "--reflink=auto", loaded, partial / DATA]
            run(as_server_user(command), what=f"keeping the data of {key.version}", seconds=COPY_SECONDS)
            files = dict(_sizes(partial / DATA))
            manifest = {
                "version": key.version,
                "suite": key.suite,
                "profile": key.profile,
                "parts": dict(key.parts),
                "kept_at": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
                "files": files,
            }
            if files != dict(_sizes(loaded)):
                raise CopyError("the copy is not what was copied")
            write_for_server(partial / MANIFEST, json.dumps(manifest))
            os.sync()
            partial.rename(self.folder / key.name)
        except (TidemarkError, OSError) as error:
            self._note(f"{key.version}: no copy of its data is kept: {error}")
            remove_folder(partial)

    def all(self) -> list[KeptCopy]:
        """Return all copies, those that are not finished included, by name; other folders are not ours."""
        if not self.folder.is_dir():
            return []
        folders = (folder for folder in sorted(self.folder.iterdir()) if folder.is_dir())
        return [read_copy(folder) for folder in folders if _NAME.fullmatch(folder.name)]

    def remove(self, kept: KeptCopy) -> None:
        """Delete a copy."""
        remove_folder(kept.folder)


def read_copy(folder: Path) -> KeptCopy:
    """Return what is known about the copy in `folder`, with its damage if it has any."""
    if folder.name.endswith(PARTIAL):
        return _damaged(folder, "it was cut off while it was made")
    try:
        manifest = read_manifest(read_checked(folder / MANIFEST, _LONGEST_MANIFEST))
    except (OSError, CopyError) as error:
        return _damaged(folder, f"its manifest cannot be read: {error}")
    files = manifest["files"]
    found = dict(_sizes(folder / DATA))
    missing = sorted(name for name, size in files.items() if found.get(name) != size)
    more = sorted(found.keys() - files.keys())
    damage = None
    if missing:
        damage = f"{len(missing)} files are missing or of another size, such as {missing[0]}"
    elif more:
        damage = f"{len(more)} files are new, such as {more[0]}"
    return KeptCopy(
        folder,
        manifest["version"],
        manifest["suite"],
        manifest["profile"],
        manifest["parts"].get("build", ""),
        sum(found.values()),
        manifest["kept_at"],
        damage,
    )


def read_manifest(content: bytes) -> dict[str, Any]:
    """Return the manifest of a copy: texts, `parts` by name, and the size of each of `files` in bytes.

    Raises CopyError for anything else.
    """
    try:
        value = json.loads(content)
        texts = [value[name] for name in ("version", "suite", "profile", "kept_at")]
        texts += [*value["parts"], *value["parts"].values(), *value["files"]]
        sizes = list(value["files"].values())
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise CopyError(f"this is no manifest of a copy: {error!r:.200}") from error
    if not all(isinstance(text, str) for text in texts):
        raise CopyError("this is no manifest of a copy: a text is none")
    if not all(type(size) is int and 0 <= size < 2**63 for size in sizes):
        raise CopyError("this is no manifest of a copy: a size is none")
    return dict(value)


def _damaged(folder: Path, why: str) -> KeptCopy:
    return KeptCopy(folder, "", "", "", "", sum(size for _, size in _sizes(folder)), "", why)


def _sizes(folder: Path) -> Iterator[tuple[str, int]]:
    """Yield the path of each regular file below `folder`, relative to it, and its size in bytes."""
    for place, _, names in os.walk(folder):
        for name in names:
            path = Path(place) / name
            if path.is_file() and not path.is_symlink():
                yield str(path.relative_to(folder)), path.stat().st_size
