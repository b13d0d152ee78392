"""The settings and features of each engine's versions: the only module that compares version numbers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from string import Template

from build.engines import EngineRegistry
from build.errors import TidemarkError
from build.finished_build import Build
from build.version import Engine
from suites.keys.durability import Isolation


class CapabilityError(TidemarkError):
    """A version does not support what was requested."""


class SettingError(CapabilityError):
    """A server does not know a setting, or refuses its value."""


Numbers = tuple[int, ...]

DEVELOPMENT = "devel"
"""What the release of a branch ends with that is under development."""


@dataclass(frozen=True)
class SupportedVersions:
    """The versions that have a setting, and a hint for the others."""

    since: Numbers = (0,)
    """The first version that has the setting."""
    until: Numbers = (1000,)
    """The first version that no longer has it."""
    instead: str = ""
    """What to do in a version without the setting, for error messages."""

    def includes(self, numbers: Numbers) -> bool:
        """Return whether a version has the setting."""
        return self.since <= numbers < self.until


@dataclass(frozen=True)
class EngineCapabilities:
    """The differences between the versions of one engine."""

    oldest: Numbers
    """The oldest version that can be measured."""

    most_connections: int
    """The most that the setting max_connections accepts."""

    isolation: Callable[[Isolation], tuple[str, str]]
    """Returns the setting of the default isolation, and its value."""

    settings: Mapping[str, SupportedVersions]
    """Settings that not every version has. Every other setting is assumed to exist in all versions."""

    program: str = ""
    """The program that has the names of its settings as strings, which tell what a release under development
    has; empty for an engine whose settings do not come in between releases."""

    initdb: Mapping[str, SupportedVersions] = field(default_factory=dict)
    """The same of options of initdb, and of `option=value` where only a value is new."""


def _only_of_mysql(instead: str) -> SupportedVersions:
    """A setting of MySQL that no version of MariaDB has."""
    return SupportedVersions(until=(0,), instead=instead)


CAPABILITIES = EngineRegistry(
    "capabilities",
    __name__,
    {
        Engine.POSTGRES: EngineCapabilities(
            oldest=(13,),
            most_connections=262_143,
            isolation=lambda level: ("default_transaction_isolation", level.replace("-", " ")),
            program="postgres",
            settings={
                "io_method": SupportedVersions(since=(18,), instead="reads are always synchronous before 18"),
            },
            initdb={
                "locale-provider": SupportedVersions(since=(15,)),
                # Releases before 16 are compiled without ICU.
                "locale-provider=icu": SupportedVersions(since=(16,)),
                "icu-locale": SupportedVersions(since=(16,)),
                "locale-provider=builtin": SupportedVersions(since=(17,)),
                "builtin-locale": SupportedVersions(since=(17,)),
                "no-data-checksums": SupportedVersions(since=(18,)),
            },
        ),
        Engine.MYSQL: EngineCapabilities(
            oldest=(5, 7),
            most_connections=100_000,
            isolation=lambda level: ("transaction_isolation", level.upper()),
            settings={
                "innodb_redo_log_capacity": SupportedVersions(
                    since=(8, 0, 30), instead="set innodb_log_file_size"
                ),
                "innodb_log_file_size": SupportedVersions(
                    until=(8, 0, 30), instead="set innodb_redo_log_capacity"
                ),
                "innodb_idle_flush_pct": SupportedVersions(
                    since=(8, 0, 18), instead="idle flushing is not limited before 8.0.18"
                ),
                # An option of the command line that only reads the configuration.
                "validate_config": SupportedVersions(since=(8, 0, 16)),
                "binlog_format": SupportedVersions(
                    until=(9, 0), instead="omit it: from 9.0 on, ROW is the only format intended for use"
                ),
            },
        ),
        Engine.MARIADB: EngineCapabilities(
            oldest=(10, 11),
            most_connections=100_000,
            # In the option file of every version; as a variable it is tx_isolation before 11.1.
            isolation=lambda level: ("transaction_isolation", level.upper()),
            settings={
                "innodb_change_buffering": SupportedVersions(
                    until=(11, 0), instead="omit it: from 11.0 on, there is no change buffer"
                ),
                "innodb_redo_log_capacity": _only_of_mysql("set innodb_log_file_size"),
                "innodb_idle_flush_pct": _only_of_mysql("idle flushing is not limited"),
                "gtid_mode": _only_of_mysql("omit it: global transaction ids are always written"),
            },
        ),
    },
)

NATIVE_PASSWORD_UNTIL: Numbers = (8, 0)
"""From this version on, accounts use caching_sha2_password; 9.0 removed mysql_native_password."""


def require_engine(build: Build, engines: tuple[Engine, ...], suite: str) -> None:
    """Raise CapabilityError if `suite` does not run on the engine of `build`."""
    if build.version.engine not in engines:
        raise CapabilityError(
            f"suite {suite} does not run on {build.version.engine}",
            hint="it runs on: " + ", ".join(engines),
        )


def require_known(build: Build) -> None:
    """Raise CapabilityError if the version of `build` is older than the oldest that can be measured."""
    oldest = CAPABILITIES[build.version.engine].oldest
    if build.numbers < oldest:
        raise CapabilityError(
            f"{build.version} is too old to be measured",
            hint="the oldest version that can be measured is " + ".".join(map(str, oldest)),
        )


def knows_setting(build: Build, name: str) -> bool:
    """Return whether the version of `build` has the setting `name`."""
    capabilities = CAPABILITIES[build.version.engine]
    return _has(build, capabilities.settings.get(name), capabilities.program, name)


def require_setting(build: Build, name: str) -> None:
    """Raise CapabilityError, with a hint, if the version of `build` does not have the setting `name`."""
    if not knows_setting(build, name):
        instead = CAPABILITIES[build.version.engine].settings[name].instead
        raise SettingError(f"{build.version} has no setting {name}", hint=instead)


def rendered(
    template: Path,
    build: Build,
    values: Mapping[str, object],
    of_layers: Sequence[str],
    chosen: Mapping[str, str],
    line_of: Callable[[str, str], str],
) -> str:
    """Return the text of a server's configuration: the settings of a template that the version has.

    `values` are filled in. The lines of its layers follow, then those of `chosen` settings by `line_of`,
    which take precedence. Raises CapabilityError if the version is too old, or lacks one of the chosen ones.
    """
    require_known(build)
    for name in chosen:
        require_setting(build, name)
    text = Template(template.read_text(encoding="utf-8")).substitute(values)
    lines = [line for line in text.splitlines() if _has_setting_of(build, line)]
    for title, further in (
        ("# The layers of this version.", of_layers),
        ("# Chosen for this session.", [line_of(name, value) for name, value in chosen.items()]),
    ):
        lines += ["", title, *further] if further else []
    return "\n".join(lines) + "\n"


def _has_setting_of(build: Build, line: str) -> bool:
    name, equals, _ = line.partition(" = ")
    return not equals or line.startswith("#") or knows_setting(build, name)


def knows_initdb_option(build: Build, name: str) -> bool:
    """Return whether the initdb of a build has an option, or `option=value`."""
    return _has(build, CAPABILITIES[build.version.engine].initdb.get(name), "initdb", *name.split("="))


def _has(build: Build, supported: SupportedVersions | None, program: str, *names: str) -> bool:
    """Return whether a build has what only the `supported` versions have.

    A branch calls itself `18devel` from its first commit on, and what is new in 18 comes in during the year
    that follows. So a `program` under development is asked by the names that are among its strings.
    """
    if supported is None:
        return True
    if not supported.includes(build.numbers):
        return False
    is_new = supported.since[0] == build.numbers[0] and DEVELOPMENT in build.release
    if not (is_new and program and build.program(program).is_file()):
        return True
    return all(_has_string(build.program(program), name) for name in names)


@lru_cache(maxsize=256)
def _has_string(program: Path, text: str) -> bool:
    """Return whether a program of a build, which never changes, has a string."""
    return f"\0{text}\0".encode() in program.read_bytes()


def login_plugin(build: Build) -> str:
    """Return the authentication plugin for the accounts of a MySQL server."""
    if build.numbers < NATIVE_PASSWORD_UNTIL:
        return "mysql_native_password"
    return "caching_sha2_password"
