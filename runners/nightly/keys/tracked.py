"""What a plan tracks of an engine: its base, releases, branches and install prefixes."""

from enum import StrEnum

from pydantic import BaseModel, ConfigDict, field_validator, model_validator

from build.addresses import without_secrets
from build.engines import ENGINES
from build.version import (
    Engine,
    Version,
    VersionError,
    is_prerelease,
    is_ref,
    is_release,
    parse_revision,
)


class PlanPart(BaseModel):
    """A part of a plan, in which a key that is not known is a mistake."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Follow(StrEnum):
    """Which new releases are measured without being named."""

    NONE = "none"
    MINOR = "minor"
    """The newest of each line of which the plan names a release."""

    RELEASES = "releases"
    """These, and the newest of each newer line, betas and release candidates included."""


class Tracked(PlanPart):
    """The versions of one engine that are tracked."""

    base: str
    """The release, or install prefix by its path, that all others are compared with in every session."""

    releases: tuple[str, ...] = ()
    """The releases that are measured once in every place; `18.6#NAME` is a variant of one."""

    follow: Follow = Follow.NONE
    """Which new releases are measured besides."""

    branches: tuple[str, ...] = ()
    """The branches that are measured whenever they have moved; `master#NAME` is a variant of one."""

    installs: tuple[str, ...] = ()
    """The install prefixes, `good=/opt/pg-a`, that are measured whenever their files have changed; a variant
    follows the path: `good=/opt/pg-a#NAME`."""

    git: str | None = None
    """The git source of the branches: a URL, or a path on the box; None for that of the environment."""

    @field_validator("git")
    @classmethod
    def _no_password(cls, value: str | None) -> str | None:
        if value is not None and without_secrets(value) != value:
            raise ValueError("it holds a user name, password or token, which git shows in the process list")
        return value

    @field_validator("releases")
    @classmethod
    def _releases(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for name in value:
            if not is_release(_plain(name)):
                raise ValueError(f"'{name}' is not a release; name branches under `branches`")
        return value

    @field_validator("branches")
    @classmethod
    def _branches(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for name in value:
            if not is_ref(_plain(name)):
                raise ValueError(f"'{name}' is not a valid branch name")
        return value

    @model_validator(mode="after")
    def _no_repeats(self) -> "Tracked":
        for name, entries in (
            ("releases", self.releases),
            ("branches", self.branches),
            ("installs", tuple(map(install_branch, self.installs))),
        ):
            if len(set(entries)) != len(entries):
                raise ValueError(f"{name}: an entry is listed twice")
        for name in {*map(install_branch, self.installs)} & {*self.branches}:
            raise ValueError(f"installs: {name} is a branch, too")
        return self

    @property
    def base_version(self) -> Version:
        """The base; an install prefix by its path, which nights read."""
        return parse_revision(self.base)

    @property
    def moving(self) -> tuple[str, ...]:
        """What is measured whenever it has changed: branches, and install prefixes by their names."""
        return (*self.branches, *map(install_branch, self.installs))

    def require_consistent(self, engine: Engine) -> None:
        """Raise ValueError, with the key, unless base and install prefixes are of an engine."""
        try:
            base = self.base_version
        except VersionError as error:
            raise ValueError(f"engines.{engine}.base: {error.what}") from error
        if base.engine is not engine or not (base.is_release or _is_path(base)):
            raise ValueError(
                f"engines.{engine}.base: {self.base} is not a release of {engine}, or a prefix by its path"
            )
        for ref in (base.ref, *map(_plain, self.releases)):
            if is_prerelease(ref) and ENGINES[engine].prerelease_tag(ref) is None:
                raise ValueError(f"engines.{engine}: {ENGINES[engine].title} has no releases such as {ref}")
        if base.ref in self.releases:
            raise ValueError(f"engines.{engine}.releases: {base.ref} is the base already")
        for entry in self.installs:
            try:
                version = parse_revision(f"{engine}@{entry}")
            except VersionError as error:
                raise ValueError(f"engines.{engine}.installs: {error.what}") from error
            if not _is_path(version):
                raise ValueError(f"engines.{engine}.installs: '{entry}' is not NAME=/PATH")


def install_branch(entry: str) -> str:
    """Return what the history calls the branch of an entry of `installs`: `good#v` of `good=/opt/pg-a#v`."""
    path, hash_, variant = entry.partition("#")
    return path.partition("=")[0] + hash_ + variant


def _is_path(version: Version) -> bool:
    return version.is_install and version.installed.startswith("/")


def _plain(ref: str) -> str:
    return ref.partition("#")[0]
