"""The descriptor of each database engine, and the registry class that requires an entry for every engine.

Each engine is described once, in `ENGINES`. What belongs to one room only, such as the server class, is in a
registry of that room, which is keyed by engine as well. A registry that lacks an engine fails when it is
imported, so that no engine is ever treated as another one.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from build.version import Engine, Version, is_prerelease, is_release, release_numbers

Entry = TypeVar("Entry")


class IncompleteRegistryError(LookupError):
    """A registry lacks an engine. This is a bug, which shows as soon as the registry is imported."""


class EngineRegistry(dict[Engine, Entry]):
    """A mapping with one entry for every engine.

    `what` names the kind of entry (`recipe`), and `module` is the module that defines the registry
    (`__name__`); the error message names both. Raises IncompleteRegistryError if an engine has no entry.
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
    """Where an engine's source is published.

    Templates may contain `{release}` (18.6, 19beta1), `{series}` (its first two numbers), `{major}` (the
    first) and `{debian}` (the release as Debian writes it: `19~beta1`, which comes before `19.0`). A tarball
    has the same bytes at every address: `build/sources/versions.toml` pins its digest.
    """

    tarball: str
    """Template of the URL of a release tarball on upstream's own site."""

    git: str
    """URL of upstream's git repository, used for other refs than releases if no git source is given."""

    branch: str
    """The branch of that repository on which the next version is developed."""

    pools: tuple[str, ...]
    """Templates of the paths, relative to an apt base URL, at which a release tarball may be found."""

    def tarball_url(self, release: str) -> str:
        """Return upstream's URL of the tarball of `release`."""
        return _expand(self.tarball, release)

    def pool_paths(self, release: str) -> list[str]:
        """Return the paths, relative to an apt base URL, at which the tarball of `release` may be found."""
        return [_expand(template, release) for template in self.pools]


def _expand(template: str, release: str) -> str:
    parts = release.split(".")
    major, debian = parts[0], release
    if is_prerelease(release):
        major = str(release_numbers(release)[0])
        debian = f"{major}~{release.removeprefix(major)}"
    return template.format(release=release, series=".".join(parts[:2]), major=major, debian=debian)


@dataclass(frozen=True)
class ShortNames:
    """How tables from other benchmarks abbreviate a release of an engine: `pg1710`, `my8405`."""

    prefix: str
    """The letters before the digits: `pg`."""

    digits: str
    """A regular expression that matches all digits, with one group for each number of the release."""

    rule: str
    """The same rule in words, for the error message about digits that do not match."""

    prerelease: str = ""
    """A regular expression for what stands there for a prerelease, with a group for each part of its tag."""

    def release(self, digits: str) -> str | None:
        """Return the release that `digits` abbreviate (17.10 for `1710`), or None if they do not match."""
        match = re.fullmatch(self.digits, digits)
        return ".".join(str(int(number)) for number in match.groups()) if match else None


@dataclass(frozen=True)
class EngineDescription:
    """The descriptor of one engine: its names, version scheme and upstream."""

    title: str
    """The name in running text."""

    product: str
    """The name that the server gives itself, which tables of other people have: PostgreSQL."""

    tag_prefix: str
    """The beginning of upstream's tag for a release."""

    tag_separator: str
    """The separator between the numbers in such a tag."""

    one_number_since: int | None
    """The first major version whose branch line is named by its first number alone (postgres 17.x: 17).
    Earlier lines are named by two numbers (mysql 8.0.x: 8.0); None if all lines are."""

    upstream: Upstream

    compare_page: str
    """URL of upstream's web page for a range of commits; `old...new` is appended to it."""

    commit_page: str
    """URL of upstream's web page for one commit; its name is appended to it."""

    short_names: ShortNames

    server_program: str
    """The name of the server's processes in the kernel's process table."""

    tree_files: tuple[str, ...]
    """Names at the top of its source, which together no other engine has."""

    needs_submodules: bool = False
    """Whether a commit cannot be compiled without its submodules, which are not taken from git."""

    def release_tag(self, release: str) -> str:
        """Return upstream's tag for `release`: `REL_18_6`, `REL_19_BETA1`, `mysql-9.7.2`."""
        return self.prerelease_tag(release) or self.tag_prefix + release.replace(".", self.tag_separator)

    def release_of_tag(self, tag: str) -> str | None:
        """Return the release that a tag is of, `18.6` for `REL_18_6`; None for any other tag."""
        numbers = tag.removeprefix(self.tag_prefix).replace(self.tag_separator, ".").lower()
        release = re.sub(r"\.(beta|rc)", r"\1", numbers)
        return release if is_release(release) and self.release_tag(release) == tag else None

    def prerelease_tag(self, name: str) -> str | None:
        """Return the tag of a prerelease by its short name: `REL_18_BETA2` for `18beta2`; None for others."""
        match = re.fullmatch(self.short_names.prerelease, name)
        parts = match.groups() if match else ()
        return self.tag_prefix + self.tag_separator.join(parts).upper() if parts else None

    def line(self, release: str) -> str:
        """Return the branch line that `release` belongs to: `17` for 17.11, `8.0` for 8.0.45."""
        numbers = release_numbers(release)
        one_number = self.one_number_since is not None and numbers[0] >= self.one_number_since
        return ".".join(map(str, numbers[: 1 if one_number else 2]))


