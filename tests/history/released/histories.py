"""Histories of every schema that ever landed, as the code of its time recorded them (`record.py`)."""

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class ReleasedHistory:
    """A history that an earlier commit recorded."""

    text: Path
    """Its SQL."""

    @property
    def schema(self) -> int:
        """The number of its schema."""
        return int(self.text.name[:4])

    @property
    def export(self) -> Path:
        """What its code exported of it; missing where it could not export yet."""
        return self.text.with_suffix(".ndjson.gz")

    def write(self, path: Path) -> Path:
        """Write it as the file that it was, in WAL mode, and return the path."""
        path.parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.executescript(self.text.read_text(encoding="utf-8"))
        return path

    def __str__(self) -> str:
        """Return its name in the output of tests."""
        return self.text.stem


RELEASED = tuple(ReleasedHistory(path) for path in sorted(FOLDER.glob("*.sql")))
"""In the order of their schemas."""
