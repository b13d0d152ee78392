"""Which server has used a data directory: one of the family would upgrade, or damage, that of another."""

import contextlib
import re
from collections.abc import Callable
from pathlib import Path

from build.build import Build
from build.engines import ENGINES, EngineRegistry
from build.files import json_value, read_checked
from build.version import Engine
from suites.server import ServerError

UNKNOWN = "of an unknown release"


_POSTGRES = re.compile(r"([0-9.]{1,20})\s*")
_MARIADB = re.compile(r"([0-9.]{1,20})-MariaDB\s*")


def _of_postgres(data: Path) -> str | None:
    return _release_in(data / "PG_VERSION", _POSTGRES)


def _of_mysql(data: Path) -> str | None:
    """From 8.4 on, a file lists the versions that have used the directory; older ones leave other files."""
    with contextlib.suppress(OSError, ValueError, KeyError, IndexError, TypeError):
        history = json_value(read_checked(data / "mysql_upgrade_history"))["upgrade_history"]
        return re.sub(r"[^0-9.].*", "", str(history[-1]["version"]))
    return UNKNOWN if any((data / name).exists() for name in ("mysql.ibd", "auto.cnf")) else None


def _of_mariadb(data: Path) -> str | None:
    """mariadb-install-db notes its version, as `11.8.6-MariaDB`; the system tables are Aria's."""
    for name in ("mariadb_upgrade_info", "mysql_upgrade_info"):
        release = _release_in(data / name, _MARIADB)
        if release is not None:
            return release
    return UNKNOWN if (data / "aria_log_control").exists() else None


def _release_in(path: Path, pattern: re.Pattern[str]) -> str | None:
    """Return the release that a file consists of, if there is one; the file belongs to the server's user."""
    with contextlib.suppress(OSError, ValueError):
        match = pattern.fullmatch(read_checked(path).decode())
        return match[1] if match else None
    return None


RELEASES: EngineRegistry[Callable[[Path], str | None]] = EngineRegistry(
    "way to tell which release has used a data directory",
    __name__,
    {Engine.POSTGRES: _of_postgres, Engine.MYSQL: _of_mysql, Engine.MARIADB: _of_mariadb},
)
"""For each engine: the release that last used a data directory, UNKNOWN, or None if no release of it did."""


def require_own_data(data: Path, build: Build) -> None:
    """Raise ServerError if another engine, or another release of the same, has used the directory `data`."""
    engine = build.version.engine
    for other, release_of in RELEASES.items():
        last = release_of(data)
        if last is None or (other is engine and last in (build.release, UNKNOWN)):
            continue
        title = ENGINES[other].title
        wanted = build.release if other is engine else f"{ENGINES[engine].title} {build.release}"
        raise ServerError(
            f"the data directory was last used by {title} {last}, not {wanted}",
            where=str(data),
            hint="remove it: every version must be measured on a data directory that it has created",
        )
