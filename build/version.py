"""Versions as the user writes them: `engine@ref`."""

import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from build.errors import TidemarkError, did_you_mean


class VersionError(TidemarkError):
    """A text is not a valid version."""


class Engine(StrEnum):
    """A database engine that Tidemark compiles and measures."""

    POSTGRES = "postgres"
    MYSQL = "mysql"
    MARIADB = "mariadb"


LONGEST_REF = 200
"""Characters: folders and files are named by versions, and a file system's names have at most 255 bytes."""

_DIGITS = 9
"""The most digits of a number of a release."""

_RELEASE = re.compile(rf"[0-9]{{1,{_DIGITS}}}(\.[0-9]{{1,{_DIGITS}}}){{1,2}}")

_PRERELEASE = re.compile(r"([1-9][0-9])(beta|rc)([1-9][0-9]?)")
"""A beta or a release candidate of Postgres: `19beta1`, `19rc1`."""

_STAGES = {"beta": -2, "rc": -1}
"""What stands in place of the second number, so that all of them come before the first release, `19.0`."""

_VARIANT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
# The names that git check-ref-format allows, except those that look like an option or leave a folder.
_GIT_REF = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/+-]*")
_STEPS_BACK = re.compile(r"(?:[~^][0-9]{0,6}){1,16}")
"""`~3`, `^`, `^2~1`: ancestors, by gitrevisions(7). `^{...}`, `@{...}`, `:` and `..` are not accepted."""


_INSTALL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*=[0-9a-f]{12}")
"""`good=0a1b2c3d4e5f`: a name that the user gave an install prefix, and the digest of what is installed."""

INSTALL_DIGITS = 12
"""The hex digits of that digest."""

RELEASE, KEY = re.compile(r"[0-9][0-9A-Za-z.]*"), re.compile(r"[0-9a-f]{64}")
"""What names the folder of a build."""


@dataclass(frozen=True, order=True)
class Version:
    """One version of one engine, as the user writes it.

    `ref` is a release (`18.6`, `9.7.2`, `19beta1`), a branch, tag or commit of a git source (`REL_18_STABLE`,
    `git:5bf748b86b`), or an install prefix with the digest of what is installed (`good=0a1b2c3d4e5f`).
    """

    engine: Engine
    ref: str
    variant: str = ""
    """Distinguishes servers of one version: `postgres@18.6#mine` has settings, compiler flags or patches of
    its own."""

    def __str__(self) -> str:
        return f"{self.engine}@{self.ref}" + (f"#{self.variant}" if self.variant else "")

    @property
    def plain(self) -> "Version":
        """The version without its variant, as sources know it."""
        return Version(self.engine, self.ref)

    @property
    def is_release(self) -> bool:
        """Whether `ref` is a release number, so that there is a tarball of it."""
        return is_release(self.ref)

    @property
    def is_install(self) -> bool:
        """Whether it is an install prefix that the user has, not something to compile."""
        return "=" in self.ref

    @property
    def install_name(self) -> str:
        """The name of an install prefix, `good` of `postgres@good=0a1b2c3d4e5f`; empty for other versions."""
        return self.ref.partition("=")[0] if self.is_install else ""

    @property
    def installed(self) -> str:
        """What is installed: the digest, or the absolute path where it was not read yet; empty for others."""
        return self.ref.partition("=")[2]


def parse_version(text: str) -> Version:
    """Parse `engine@ref` or `engine@ref#variant`.

    Raises VersionError if the engine is unknown, or if the ref is neither a release nor a valid name in git.
    """
    whole, hash_, variant = text.partition("#")
    engine, at, ref = whole.partition("@")
    if not at or not ref:
        raise VersionError(f"'{text[:80]}' is not a version", hint="write engine@ref, such as postgres@18.6")
    if engine not in set(Engine):
        known = ", ".join(Engine)
        raise VersionError(
            f"unknown engine '{engine[:40]}' in '{text[:80]}'",
            hint=f"{did_you_mean(engine[:40], Engine)} the engines are: {known}".strip(),
        )
    if "=" in ref and not is_install(ref):
        raise VersionError(
            f"'{ref[:80]}' in '{text[:80]}' is no install prefix by name and digest",
            hint=f"name a prefix by its path, which has a slash: {engine}@good=/opt/{engine}, "
            f"{engine}@good=./{engine}",
        )
    if not is_ref(ref) and not is_install(ref):
        raise VersionError(
            f"'{ref[:80]}' in '{text[:80]}' is neither a release nor a git ref",
            hint=f"give an install prefix a name: {engine}@good={ref[:80]}" if "/" in ref[:1] else "",
        )
    if hash_ and not is_variant(variant):
        raise VersionError(
            f"'{variant[:80]}' in '{text[:80]}' is not a valid variant",
            hint="use letters, digits, dots, hyphens and underscores, beginning with a letter or digit",
        )
    return Version(Engine(engine), ref, variant)


