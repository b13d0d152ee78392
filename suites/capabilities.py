"""What each engine and version can and cannot do: the one place that compares version numbers."""

from collections.abc import Mapping
from dataclasses import dataclass

from build.build import Build
from build.engines import EngineRegistry
from build.errors import TidemarkError
from build.version import Engine


class CapabilityError(TidemarkError):
    """Something was asked of a version that it cannot do."""


Numbers = tuple[int, ...]


@dataclass(frozen=True)
class SupportedVersions:
    """The versions that have a setting, and what to say to the others."""

    since: Numbers = (0,)
    """The first version that has it."""
    until: Numbers = (1000,)
    """The first version that no longer has it."""
    instead: str = ""

    def holds(self, numbers: Numbers) -> bool:
        """Whether a version has it."""
        return self.since <= numbers < self.until


@dataclass(frozen=True)
class EngineCapabilities:
    """What is known of the versions of one engine."""

    oldest: Numbers
    """The oldest version whose settings and system views are known here."""

    settings: Mapping[str, SupportedVersions]
    """Settings that not every version has. Settings that are not listed are taken to be in all of them."""


CAPABILITIES = EngineRegistry(
    "capabilities",
    __name__,
    {
        Engine.POSTGRES: EngineCapabilities(
            oldest=(13,),
            settings={
                "io_method": SupportedVersions(since=(18,), instead="reads are always synchronous before 18"),
            },
        ),
        Engine.MYSQL: EngineCapabilities(
            oldest=(5, 7),
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
                "binlog_format": SupportedVersions(
                    until=(9, 0), instead="rows are the only format, or soon will be"
                ),
            },
        ),
    },
)

NATIVE_PASSWORD_UNTIL: Numbers = (8, 0)
"""From here on logins are made with caching_sha2_password; mysql_native_password is gone in 9."""


def require_engine(build: Build, engines: tuple[Engine, ...], suite: str) -> None:
    """Raise CapabilityError when `suite` does not run on the engine of `build`."""
    if build.version.engine not in engines:
        raise CapabilityError(
            f"suite {suite} does not run on {build.version.engine}",
            hint="it runs on: " + ", ".join(engines),
        )


def require_known(build: Build) -> None:
    """Raise CapabilityError for versions older than those whose settings are known here."""
    oldest = CAPABILITIES[build.version.engine].oldest
    if build.numbers < oldest:
        raise CapabilityError(
            f"{build.version} is too old to be measured",
            hint="the oldest version that can be is " + ".".join(map(str, oldest)),
        )


def knows_setting(build: Build, name: str) -> bool:
    """Whether this version has the setting `name`."""
    span = CAPABILITIES[build.version.engine].settings.get(name)
    return span is None or span.holds(build.numbers)


def require_setting(build: Build, name: str) -> None:
    """Raise CapabilityError with what to do instead when this version does not have the setting `name`."""
    if not knows_setting(build, name):
        instead = CAPABILITIES[build.version.engine].settings[name].instead
        raise CapabilityError(f"{build.version} has no setting {name}", hint=instead)


def login_plugin(build: Build) -> str:
    """The plugin that MySQL accounts are made with."""
    if build.numbers < NATIVE_PASSWORD_UNTIL:
        return "mysql_native_password"
    return "caching_sha2_password"
