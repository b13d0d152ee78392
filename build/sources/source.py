"""Where the source of a version comes from: each source is tried in order, and the log says which served."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from build.engines import ENGINES, git_ref
from build.errors import TidemarkError
from build.home import Home
from build.lock import held
from build.progress import Progress
from build.sources import download, git
from build.sources.releases import Release, find_release, known_releases, record_pin
from build.version import Engine, Version, split_steps

RESOLVED_DIGITS = 12
"""Digits of a commit in the name of a version, as a bisect writes it."""


class SourceError(TidemarkError):
    """No source has the version."""


@dataclass(frozen=True)
class Source:
    """The source of one version, on this machine and checked."""

    version: Version

    kind: str
    """Which source served: `cache`, `git`, `upstream` or `apt-pool`."""

    digest: str
    """What decides whether two sources are the same: `sha256:…` of the tarball, or `git:commit:tree`."""

    location: str
    """The tarball's file name, or the git URL without passwords and tokens."""

    tarball: Path | None = None
    """The tarball in the source cache; None for a git source."""

    commit: git.Commit | None = None
    """The commit in the mirror; None for a tarball."""

    def to_json(self) -> dict[str, Any]:
        """For the manifest; no address of a package mirror and no path of this machine."""
        about: dict[str, Any] = {"kind": self.kind, "location": self.location, "digest": self.digest}
        if self.commit is not None:
            about |= {"commit": self.commit.commit, "tree": self.commit.tree}
        return about


def git_address(engine: Engine, given: str | None) -> str | None:
    """The git source to use: what was given, else the engine's variable (`$TIDEMARK_GIT_POSTGRES`)."""
    return given or os.environ.get(f"TIDEMARK_GIT_{engine.upper()}") or None


def at_hand(version: Version, home: Home, git_source: str | None = None) -> list[Source]:
    """What the source may be, as far as it is known without network and without reading a tarball.

    Of a pinned release the digest is known even when the tarball is not here (`tarball` may not exist); of a
    git source what lies in the mirror already. Empty for a branch.
    """
    known: list[Source] = []
    release = find_release(version, home)
    if release is not None and release.sha256 is not None:
        known.append(_tarball(release, "cache", _cached_tarball(release, home), release.sha256))
    repository = _repository(version, home, git_source)
    if repository is not None:
        commit = _git_at_hand(version, repository)
        known += [commit] if commit else []
    return known


def obtain(version: Version, home: Home, progress: Progress, git_source: str | None = None) -> Source:
    """Get the source onto this machine, from the first place that has it.

    Raises SourceError, with each source's own reason, when none has.
    """
    reasons: list[str] = []
    with held(_lock(version, home), lambda: progress.note(f"{version}: another process fetches the source")):
        for name, attempt in _attempts(version, home, progress, git_source):
            try:
                found = attempt()
            except TidemarkError as error:
                reasons.append(f"{name}: {error.what}" + (f" ({error.where})" if error.where else ""))
                continue
            if found is not None:
                _say(found, reasons, progress)
                return found
            reasons.append(f"{name}: not there")
    raise _none_has_it(version, home, reasons)


def resolved(version: Version, home: Home, progress: Progress, git_source: str | None = None) -> Version:
    """Return the version with the commit in place of steps back (`postgres@main~3`); any other as it is.

    A branch is asked for anew, as it is when it is built. Raises GitError.
    """
    if not split_steps(version.ref)[1]:
        return version
    found = _from_git(version, git.mirror(_address(version, git_source), version.engine, home), progress)
    assert found.commit is not None
    progress.note(f"{version}: commit {found.commit.commit}")
    return Version(version.engine, f"git:{found.commit.commit[:RESOLVED_DIGITS]}", version.variant)


def _address(version: Version, given: str | None) -> str:
    return git_address(version.engine, given) or ENGINES[version.engine].upstream.git


Attempt = tuple[str, Callable[[], Source | None]]


def _attempts(version: Version, home: Home, progress: Progress, git_source: str | None) -> Iterator[Attempt]:
    """The sources in order, each with the name that messages give it."""
    release = find_release(version, home)
    if release is not None:
        yield "source cache", lambda: _from_cache(release, home, progress)
    repository = _repository(version, home, git_source)
    if repository is not None:
        yield f"git {repository.shown}", lambda: _from_git(version, repository, progress)
    if release is not None:
        yield "upstream", lambda: _from_upstream(release, home, progress)
        yield "apt pool", lambda: _from_pool(release, home, progress)