def parse_revision(text: str) -> Version:
    """Read what may be built: a version, one whose ref ends in steps back, such as `REL_18_STABLE~3`, or an
    install prefix by its path, such as `postgres@good=/opt/pg-a`.

    Such names are never recorded, since they mean another commit or build tomorrow: whoever accepts one
    resolves it first. Raises VersionError.
    """
    whole, hash_, variant = text.partition("#")
    named_path, equals, path = whole.partition("=")
    if equals and "/" in path:
        return _at_path(named_path, path, hash_ + variant)
    base, steps = split_steps(whole)
    if not steps:
        return parse_version(text)
    named = parse_version(base + hash_ + variant)
    if named.is_release:
        raise VersionError(
            f"'{text[:80]}' goes back from a release, which has no parents",
            hint="name the tag in git, such as postgres@REL_18_6~1",
        )
    return Version(named.engine, named.ref + steps, named.variant)


def _at_path(named: str, path: str, variant: str) -> Version:
    stands_for = parse_version(f"{named}={'0' * INSTALL_DIGITS}{variant}")
    if not path.isprintable():
        raise VersionError(f"'{path[:80]!r}' is no path of an install prefix")
    try:
        absolute = Path(path).expanduser().resolve()
    except (OSError, RuntimeError) as error:
        raise VersionError(f"'{path[:80]}' is no path of an install prefix: {error}") from error
    return Version(stands_for.engine, f"{stands_for.install_name}={absolute}", stands_for.variant)


def split_steps(ref: str) -> tuple[str, str]:
    """Split `REL_18_STABLE~3` into the ref and its steps back, which are empty without any."""
    place = next((place for place, character in enumerate(ref) if character in "~^"), len(ref))
    base, steps = ref[:place], ref[place:]
    return (base, steps) if not steps or _STEPS_BACK.fullmatch(steps) else (ref, "")


def is_release(ref: str) -> bool:
    """Return whether `ref` is a release: a number such as `18.6` or `9.7.2`, or a prerelease."""
    return _RELEASE.fullmatch(ref) is not None or is_prerelease(ref)


def is_prerelease(ref: str) -> bool:
    """Return whether `ref` is a beta or a release candidate, such as `19beta1` or `19rc1`."""
    return _PRERELEASE.fullmatch(ref) is not None


def is_ref(ref: str) -> bool:
    """Return whether `ref` is a release or a valid branch, tag or commit name, with or without `git:`."""
    bare = ref.removeprefix("git:")
    invalid = len(ref) > LONGEST_REF or ".." in bare or "//" in bare or bare.endswith((".lock", "/"))
    return _GIT_REF.fullmatch(bare) is not None and not invalid


def is_install(ref: str) -> bool:
    """Return whether `ref` is an install prefix by name and digest."""
    return _INSTALL.fullmatch(ref) is not None and len(ref) <= LONGEST_REF


def is_variant(name: str) -> bool:
    """Return whether `name` can be the name of a variant."""
    return _VARIANT.fullmatch(name) is not None and len(name) <= LONGEST_REF


def release_numbers(release: str) -> tuple[int, ...]:
    """Return the numbers of a release, for comparing releases: (18, 6) for `18.6`, (19,) for `19devel`.

    A prerelease has a negative number in place of the second one: (19, -2, 1) for `19beta1` is less than
    (19, -1, 1) for `19rc1`, which is less than (19, 0) for `19.0`.
    """
    if prerelease := _PRERELEASE.fullmatch(release):
        return int(prerelease[1]), _STAGES[prerelease[2]], int(prerelease[3])
    return tuple(int(part[:_DIGITS]) for part in re.findall(r"[0-9]+", release)[:3])
