"""Obtaining the source of a version: sources are tried in order, and the log says which one was used."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from build.engines import git_ref
from build.errors import TidemarkError
from build.home import Home
from build.installs import owned_by_others, recorded_install
from build.lock import held
from build.progress import Progress
from build.sources import download, git
from build.sources.git import HEAD, GitError, NoSuchRefError
from build.sources.releases import (
    Release,
    find_release,
    known_releases,
    pinned_digest,
    pins_file,
    record_pin,
)
from build.sources.repository import git_address, known_address, repository_address, variable
from build.version import Version, split_steps

RESOLVED_DIGITS = 12
"""Digits of a commit in the name of a version, as a bisect writes it."""


class SourceError(TidemarkError):
    """No source gave the version."""


class AbsentVersionError(SourceError):
    """Every source was asked, and none has the version."""


@dataclass(frozen=True)
class Source:
    """The source of one version, verified."""

    version: Version

    kind: str
    """Where the source came from: `cache`, `git`, `upstream` or `apt-pool`."""

    digest: str
    """The identity of the source: `sha256:…` of the tarball, or `git:commit:tree`."""

    location: str
    """The tarball's file name, or the git URL without passwords and tokens."""

    tarball: Path | None = None
    """The tarball in the source cache; None for a git source."""

    commit: git.Commit | None = None
    """The commit in the mirror; None for a tarball."""

    def to_json(self) -> dict[str, Any]:
        """Return the source for the manifest, without URLs of package mirrors or paths of this machine."""
        about: dict[str, Any] = {"kind": self.kind, "location": self.location, "digest": self.digest}
        if self.commit is not None:
            about |= {"commit": self.commit.commit, "tree": self.commit.tree}
        return about


def known_sources(version: Version, home: Home, git_source: str | None = None) -> list[Source]:
    """Return the sources of a version that are known without network and without reading a tarball.

    They are the tarball of a pinned release, whose digest is known even if the file `tarball` does not exist
    yet, and a commit that is in the mirror already. The list is empty for a branch.
    """
    known: list[Source] = []
    release = find_release(version, home)
    if release is not None and release.sha256 is not None:
        known.append(_tarball(release, "cache", _cached_tarball(release, home), release.sha256))
    repository = repository_of(version, home, git_source)
    if repository is not None:
        mirrored = _from_mirror(version, repository)
        known += [mirrored] if mirrored else []
    return known


def obtain(version: Version, home: Home, progress: Progress, git_source: str | None = None) -> Source:
    """Fetch the source of a version from the first place that has it.

    Raises SourceError with the reason of every place if none gives it, and AbsentVersionError if each said
    that it does not have it.
    """
    reasons: list[str] = []
    is_absent = True
    with held(_lock(version, home), lambda: progress.note(f"{version}: another process fetches the source")):
        for name, attempt in _attempts(version, home, progress, git_source):
            try:
                source = attempt()
            except TidemarkError as error:
                where = f" ({error.where})" if error.where else ""
                todo = f"; {error.hint}" if error.hint else ""
                reasons.append(f"{name}: {error.what}{where}{todo}")
                is_absent = is_absent and isinstance(error, _SAY_ABSENT)
                continue
            if source is not None:
                _report(source, reasons, progress)
                return source
            reasons.append(f"{name}: {_ABSENT}")
    raise _not_available(version, home, reasons, is_absent=is_absent)


_ABSENT = "not there"

_SAY_ABSENT = (download.AbsentFileError, NoSuchRefError, AbsentVersionError)
"""The errors of places that answered and do not have a version."""


def resolved(version: Version, home: Home, progress: Progress, git_source: str | None = None) -> Version:
    """Return the version with the commit in place of steps back (`postgres@main~3`) and of HEAD, and the
    digest in place of the path of an install prefix; any other as it is.

    A branch is asked for anew, as it is when it is built. Raises GitError or PrefixError.
    """
    if version.is_install:
        build = recorded_install(version, home)
        progress.note(f"{version}: {build.release}, recorded as {build.version}")
        if others := owned_by_others(build):
            progress.note(others)
        return build.version
    if not _is_relative(version):
        return version
    address = repository_address(version.engine, git_source)
    found = _from_git(version, git.mirror(address, version.engine, home), progress)
    assert found.commit is not None
    progress.note(f"{version}: commit {found.commit.commit}")
    return _at_commit(version, found.commit)


def as_recorded(version: Version, home: Home, git_source: str | None) -> Version:
    """Return the name under which a version was measured: the commit in place of steps back and of HEAD.

    Raises GitError if no repository was named that knows it, and none is around the current folder.
    """
    if version.is_install or not _is_relative(version):
        return version
    address = known_address(version.engine, git_source)
    if address is None:
        raise GitError(
            f"which commit {version} is, only its repository knows",
            hint=f"name the repository with --git or {variable(version.engine)}, or start the command in the "
            "clone",
        )
    repository = git.mirror(address, version.engine, home)
    return _at_commit(version, repository.fetch(git_ref(version)))


def repository_of(version: Version, home: Home, given: str | None) -> git.Mirror | None:
    """Return the mirror of the git source to use; None for a release if no git source was given.

    The tarball of a release is a far smaller download than upstream's repository.
    """
    if version.is_release and git_address(version.engine, given) is None:
        return None
    return git.mirror(repository_address(version.engine, given), version.engine, home)


def _is_relative(version: Version) -> bool:
    """Whether its ref means another commit tomorrow, and is never recorded."""
    base, steps = split_steps(version.ref.removeprefix("git:"))
    return bool(steps) or base == HEAD


def _at_commit(version: Version, commit: git.Commit) -> Version:
    return Version(version.engine, f"git:{commit.commit[:RESOLVED_DIGITS]}", version.variant)


