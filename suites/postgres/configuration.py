"""Rendering postgresql.conf for a version, the sizes of a machine and a durability."""

from collections.abc import Mapping
from pathlib import Path
from string import Template

from build.build import Build
from suites.capabilities import knows_setting, require_known, require_setting
from suites.durability import Durability
from suites.sizing import Sizes

TEMPLATE = Path(__file__).with_name("postgresql.conf.in")

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
        max_connections=sizes.threads + SPARE_CONNECTIONS,
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


def _known(build: Build, line: str) -> bool:
    name, equals, _ = line.partition(" = ")
    return not equals or line.startswith("#") or knows_setting(build, name)


def _megabytes(size: int) -> str:
    return f"{size // 1024**2}MB"


def _quote(value: str) -> str:
    return value.replace("\\", "\\\\").replace("'", "''")
