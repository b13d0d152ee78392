"""What each engine and version can and cannot do: the one place that compares version numbers."""

from dataclasses import dataclass

from build.build import Build
from build.errors import TidemarkError
from build.version import Engine


class CapabilityError(TidemarkError):
    """Something was asked of a version that it cannot do."""


@dataclass(frozen=True)
class Since:
    """The first major version that has something, and what to say to those before it."""

    major: int
    instead: str


POSTGRES_OLDEST = 13
"""The oldest major version whose settings and system views are known here."""

POSTGRES_SETTINGS: dict[str, Since] = {
    "io_method": Since(18, "reads are always synchronous before 18"),
}
"""Settings of the template that not every version knows."""


def require_engine(build: Build, engines: tuple[Engine, ...], suite: str) -> None:
    """Raise CapabilityError when `suite` does not run on the engine of `build`."""
    if build.version.engine not in engines:
        raise CapabilityError(
            f"suite {suite} does not run on {build.version.engine}",
            hint="it runs on: " + ", ".join(engines),
        )


def require_postgres(build: Build) -> None:
    """Raise CapabilityError for versions older than POSTGRES_OLDEST."""
    if build.major < POSTGRES_OLDEST:
        raise CapabilityError(
            f"{build.version} is too old to be measured",
            hint=f"the oldest version that can be is {POSTGRES_OLDEST}",
        )


def knows_setting(build: Build, name: str) -> bool:
    """Whether this version of Postgres has the setting `name` of the configuration template."""
    since = POSTGRES_SETTINGS.get(name)
    return since is None or build.major >= since.major


def require_setting(build: Build, name: str) -> None:
    """Raise CapabilityError with what to do instead when this version does not have the setting `name`."""
    if not knows_setting(build, name):
        raise CapabilityError(f"{build.version} has no setting {name}", hint=POSTGRES_SETTINGS[name].instead)
