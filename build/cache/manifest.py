"""The `.json` file beside an archive, which describes its build: written by `export`, or by hand."""

import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from build.cache import store
from build.errors import TidemarkError
from build.files import json_value
from build.manifest import Manifest, manifest_of

FORMAT = 1
"""Format number of the file that `export` writes."""

_PLATFORM = re.compile(r"-linux-(?P<architecture>[a-z0-9_]+)-glibc(?P<glibc>[0-9.]+)$")
_TREE_KEYS = {"engine", "version", "source", "configure", "targets", "compiler", "prefix"}


class ArchiveError(TidemarkError):
    """A build cannot be exported, or an archive cannot be imported."""


@dataclass(frozen=True)
class ArchiveInfo:
    """The contents of one archive, as the file beside it describes them."""

    manifest: Manifest
    """The manifest `build.json` of the build."""

    sha256: str | None
    """Hex SHA-256 that the archive must have; None if the description has none."""

    top: str
    """The single top-level folder of the archive."""

    has_manifest: bool
    """Whether the archive contains `build.json`; if not, the file is added on import."""

    @property
    def name(self) -> str:
        """The name of the build's folder in the cache."""
        return store.folder_name(self.manifest.engine, self.manifest.release, self.manifest.key)


def read(sidecar: Path) -> ArchiveInfo:
    """Read the `.json` file beside an archive. Raises ArchiveError if it does not describe a build."""
    try:
        about: dict[str, Any] = json_value(sidecar.read_text(encoding="utf-8"))
        if about.keys() >= _TREE_KEYS:
            return _install_tree(about, sidecar)
        if about["format"] != FORMAT:
            raise ArchiveError(
                f"the file beside the archive has format {about['format']}, but only {FORMAT} is supported",
                where=str(sidecar),
                hint="export the build again with this version of Tidemark",
            )
        manifest, digest = manifest_of(about["manifest"]), str(about["sha256"])
        top = store.folder_name(manifest.engine, manifest.release, manifest.key)
        return ArchiveInfo(manifest, digest, top, has_manifest=True)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        reason = f"the key {error} is missing" if isinstance(error, KeyError) else str(error)
        raise ArchiveError(
            "the file beside the archive does not describe a build", where=f"{sidecar}: {reason}"
        ) from error


def _install_tree(about: dict[str, Any], sidecar: Path) -> ArchiveInfo:
    """Return the contents of an install tree, described by engine, version, source and configuration.

    Such a description has no key, no digest of the archive and no host. The key is derived from the
    description, and the host from the name of the file.
    """
    platform = _PLATFORM.search(sidecar.stem)
    if platform is None:
        raise ArchiveError(
            "the archive's name does not give architecture and C library",
            where=str(sidecar),
            hint="rename it to <engine>-<version>-linux-<architecture>-glibc<version>.tar.zst",
        )
    if not all(isinstance(about[name], str) for name in ("engine", "version", "prefix")):
        raise TypeError("engine, version and prefix are not texts")
    canonical = json.dumps(about, sort_keys=True, separators=(",", ":"))
    source = about["source"]
    manifest = {
        "format": FORMAT,
        "engine": about["engine"],
        "version": f"{about['engine']}@{about['version']}",
        "release": about["version"],
        "key": hashlib.sha256(f"install tree {canonical}".encode()).hexdigest(),
        "source": {
            "kind": source["kind"],
            "location": source["file"],
            "digest": f"sha256:{source['sha256']}",
        },
        "recipe": {"configure": about["configure"], "targets": about["targets"]},
        "patches": [],
        "compiler": {"command": "", "version": about["compiler"], "target": ""},
        "host": platform.groupdict(),
        "without": about.get("without", []),
        "built_at": about.get("built", ""),
    }
    return ArchiveInfo(manifest_of(manifest), None, about["prefix"], has_manifest=False)
