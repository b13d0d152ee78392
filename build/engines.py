"""What the program knows of each database engine in general, and the registry that asks for every engine.

Each engine is described once, in `ENGINES`. What only one room may know, such as the class of its server,
stands in a registry of that room, which is keyed by the engine as well. A registry without an entry for an
engine fails when it is imported, so that no engine is ever treated as another one.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from build.version import Engine, Version, release_numbers

Entry = TypeVar("Entry")


class IncompleteRegistryError(LookupError):
    """A registry lacks the entry of an engine: a mistake in the program, seen when it is imported."""


class EngineRegistry(dict[Engine, Entry]):
    """One entry for every engine, under the engine's key.

    `what` is what an entry says (`recipe`), `module` the module that holds the registry (`__name__`): the
    error names both. Raises IncompleteRegistryError when an engine has no entry.
    """

    def __init__(self, what: str, module: str, entries: Mapping[Engine, Entry]) -> None:
        missing = [str(engine) for engine in Engine if engine not in entries]
        if missing:
            raise IncompleteRegistryError(
                f"no {what} for {', '.join(missing)}: add an entry to the registry in {module}"
            )
        super().__init__(entries)


@dataclass(frozen=True)
class Upstream:
    """Where an engine's source comes from.

    Templates may hold `{release}` (18.6), `{series}` (its first two numbers) and `{major}` (its first). A
    tarball has the same bytes wherever it comes from: `build/sources/versions.toml` pins its digest.
    """

    tarball: str
    """Template of the address of a release's tarball on upstream's own site."""

    git: str
    """Upstream's git repository: serves refs that are no release when no other git source is given."""

    pools: tuple[str, ...]
    """Templates of the paths, below each base address of apt, at which a release's tarball may lie."""

    def tarball_url(self, release: str) -> str:
        """Upstream's address of a release tarball."""
        return _filled(self.tarball, release)

    def pool_paths(self, release: str) -> list[str]:
        """Paths below an apt base address at which a release's tarball may lie."""
        return [_filled(template, release) for template in self.pools]


def _filled(template: str, release: str) -> str:
    parts = release.split(".")
    return template.format(release=release, series=".".join(parts[:2]), major=parts[0])


@dataclass(frozen=True)
class ShortNames:
    """How the tables of others write a release of an engine without dots: `pg1710`, `my8405`."""

    prefix: str
    """What stands before the digits: `pg`."""

    digits: str
    """A regular expression over all digits, with one group for each number of the release."""

    rule: str
    """The same in words, for the error about digits that do not fit."""

    def release(self, digits: str) -> str | None:
        """The release that `digits` stand for (`1710` is 17.10); None when they stand for none."""
        match = re.fullmatch(self.digits, digits)
        return ".".join(str(int(number)) for number in match.groups()) if match else None


@dataclass(frozen=True)
class EngineDescription:
    """What the program knows of one engine, whatever it does with it."""

    title: str
    """The name as people write it."""

    tag_prefix: str
    """What upstream's tag of a release begins with."""

    tag_separator: str
    """What stands between the numbers in such a tag."""

    one_number_since: int | None
    """The first major version whose branch line is named by its first number alone (postgres 17.x: 17); all
    others are named by two (mysql 8.0.x: 8.0). None when all are."""

    upstream: Upstream

    compare_page: str
    """Where people look at a range of commits: an address that `old...new` is appended to."""

    short_names: ShortNames

    server_program: str
    """The program of the server, as the kernel names its process."""

    service: str
    """What the service of a server that the distribution installed is usually called."""

    def release_tag(self, release: str) -> str:
        """The tag that upstream gives a release: `REL_18_6`, `mysql-9.7.2`."""
        return self.tag_prefix + release.replace(".", self.tag_separator)

    def line(self, release: str) -> str:
        """The branch line that a release belongs to: `17` of 17.11, `8.0` of 8.0.45."""
        numbers = release_numbers(release)
        one = self.one_number_since is not None and numbers[0] >= self.one_number_since
        return ".".join(map(str, numbers[: 1 if one else 2]))


ENGINES = EngineRegistry(
    "description",
    __name__,
    {
        Engine.POSTGRES: EngineDescription(
            title="Postgres",
            tag_prefix="REL_",
            tag_separator="_",
            one_number_since=10,
            upstream=Upstream(
                tarball="https://ftp.postgresql.org/pub/source/v{release}/postgresql-{release}.tar.bz2",
                git="https://git.postgresql.org/git/postgresql.git",
                pools=(
                    "pool/main/p/postgresql-{major}/postgresql-{major}_{release}.orig.tar.bz2",
                    "pool/updates/main/p/postgresql-{major}/postgresql-{major}_{release}.orig.tar.bz2",
                ),
            ),
            compare_page="https://github.com/postgres/postgres/compare/",
            short_names=ShortNames(
                prefix="pg",
                # A 9 in front would be one of the versions with three numbers: 9.6.24, not 96.24.
                digits="([1-8][0-9])([0-9]+)",
                rule="two digits of the major version, from 10, and then the minor version",
            ),
            server_program="postgres",
            service="postgresql",
        ),
        Engine.MYSQL: EngineDescription(
            title="MySQL",
            tag_prefix="mysql-",
            tag_separator=".",
            one_number_since=None,
            upstream=Upstream(
                # The tarball with boost serves all versions: from 8.3 on it is the only one, and has boost in
                # extra/.
                tarball="https://cdn.mysql.com/Downloads/MySQL-{series}/mysql-{release}.tar.gz",
                git="https://github.com/mysql/mysql-server.git",
                pools=("pool/main/m/mysql-{series}/mysql-{series}_{release}.orig.tar.gz",),
            ),
            compare_page="https://github.com/mysql/mysql-server/compare/",
            short_names=ShortNames(
                prefix="my",
                digits="([0-9])([0-9])([0-9]+)",
                rule="one digit, one digit, and the rest of the release",
            ),
            server_program="mysqld",
            service="mysql",
        ),
    },
)
"""Every engine that Tidemark compiles and measures."""


def git_ref(version: Version) -> str:
    """The branch, tag or commit to ask a git source for; of a release the tag upstream gives it."""
    if version.is_release:
        return ENGINES[version.engine].release_tag(version.ref)
    return version.ref.removeprefix("git:")