Attempt = tuple[str, Callable[[], Source | None]]


def _attempts(version: Version, home: Home, progress: Progress, git_source: str | None) -> Iterator[Attempt]:
    """Yield the sources in the order in which they are tried, with their names in messages."""
    release = find_release(version, home)
    if release is not None:
        yield "source cache", lambda: _from_cache(release, home, progress)
    repository = repository_of(version, home, git_source)
    if repository is not None:
        yield f"git {repository.shown}", lambda: _from_git(version, repository, progress)
    if release is not None:
        yield "upstream", lambda: _from_upstream(release, home, progress)
        yield "apt pool", lambda: _from_pool(release, home, progress)


def _cached_tarball(release: Release, home: Home) -> Path:
    paths = [home.sources / name for name in release.file_names]
    return next((path for path in paths if path.exists()), paths[0])


def _from_cache(release: Release, home: Home, progress: Progress) -> Source | None:
    path = _cached_tarball(release, home)
    if not path.exists():
        return None
    if release.sha256 is None:
        raise SourceError(f"{path.name} is there, but no digest that it must have is known")
    sha256 = download.sha256_of(path)
    try:
        download.check_digest(path.name, sha256, release.sha256)
    except download.DigestError:
        path.unlink()
        raise
    return _accepted(release, "cache", path, sha256, home, progress)


def _from_mirror(version: Version, repository: git.Mirror) -> Source | None:
    commit = repository.find(git_ref(version))
    return None if commit is None else _commit(version, repository, commit)


def _from_git(version: Version, repository: git.Mirror, progress: Progress) -> Source:
    mirrored = _from_mirror(version, repository)
    if mirrored is not None:
        return mirrored
    return _commit(version, repository, replace(repository, progress=progress).fetch(git_ref(version)))


def _from_upstream(release: Release, home: Home, progress: Progress) -> Source:
    return _downloaded(release, "upstream", release.tarball_url, release.sha256, home, progress)


def _from_pool(release: Release, home: Home, progress: Progress) -> Source:
    addresses = download.apt_addresses()
    if not addresses:
        raise AbsentVersionError(
            "apt lists no package archive (either apt is not installed, or `apt-get update` never ran)"
        )
    reasons: list[str] = []
    is_absent, hint = True, ""
    for path in release.pool_paths:
        name = path.rpartition("/")[2]
        expected = release.sha256 or download.signed_digest(name)
        if expected is None:
            reasons.append(f"{name} has no known digest: no signed index of sources that apt has lists it")
            hint = _ADD_SOURCES
            continue
        for address in addresses:
            try:
                return _downloaded(release, "apt-pool", address + path, expected, home, progress)
            except download.DownloadError as error:
                reasons.append(error.what)
                is_absent = is_absent and isinstance(error, download.AbsentFileError)
    raise (AbsentVersionError if is_absent else SourceError)("; ".join(dict.fromkeys(reasons)), hint=hint)


_ADD_SOURCES = "have apt read the source packages of an archive that has it (deb-src, then apt-get update)"


def _downloaded(
    release: Release, kind: str, url: str, expected: str | None, home: Home, progress: Progress
) -> Source:
    path = home.sources / url.rpartition("/")[2]
    sha256 = download.download(url, path, expected, progress)
    return _accepted(release, kind, path, sha256, home, progress)


def _accepted(release: Release, kind: str, path: Path, sha256: str, home: Home, progress: Progress) -> Source:
    if release.sha256 is None:
        record_pin(release.version, sha256, home)
        shown = {"upstream": "of upstream's file, over HTTPS", "apt-pool": "of apt's signed index"}[kind]
        progress.note(f"{release.version}: no digest was pinned; recorded SHA-256 {sha256}, {shown}")
    return _tarball(release, kind, path, sha256)


def _tarball(release: Release, kind: str, path: Path, sha256: str) -> Source:
    return Source(release.version, kind, f"sha256:{sha256}", path.name, tarball=path)


def _commit(version: Version, repository: git.Mirror, commit: git.Commit) -> Source:
    digest = f"git:{commit.commit}:{commit.tree}"
    return Source(version, "git", digest, repository.shown, commit=commit)


def _report(source: Source, reasons: list[str], progress: Progress) -> None:
    commit = f" at commit {source.commit.commit[:12]}" if source.commit else ""
    for reason in reasons:
        if not reason.endswith(_ABSENT):
            progress.note(f"{source.version}: {reason}")
    names = {"cache": "the source cache", "git": "git", "upstream": "upstream", "apt-pool": "the apt pool"}
    progress.note(f"{source.version}: source from {names[source.kind]}: {source.location}{commit}")


def _lock(version: Version, home: Home) -> Path:
    return home.sources / ".locks" / str(version).replace("/", "+")


def _not_available(version: Version, home: Home, reasons: list[str], *, is_absent: bool) -> SourceError:
    """Return the error with the reasons of all places; `is_absent` if each has said that it has none."""
    hints = [] if is_absent else ["check that these places can be reached"]
    if version.is_release:
        known = ", ".join(known_releases(version.engine, home))
        hints.append(f"the releases of {version.engine} with a pinned digest are {known}")
        if not is_absent and pinned_digest(version, home) is None:
            pin = json.dumps({version.engine: {version.ref: "SHA-256"}})
            hints.append(f"to pin the digest that upstream publishes, write {pin} to {pins_file(home)}")
    kind = AbsentVersionError if is_absent else SourceError
    what = f"no source has {version}" if is_absent else f"the source of {version} cannot be had"
    return kind(f"{what}:\n" + "\n".join(f"    {reason}" for reason in reasons), hint="; ".join(hints))
