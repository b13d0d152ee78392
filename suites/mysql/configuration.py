"""Rendering my.cnf for a version, the sizes of a machine and a durability."""

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

TEMPLATE = Path(__file__).with_name("my.cnf.in")

# Of the question whether a server accepts a configuration.
_CHECK_SECONDS = 60.0

SPARE_CONNECTIONS = 20
"""Connections besides the load generator's: for Tidemark, and for a person who inspects the server."""

LEAST_OPEN_TABLES = 4000
"""The default of table_open_cache."""

OPEN_TABLES_OF_CLIENT = 16
"""Tables that one connection may have open at once."""

REDO_FILES = 2
"""Number of files of innodb_log_file_size in the redo log before 8.0.30."""


def render(
    build: Build, sizes: Sizes, durability: Durability, folder: Path, settings: Mapping[str, str]
) -> str:
    """Return the text of my.cnf for a server in `folder`.

    Settings that the version does not have are omitted. `settings` come last and therefore take precedence.
    Raises CapabilityError if the version does not have one of them.
    """
    require_known(build)
    for name in settings:
        require_setting(build, name)
    text = Template(TEMPLATE.read_text(encoding="utf-8")).substitute(
        prefix=build.prefix,
        folder=folder,
        data=folder / "data",
        socket=folder / "mysqld.sock",
        log=folder / "server.log",
        binlog=folder / "data" / "binlog",
        max_connections=sizes.connections + SPARE_CONNECTIONS,
        table_open_cache=max(LEAST_OPEN_TABLES, sizes.connections * OPEN_TABLES_OF_CLIENT),
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


_REFUSED = re.compile(r"\[ERROR\] (?:\[MY-\d+\] )?(?:\[Server\] )?(.*)$")


def check(build: Build, text: str) -> None:
    """Ask the server whether it accepts `text`, a whole configuration, without a data directory.

    Raises SettingError with the names of settings that it does not know and of values that it refuses.
    Versions without `--validate-config` are not asked; they refuse to start.
    """
    if not knows_setting(build, "validate_config"):
        return
    with tempfile.TemporaryDirectory() as folder:
        own(Path(folder))
        file = Path(folder) / "my.cnf"
        # Errors go to stderr, not to a log whose folder does not exist yet.
        kept = [line for line in text.splitlines() if not line.startswith("log_error =")]
        write_for_server(file, "\n".join(kept) + "\n")
        command: list[str | Path] = [build.program("mysqld"), f"--defaults-file={file}", "--validate-config"]
        try:
            run(as_server_user(command), what="reading the configuration", seconds=_CHECK_SECONDS)
        except ProcessError as error:
            lines = (match[1] for line in error.hint.splitlines() if (match := _REFUSED.search(line)))
            reasons = [line.rstrip(".") for line in lines if line != "Aborting"]
            raise SettingError(
                f"{build.version} refuses its settings: {'; '.join(reasons) or error.hint}",
                hint="correct --set, or the settings of the variant in the plan",
            ) from error


def _known(build: Build, line: str) -> bool:
    name, equals, _ = line.partition(" = ")
    return not equals or line.startswith("#") or knows_setting(build, name)
