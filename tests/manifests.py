"""Manifests of builds that nobody compiled."""

from typing import Any

from build.manifest import Manifest, manifest_of


def a_manifest(**about: Any) -> Manifest:
    """Return a manifest of Postgres 18.6 with what `about` says."""
    source = {"kind": "cache", "digest": "sha256:" + "cd" * 32, "location": "postgresql.tar.bz2"}
    made = {"version": "postgres@18.6", "release": "18.6", "key": "ab" * 32, "source": source, "patches": []}
    return manifest_of({**made, **about})
