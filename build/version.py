"""What can be asked for: `engine@ref`."""

import re
from dataclasses import dataclass
from enum import StrEnum

from build.errors import TidemarkError


class VersionError(TidemarkError):
    """The text does not name a version."""


class Engine(StrEnum):
    """A database engine that Tidemark compiles and measures."""

    POSTGRES = "postgres"
    MYSQL = "mysql"


LONGEST_REF = 200
"""Characters: folders and files are named by versions, and a file system's names have at most 255 bytes."""

_DIGITS = 9
"""The most digits of a number of a release."""

_RELEASE = re.compile(rf"[0-9]{{1,{_DIGITS}}}(\.[0-9]{{1,{_DIGITS}}}){{1,2}}")
_VARIANT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
# What git check-ref-format allows, less what could be taken for an option or leave a folder.
_GIT_REF = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/+-]*")


@dataclass(frozen=True, order=True)
class Version:
    """One version of one engine, as a person names it.

    `ref` is a release (`18.6`, `9.7.2`), or a branch, tag or commit of a git source (`REL_18_STABLE`,
    `git:5bf748b86b`).
    """

    engine: Engine
    ref: str
    variant: str = ""
    """Sets builds or runs of one version apart: `postgres@18.6#mine` with a patch, or the same once more."""

    def __str__(self) -> str:
        return f"{self.engine}@{self.ref}" + (f"#{self.variant}" if self.variant else "")

    @property
    def plain(self) -> "Version":
        """The version without its variant: what sources know."""
        return Version(self.engine, self.ref)

    @property
    def is_release(self) -> bool:
        """Whether `ref` is a release number, so that a tarball can serve it."""
        return is_release(self.ref)


def parse_version(text: str) -> Version:
    """Read `engine@ref` or `engine@ref#variant`.

    Raises VersionError when the engine is unknown or the ref is none that git or a release could have.
    """
    whole, hash_, variant = text.partition("#")
    engine, at, ref = whole.partition("@")
    if not at or not ref:
        raise VersionError(f"'{text[:80]}' is not a version", hint="write engine@ref, such as postgres@18.6")
    if engine not in set(Engine):
        known = ", ".join(Engine)
        raise VersionError(
            f"unknown engine '{engine[:40]}' in '{text[:80]}'", hint=f"the engines are: {known}"
        )
    if not is_ref(ref):
        raise VersionError(f"'{ref[:80]}' in '{text[:80]}' is neither a release nor a git ref")
    if hash_ and not (_VARIANT.fullmatch(variant) and len(variant) <= LONGEST_REF):
        raise VersionError(
            f"'{variant[:80]}' in '{text[:80]}' names no variant", hint="letters, digits, dots and hyphens"
        )
    return Version(Engine(engine), ref, variant)


def is_release(ref: str) -> bool:
    """Whether `ref` is a release number such as `18.6` or `9.7.2`."""
    return _RELEASE.fullmatch(ref) is not None


def is_ref(ref: str) -> bool:
    """Whether `ref` is a release, or a branch, tag or commit that git could have; `git:` may precede it."""
    bare = ref.removeprefix("git:")
    refused = len(ref) > LONGEST_REF or ".." in bare or "//" in bare or bare.endswith((".lock", "/"))
    return _GIT_REF.fullmatch(bare) is not None and not refused


def release_numbers(release: str) -> tuple[int, ...]:
    """The numbers of a release, for ordering and version ranges: `18.6` is (18, 6), `19devel` is (19,)."""
    return tuple(int(part[:_DIGITS]) for part in re.findall(r"[0-9]+", release)[:3])
