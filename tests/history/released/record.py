"""Records a history by the code of a commit, and keeps it beside this file: as SQL text, and its export.

    .venv/bin/python -m tests.history.released.record COMMIT...

There is one of every schema. Before a migration is added, the history of the schema before it is recorded, by
the last commit that has it: `test_released.py` fails without it.
"""

import io
import os
import shutil
import sqlite3
import subprocess
import sys
import tarfile
import tempfile
from contextlib import closing
from pathlib import Path

from build.home import ROOT
from tests.history.released.histories import FOLDER

RECORDING = FOLDER / "recording.py"


def record(commit: str) -> Path:
    """Write the history that a commit records, and return its file; those of the same schema are replaced."""
    with tempfile.TemporaryDirectory() as folder:
        checkout, path = Path(folder) / "checkout", Path(folder) / "history.db"
        archive = _git("archive", "--format=tar", commit)
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            tar.extractall(checkout, filter="data")
        # Only the checkout's own modules, and the packages of this environment.
        environment = os.environ | {"PYTHONPATH": str(checkout)}
        subprocess.run([sys.executable, RECORDING, path], cwd=checkout, env=environment, check=True)
        exported = Path(folder) / "export.ndjson.gz"
        if (checkout / "history/transfer").is_dir():
            words: list[str | Path] = ["-m", "runners", "history", "export", exported, "--history", path]
            subprocess.run([sys.executable, *words], cwd=checkout, env=environment, check=True)
        with closing(sqlite3.connect(path)) as connection:
            (number,) = connection.execute("SELECT max(number) FROM schema_migrations").fetchone()
            dump = "\n".join(connection.iterdump())
        for earlier in FOLDER.glob(f"{number:04}-*"):
            earlier.unlink()
        name = f"{number:04}-{_git('rev-parse', '--short=7', commit).decode().strip()}"
        if exported.exists():
            shutil.copyfile(exported, FOLDER / f"{name}.ndjson.gz")
    written = FOLDER / f"{name}.sql"
    written.write_text(f"{dump}\n", encoding="utf-8")
    return written


def _git(*words: str) -> bytes:
    return subprocess.run(["git", *words], cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout


if __name__ == "__main__":
    for version in sys.argv[1:]:
        print(record(version).relative_to(ROOT))