def _repository(version: Version, home: Home, given: str | None) -> git.Mirror | None:
    """The mirror of the git source to ask; None for a release without a git source of its own.

    A release has a tarball, which is far less to download than upstream's whole repository.
    """
    address = git_address(version.engine, given)
    if address is None and version.is_release:
        return None
    return git.mirror(address or ENGINES[version.engine].upstream.git, version.engine, home)


def _cached_tarball(release: Release, home: Home) -> Path:
    paths = [home.sources / name for name in release.file_names]
    return next((path for path in paths if path.exists()), paths[0])


def _from_cache(release: Release, home: Home, progress: Progress) -> Source | None:
    path = _cached_tarball(release, home)
    if not path.exists():
        return None
    sha256 = download.sha256_of(path)
    try:
        download.check_digest(path.name, sha256, release.sha256)
    except download.DigestError:
        path.unlink()
        raise
    return _accepted(release, "cache", path, sha256, home, progress)


def _git_at_hand(version: Version, repository: git.Mirror) -> Source | None:
    commit = repository.find(git_ref(version))
    return None if commit is None else _commit(version, repository, commit)


def _from_git(version: Version, repository: git.Mirror, progress: Progress) -> Source:
    found = _git_at_hand(version, repository)
    if found is not None:
        return found
    with progress.task(f"fetch {repository.shown}"):
        return _commit(version, repository, repository.fetch(git_ref(version)))


def _from_upstream(release: Release, home: Home, progress: Progress) -> Source:
    return _downloaded(release, "upstream", release.tarball_url, home, progress)


def _from_pool(release: Release, home: Home, progress: Progress) -> Source:
    addresses = download.apt_addresses()
    if not addresses:
        raise SourceError(
            "apt names no package archive (is there no apt, or did `apt-get update` never run?)"
        )
    reasons: list[str] = []
    for path in release.pool_paths:
        for address in addresses:
            try:
                return _downloaded(release, "apt-pool", address + path, home, progress)
            except download.DownloadError as error:
                reasons.append(error.what)
    raise SourceError("; ".join(dict.fromkeys(reasons)))


def _downloaded(release: Release, kind: str, url: str, home: Home, progress: Progress) -> Source:
    path = home.sources / url.rpartition("/")[2]
    sha256 = download.download(url, path, release.sha256, progress)
    return _accepted(release, kind, path, sha256, home, progress)


def _accepted(release: Release, kind: str, path: Path, sha256: str, home: Home, progress: Progress) -> Source:
    if release.sha256 is None:
        record_pin(release.version, sha256, home)
        progress.note(f"{release.version}: no digest was pinned; recorded SHA-256 {sha256} at first use")
    return _tarball(release, kind, path, sha256)


def _tarball(release: Release, kind: str, path: Path, sha256: str) -> Source:
    return Source(release.version, kind, f"sha256:{sha256}", path.name, tarball=path)


def _commit(version: Version, repository: git.Mirror, commit: git.Commit) -> Source:
    digest = f"git:{commit.commit}:{commit.tree}"
    return Source(version, "git", digest, repository.shown, commit=commit)


def _say(found: Source, reasons: list[str], progress: Progress) -> None:
    commit = f" at commit {found.commit.commit[:12]}" if found.commit else ""
    for reason in reasons:
        if not reason.endswith("not there"):
            progress.note(f"{found.version}: {reason}")
    names = {"cache": "the source cache", "git": "git", "upstream": "upstream", "apt-pool": "the apt pool"}
    progress.note(f"{found.version}: source from {names[found.kind]}: {found.location}{commit}")


def _lock(version: Version, home: Home) -> Path:
    return home.sources / ".locks" / str(version).replace("/", "+")


def _none_has_it(version: Version, home: Home, reasons: list[str]) -> SourceError:
    known = ", ".join(known_releases(version.engine, home))
    return SourceError(
        f"no source has {version}:\n" + "\n".join(f"    {reason}" for reason in reasons),
        hint=f"the releases of {version.engine} with a pinned digest are {known}",
    )
