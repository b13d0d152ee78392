"""An install prefix as a build: which one a name means, and whether it is still the same."""

import json
import os
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from build import host
from build.build import Build
from build.files import json_value, make_folder, write_atomically
from build.home import ROOT, Home, user_name
from build.installs.content import PrefixError, digest_of, require_not_open_to_all, stamp_of
from build.installs.facts import KINDS, compile_options, compiler_of, require_programs, said_by
from build.version import INSTALL_DIGITS, Version, parse_revision


def read_install(prefix: Path, named: Version) -> Build:
    """Return the build that is installed in a folder; its version has the name of `named` and the digest.

    Raises PrefixError if it is no install prefix of that engine, or of another architecture.
    """
    from build.manifest import manifest_of  # needs a package, and command lines are parsed without any

    require_programs(prefix, named.engine)
    require_not_open_to_all(prefix)
    stamp = stamp_of(prefix)
    key = digest_of(prefix, named.engine)
    release, said = said_by(prefix, named.engine)
    if stamp_of(prefix) != stamp:
        raise PrefixError(
            f"{prefix} changes while it is read", hint="wait until it is installed, and start again"
        )
    version = replace(named, ref=f"{named.install_name}={key[:INSTALL_DIGITS]}")
    server = prefix / "bin" / KINDS[named.engine].programs[0]
    manifest = manifest_of(
        {
            "format": 1,
            "key": key,
            "engine": str(named.engine),
            "version": str(version.plain),
            "release": release,
            "source": {"kind": "install", "location": str(prefix), "digest": f"sha256:{key}"},
            "recipe": {"says": said, **compile_options(prefix, named.engine)},
            "patches": [],
            "compiler": {"command": "", "version": compiler_of(server), "target": ""},
            "host": {
                "os": host.os_name(),
                "architecture": host.architecture(),
                "glibc": host.glibc_version(),
            },
            "built_at": datetime.fromtimestamp(server.stat().st_mtime, UTC).isoformat(timespec="seconds"),
        }
    )
    return Build(version, release, key, prefix, manifest, stamp)


def recorded_install(version: Version, home: Home) -> Build:
    """Return the install that a version names by path, or by the digest of an install that was read before.

    Its path is kept, so that the digest names it from now on. Raises PrefixError.
    """
    if "/" in version.installed:
        build = read_install(Path(version.installed), version)
        record = make_folder(home.installs) / f"{version.engine}-{build.key[:INSTALL_DIGITS]}.json"
        write_atomically(record, json.dumps({"prefix": str(build.prefix)}) + "\n")
        return build
    prefix = prefix_of(version, home)
    build = read_install(prefix, version)
    if build.version.plain != version.plain:
        raise PrefixError(
            f"{prefix} is not {version} any more: its programs have the digest {build.version.installed}",
            hint=f"name it by its path to measure what is there now: "
            f"{version.engine}@{version.install_name}={prefix}",
        )
    return build


def owned_by_others(build: Build) -> str:
    """Return who may change an install besides root and this user, as a sentence; '' if nobody may."""
    trusted = {0, os.geteuid(), ROOT.stat().st_uid}
    folders = (build.prefix, build.prefix / "bin", build.program(KINDS[build.version.engine].programs[0]))
    owners = {path.stat().st_uid for path in folders} - trusted
    names = ", ".join(sorted(map(user_name, owners)))
    return f"{build.prefix} belongs to {names}, who may change it while it is measured" if names else ""


def prefix_of(version: Version, home: Home) -> Path:
    """Return the path of an install that `recorded_install` has read before. Raises PrefixError."""
    try:
        record = home.installs / f"{version.engine}-{version.installed}.json"
        return Path(json_value(record.read_text(encoding="utf-8"))["prefix"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise PrefixError(
            f"no install prefix with the digest {version.installed} was read on this machine",
            hint=f"name it by its path: {version.engine}@{version.install_name}=/PATH",
        ) from error


def recorded_version(text: str) -> Version:
    """Return the version that `text` names, and for the path of an install prefix what the history has.

    Raises VersionError and PrefixError.
    """
    version = parse_revision(text)
    if "/" not in version.installed:
        return version
    return read_install(Path(version.installed), version).version


def require_unchanged(build: Build) -> None:
    """Raise PrefixError if what is installed in the prefix of a build is not what it was; others pass."""
    if not build.stamp or stamp_of(build.prefix) == build.stamp:
        return
    found = digest_of(build.prefix, build.version.engine)
    if found != build.key:
        raise PrefixError(
            f"{build.prefix} has changed: it was {build.version}, now it is {found[:INSTALL_DIGITS]}",
            hint="install each build into a folder of its own, and measure again",
        )
