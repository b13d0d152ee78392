"""What a try compares: a branch with its merge base, a patch with what it applies to, an install prefix."""

import hashlib
import re
from dataclasses import dataclass, field
from pathlib import Path

from build.engines import ENGINES
from build.errors import TidemarkError
from build.home import Home
from build.installs.install import recorded_install
from build.sources.commits import merge_base
from build.sources.git import mirror
from build.sources.repository import git_address
from build.version import Engine, Version, parse_revision
from runners.measuring.variants import Variant, Variants

TRIED = "try"
"""The variant that a patched version is called."""

DIGITS = 12
"""The hex digits of a commit in the name of a version."""

MAX_PATCH_BYTES = 20_000_000
"""The size of a patch that is read."""

_CHANGES_A_FILE = re.compile(rb"^(--- |diff --git )", re.MULTILINE)

_BASE_COMMIT = re.compile(rb"^base-commit: ([0-9a-f]{40})\s*$", re.MULTILINE)
"""The line with which `git format-patch --base` names the commit that a patch applies to."""


class TryError(TidemarkError):
    """There is nothing that could be tried."""


@dataclass(frozen=True)
class Sides:
    """The two versions of a try."""

    base: Version
    tip: Version
    described: str
    """What is tried, in one line for people."""

    variants: Variants = field(default_factory=dict)
    git: str | None = None
    """The git source of both; None for a release from its tarball."""


def sides_of(
    what: str, against: str | None, engine: Engine, git: str | None, home: Home, *, is_published: bool = False
) -> Sides:
    """Return what a command line compares; `what` is a ref, with or without its engine, or a patch.

    A patch applies to `against`, by default the commit that it names itself, else upstream's main branch; a
    ref is compared with its merge base with `against`, and an install prefix, or a ref with one, with what
    `against` names itself. With `is_published` a branch or tag of the git source has to lead to both. Raises
    TryError, VersionError, PrefixError or GitError.
    """
    path = Path(what)
    if path.is_file() and is_patch(path):
        return _of_patch(path, against, engine, git, home)
    if "/" in what and path.suffix in (".patch", ".diff"):
        raise TryError(f"there is no patch {what}", hint="name a file, or a branch, tag or commit")
    if any("=" in name for name in (what, against or "")):
        return _of_install(what, against, engine, git, home, is_published)
    return _of_ref(what, against, engine, git, home, is_published)


def is_patch(file: Path) -> bool:
    """Return whether a file has a line with which the part of a patch begins that changes a file."""
    with file.open("rb") as opened:
        return _CHANGES_A_FILE.search(opened.read(MAX_PATCH_BYTES)) is not None


def read_version(text: str, engine: Engine) -> Version:
    """Return the version of a ref, which may name its engine. Raises VersionError."""
    named = text.partition("@")[0] in set(Engine)
    return parse_revision(text if named else f"{engine}@{text}")


def base_commit_of(patch: bytes) -> str | None:
    """Return the commit that a patch says that it applies to; None if it names none."""
    found = _BASE_COMMIT.findall(patch)
    return found[-1].decode() if found else None


def _of_patch(path: Path, against: str | None, engine: Engine, git: str | None, home: Home) -> Sides:
    if path.stat().st_size > MAX_PATCH_BYTES:
        raise TryError(f"the patch {path.name} is larger than {MAX_PATCH_BYTES // 1_000_000} MB")
    text = path.read_bytes()
    named = base_commit_of(text)
    base = read_version(against or (f"git:{named}" if named else _main(engine)), engine)
    if base.is_install:
        raise TryError(
            f"{base} is installed, and has no source that a patch applies to",
            hint="name the release, branch or commit that it was compiled from",
        )
    base, address = _as_it_is(base, git, home)
    name = f"{path.name} ({hashlib.sha256(text).hexdigest()[:8]})"
    tip = Version(base.engine, base.ref, TRIED)
    return Sides(base, tip, f"{name} on {base}", {TRIED: Variant(patches=(path.resolve(),))}, address)


def _of_install(
    what: str, against: str | None, engine: Engine, git: str | None, home: Home, is_published: bool
) -> Sides:
    if is_published:
        raise TryError("a workflow tries no install prefix", where=what, hint="name a branch, tag or commit")
    if against is None:
        raise TryError(
            f"{what} is installed, and has no merge base",
            hint="name what it is compared with: --against VERSION",
        )
    tip, base = read_version(what, engine), read_version(against, engine)
    _require_comparable(tip, base)
    tip, ours = _as_it_is(tip, git, home)
    base, theirs = _as_it_is(base, git, home)
    if tip.installed and tip.installed == base.installed:
        raise TryError(
            f"{base} and {tip} have the same programs: there is nothing to try",
            where=f"{against}, {what}",
            hint="check that both prefixes are what you mean, and installed",
        )
    return Sides(base, tip, f"{tip} against {base}", git=ours or theirs)


def _as_it_is(version: Version, git: str | None, home: Home) -> tuple[Version, str | None]:
    """Return a version as it is recorded, and its git source: a branch is its commit, a path its digest.

    Raises GitError or PrefixError.
    """
    if version.is_install:
        return recorded_install(version, home).version, None
    address = git_address(version.engine, git)
    if version.is_release:
        return version, address
    address = address or ENGINES[version.engine].upstream.git
    return _commit(version, mirror(address, version.engine, home).fetch(_ref(version)).commit), address


def _require_comparable(tip: Version, other: Version) -> None:
    if other.engine is not tip.engine:
        raise TryError(f"{tip} and {other} are of two engines", hint="compare versions of one engine")
    if tip.variant or other.variant:
        raise TryError(
            "a try compares plain versions", where=f"{tip}, {other}", hint="omit what follows the #"
        )


def _of_ref(
    what: str, against: str | None, engine: Engine, git: str | None, home: Home, is_published: bool
) -> Sides:
    tip = read_version(what, engine)
    other = read_version(against or _main(tip.engine), tip.engine)
    _require_comparable(tip, other)
    address = git_address(tip.engine, git) or ENGINES[tip.engine].upstream.git
    source = mirror(address, tip.engine, home)
    new, base = merge_base(source, tip.engine, tip.ref, other.ref, is_published=is_published)
    if new == base:
        raise TryError(
            f"{other} contains {tip}: there is nothing to try",
            where=f"{tip} is {new[:DIGITS]}",
            hint="name what it is to be compared with: --against REF",
        )
    described = f"{tip} ({new[:DIGITS]}) against {base[:DIGITS]}, where it leaves {other.ref}"
    return Sides(_commit(tip, base), _commit(tip, new), described, git=address)


def _main(engine: Engine) -> str:
    return f"{engine}@{ENGINES[engine].upstream.branch}"


def _ref(version: Version) -> str:
    return version.ref.removeprefix("git:")


def _commit(version: Version, commit: str) -> Version:
    return Version(version.engine, f"git:{commit[:DIGITS]}")
