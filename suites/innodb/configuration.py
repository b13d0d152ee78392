"""Rendering the option file of a server from the template of its engine."""

from collections.abc import Mapping
from pathlib import Path
from string import Template

from build.build import Build
from suites.capabilities import knows_setting, require_known, require_setting
from suites.durability import Durability
from suites.sizing import Sizes

SPARE_CONNECTIONS = 20
"""Connections besides the load generator's: for Tidemark, and for a person who inspects the server."""

REDO_FILES = 2
"""Number of files of innodb_log_file_size in the redo log of MySQL before 8.0.30."""


def fill_in(
    template: Path,
    build: Build,
    sizes: Sizes,
    durability: Durability,
    socket: Path,
    settings: Mapping[str, str],
) -> str:
    """Return the text of the option file for a server in the folder of its `socket`.

    Settings of the template that the version does not have are omitted. `settings` come last and therefore
    take precedence. Raises CapabilityError if the version does not have one of them.
    """
    require_known(build)
    for name in settings:
        require_setting(build, name)
    folder = socket.parent
    text = Template(template.read_text(encoding="utf-8")).substitute(
        prefix=build.prefix,
        folder=folder,
        data=folder / "data",
        socket=socket,
        log=folder / "server.log",
        binlog=folder / "data" / "binlog",
        max_connections=sizes.threads + SPARE_CONNECTIONS,
        buffer_bytes=sizes.buffer_bytes,
        flush_at_commit=1 if durability is Durability.FULL else 0,
        redo_bytes=sizes.wal_limit_bytes,
        redo_file_bytes=sizes.wal_limit_bytes // REDO_FILES,
    )
    lines = [line for line in text.splitlines() if _known(build, line)]
    if settings:
        lines += [
            "",
            "# Chosen for this session.",
            *(f"{name} = {value}" for name, value in settings.items()),
        ]
    return "\n".join(lines) + "\n"


def _known(build: Build, line: str) -> bool:
    name, equals, _ = line.partition(" = ")
    return not equals or line.startswith("#") or knows_setting(build, name)
