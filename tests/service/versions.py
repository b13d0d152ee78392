"""Two Tidemarks with one history: this one, and its next version, whose schema has one migration more."""

import shutil
from pathlib import Path

from history.store import migrate, schema_status
from history.store.schema_status import MIGRATIONS, newest

_READING = (schema_status.newest, migrate.load, migrate.migrate)
"""The functions whose last default is the folder of the migrations."""


def next_version(folder: Path) -> Path:
    """Write the migrations of the next version into a new folder, and return it."""
    shutil.copytree(MIGRATIONS, folder, ignore=shutil.ignore_patterns("__pycache__"))
    added = folder / f"{newest() + 1:04}_service_year.sql"
    added.write_text("CREATE TABLE service_year (\n    id $id\n) $strict;\n", encoding="utf-8")
    return folder


def use(migrations: Path = MIGRATIONS) -> None:
    """From now on be the version with these migrations."""
    for function in _READING:
        function.__defaults__ = (migrations,)