ENGINES = EngineRegistry(
    "description",
    __name__,
    {
        Engine.POSTGRES: EngineDescription(
            title="Postgres",
            product="PostgreSQL",
            tag_prefix="REL_",
            tag_separator="_",
            one_number_since=10,
            upstream=Upstream(
                tarball="https://ftp.postgresql.org/pub/source/v{release}/postgresql-{release}.tar.bz2",
                git="https://git.postgresql.org/git/postgresql.git",
                branch="master",
                pools=(
                    "pool/main/p/postgresql-{major}/postgresql-{major}_{debian}.orig.tar.bz2",
                    "pool/updates/main/p/postgresql-{major}/postgresql-{major}_{debian}.orig.tar.bz2",
                ),
            ),
            compare_page="https://github.com/postgres/postgres/compare/",
            commit_page="https://github.com/postgres/postgres/commit/",
            short_names=ShortNames(
                prefix="pg",
                # A leading 9 belongs to a release with three numbers: 9.6.24, not 96.24.
                digits="([1-8][0-9])([0-9]+)",
                rule="two digits of the major version, from 10, and then the minor version",
                prerelease="([1-8][0-9])0?((?:beta|rc)[0-9]+)",
            ),
            server_program="postgres",
            tree_files=("GNUmakefile.in", "contrib", "src"),
        ),
        Engine.MYSQL: EngineDescription(
            title="MySQL",
            product="MySQL",
            tag_prefix="mysql-",
            tag_separator=".",
            one_number_since=None,
            upstream=Upstream(
                # This tarball includes Boost in every version. From 8.3 on it is the only one, with Boost in
                # extra/.
                tarball="https://cdn.mysql.com/Downloads/MySQL-{series}/mysql-{release}.tar.gz",
                git="https://github.com/mysql/mysql-server.git",
                branch="trunk",
                pools=("pool/main/m/mysql-{series}/mysql-{series}_{debian}.orig.tar.gz",),
            ),
            compare_page="https://github.com/mysql/mysql-server/compare/",
            commit_page="https://github.com/mysql/mysql-server/commit/",
            short_names=ShortNames(
                prefix="my",
                digits="([0-9])([0-9])([0-9]+)",
                rule="one digit, one digit, and the rest of the release",
            ),
            server_program="mysqld",
            tree_files=("libmysql", "mysys", "sql", "storage"),
        ),
        Engine.MARIADB: EngineDescription(
            title="MariaDB",
            product="MariaDB",
            tag_prefix="mariadb-",
            tag_separator=".",
            one_number_since=None,
            upstream=Upstream(
                tarball="https://archive.mariadb.org/mariadb-{release}/source/mariadb-{release}.tar.gz",
                git="https://github.com/MariaDB/server.git",
                branch="main",
                pools=(
                    "pool/main/m/mariadb/mariadb_{debian}.orig.tar.gz",
                    "pool/updates/main/m/mariadb/mariadb_{debian}.orig.tar.gz",
                ),
            ),
            compare_page="https://github.com/MariaDB/server/compare/",
            commit_page="https://github.com/MariaDB/server/commit/",
            short_names=ShortNames(
                prefix="ma",
                digits="([0-9]{2})([0-9]{2})([0-9]{2})",
                rule="two digits of each of three numbers",
            ),
            server_program="mariadbd",
            tree_files=("libmariadb", "mysys", "sql", "storage"),
            needs_submodules=True,
        ),
    },
)
"""Every engine that Tidemark compiles and measures."""


def git_ref(version: Version) -> str:
    """Return the branch, tag or commit to look up in a git source; for a release, upstream's tag."""
    if version.is_release:
        return ENGINES[version.engine].release_tag(version.ref)
    return version.ref.removeprefix("git:")
