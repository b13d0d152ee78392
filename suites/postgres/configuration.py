"""Rendering postgresql.conf for a version, the sizes of a machine and a durability."""

import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from string import Template

from build.build import Build
from suites.capabilities import SettingError, knows_setting, require_known, require_setting
from suites.durability import Durability
from suites.processes import ProcessError, as_server_user, own, run, write_for_server
from suites.sizing import Sizes

TEMPLATE = Path(__file__).with_name("postgresql.conf.in")

# Of the question whether a server accepts a configuration.
_CHECK_SECONDS = 60.0

SPARE_CONNECTIONS = 20
"""Connections besides the load generator's: for Tidemark, vacuum, and a person who inspects the server."""


def render(
    build: Build,
    sizes: Sizes,
    durability: Durability,
    socket_folder: Path,
    overrides: Mapping[str, str],
) -> str:
    """Return the text of postgresql.conf.

    Settings that the version does not have are omitted. `overrides` come last and therefore take precedence.
    Raises CapabilityError if the version does not have one of them.
    """
    require_known(build)
    for name in overrides:
        require_setting(build, name)
    text = Template(TEMPLATE.read_text(encoding="utf-8")).substitute(
        socket_folder=_quote(str(socket_folder)),
        max_connections=sizes.connections + SPARE_CONNECTIONS,
        shared_buffers=_megabytes(sizes.buffer_bytes),
        maintenance_work_mem=_megabytes(min(sizes.buffer_bytes // 4, 1024**3)),
        synchronous_commit="on" if durability is Durability.FULL else "off",
        max_wal_size=_megabytes(sizes.wal_limit_bytes),
        min_wal_size=_megabytes(min(sizes.wal_limit_bytes, 1024**3)),
        maintenance_workers=sizes.workers,
        effective_cache_size=_megabytes(2 * sizes.buffer_bytes),
        io_method="sync",
    )
    lines = [line for line in text.splitlines() if _known(build, line)]
    chosen = [f"{name} = '{_quote(value)}'" for name, value in overrides.items()]
    if chosen:
        lines += ["", "# Chosen for this session.", *chosen]
    return "\n".join(lines) + "\n"


_REFUSED = re.compile(r"(?:LOG|FATAL|ERROR):\s+(.*?)(?: in file \".*)?$")


def check(build: Build, text: str) -> None:
    """Ask the server whether it accepts `text`, a whole configuration, without a data directory.

    Raises SettingError with the names of settings that it does not know and of values that it refuses.
    """
    with tempfile.TemporaryDirectory() as folder:
        own(Path(folder))
        write_for_server(Path(folder) / "postgresql.conf", text)
        command: list[str | Path] = [build.program("postgres"), "-D", folder, "-C", "max_connections"]
        try:
            run(as_server_user(command), what="reading the configuration", seconds=_CHECK_SECONDS)
        except ProcessError as error:
            lines = (match[1] for line in error.what.splitlines() if (match := _REFUSED.search(line)))
            reasons = [line for line in lines if not line.startswith(("skipping", "configuration file"))]
            raise SettingError(
                f"{build.version} refuses its settings: {'; '.join(reasons) or error.what}",
                hint="correct --set, or the settings of the variant in the plan",
            ) from error


def _known(build: Build, line: str) -> bool:
    name, equals, _ = line.partition(" = ")
    return not equals or line.startswith("#") or knows_setting(build, name)


def _megabytes(size: int) -> str:
    return f"{size // 1024**2}MB"


def _quote(value: str) -> str:
    return value.replace("\\", "\\\\").replace("'", "''")
