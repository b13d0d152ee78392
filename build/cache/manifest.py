"""What the file beside an archive says of the build in it: written by `export`, or by hand for a tree."""

import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from build.cache import store
from build.errors import TidemarkError
from build.files import json_value

FORMAT = 1
"""Of the file that `export` writes."""

_PLATFORM = re.compile(r"-linux-(?P<architecture>[a-z0-9_]+)-glibc(?P<glibc>[0-9.]+)$")
_TREE_KEYS = {"engine", "version", "source", "configure", "targets", "compiler", "prefix"}


class ArchiveError(TidemarkError):
    """A build cannot be exported, or an archive cannot be taken in."""


@dataclass(frozen=True)
class Parcel:
    """One archive, as the file beside it describes it."""

    manifest: dict[str, Any]
    """`build.json` of the build once it is there."""

    sha256: str | None
    """Hex digest the archive must have; None when nobody has said."""

    top: str
    """The one folder at the archive's top."""

    has_manifest: bool
    """Whether `build.json` is in the archive; otherwise it is added."""

    @property
    def name(self) -> str:
        """The folder of the build in the cache."""
        return store.folder_name(self.manifest["engine"], self.manifest["release"], self.manifest["key"])


def read(sidecar: Path) -> Parcel:
    """Read the `.json` beside an archive. Raises TransferError when it describes no build."""
    try:
        about: dict[str, Any] = json_value(sidecar.read_text(encoding="utf-8"))
        if about.keys() >= _TREE_KEYS:
            return _install_tree(about, sidecar)
        if about["format"] != FORMAT:
            raise ArchiveError(
                f"the file beside the archive is of format {about['format']}, not {FORMAT}",
                where=str(sidecar),
            )
        manifest, digest = dict(about["manifest"]), str(about["sha256"])
        store.require_record(manifest)
        _require_host(manifest)
        top = store.folder_name(manifest["engine"], manifest["release"], manifest["key"])
        return Parcel(manifest, digest, top, has_manifest=True)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        reason = f"lacks {error}" if isinstance(error, KeyError) else str(error)
        raise ArchiveError(
            "the file beside the archive is not one of a build", where=f"{sidecar}: {reason}"
        ) from error


def _require_host(manifest: dict[str, Any]) -> None:
    """Raise TypeError unless the manifest names architecture and C library as texts."""
    host = manifest["host"]
    if not all(isinstance(host[name], str) for name in ("architecture", "glibc")):
        raise TypeError("host is not an architecture and a glibc")


def _install_tree(about: dict[str, Any], sidecar: Path) -> Parcel:
    """A tree that was installed by hand, described by engine, version, source and configuration.

    Such a description has no key, no digest of the archive and no host: the key is made from the description
    itself, and the host is what the file's name says.
    """
    platform = _PLATFORM.search(sidecar.stem)
    if platform is None:
        raise ArchiveError(
            "the name of the archive does not say what it runs on",
            where=str(sidecar),
            hint="call it <engine>-<version>-linux-<architecture>-glibc<version>.tar.zst",
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
    store.require_record(manifest)
    return Parcel(manifest, None, about["prefix"], has_manifest=False)
