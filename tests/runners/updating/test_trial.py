"""What is tried of a commit: histories of every schema, an environment beside the one in use."""

import shutil
import sqlite3
import subprocess
from collections.abc import Collection
from contextlib import closing
from pathlib import Path

import pytest

from build.home import ROOT, Home
from build.progress import Silent
from history.store.schema_status import newest
from runners.cli import main
from runners.updating.calls import Calls
from runners.updating.checkout import UpdateError
from runners.updating.trial import Trial
from tests.history.released.histories import RELEASED, ReleasedHistory

pytestmark = pytest.mark.deep("a whole command in a process of its own")

# --- the history


class InProcess(Calls):
    """Carries out what the launcher of either commit is called with: both are this checkout."""

    def call(
        self,
        tree: Path,
        *words: str,
        home: Path | None = None,
        own: bool = False,
        fine: Collection[int] = (0,),
    ) -> int:
        del tree, home, own
        code = main(list(words))
        if code not in fine:
            raise UpdateError(f"{words} failed")
        return code


def held(path: Path) -> tuple[int, int, int]:
    """The schema of a history, and how many sessions and measurements it holds."""
    queries = ("max(number) FROM schema_migrations", "count(*) FROM sessions", "count(*) FROM measurements")
    with closing(sqlite3.connect(path)) as connection:
        schema, sessions, values = (connection.execute(f"SELECT {query}").fetchone()[0] for query in queries)
    return schema, sessions, values


@pytest.mark.parametrize("released", RELEASED, ids=str)
def test_a_copy_of_each_schema_is_migrated_and_the_history_is_left(
    released: ReleasedHistory, tmp_path: Path
) -> None:
    home = Home(tmp_path / "home")
    path = released.write(home.history)
    (home.path / "update").mkdir()
    before = held(path)
    trial = Trial(InProcess(home, tmp_path / "logs"), ROOT, ROOT, path, tmp_path / "plan.toml", Silent())
    trial.migrate_copy()
    assert (before[0], held(path)) == (released.schema, before)
    assert held(trial.home.history) == held(trial.home.path / "before.db") == (newest(), *before[1:])


def test_a_migration_that_loses_sessions_is_no_success(tmp_path: Path) -> None:
    class Losing(InProcess):
        def call(
            self,
            tree: Path,
            *words: str,
            home: Path | None = None,
            own: bool = False,
            fine: Collection[int] = (0,),
        ) -> int:
            code = super().call(tree, *words, home=home, own=own, fine=fine)
            if words[:2] == ("history", "migrate"):
                with closing(sqlite3.connect(words[-1])) as connection, connection:
                    connection.execute("UPDATE sessions SET uid = uid || '-lost'")
            return code

    home = Home(tmp_path / "home")
    path = RELEASED[-1].write(home.history)
    (home.path / "update").mkdir()
    trial = Trial(Losing(home, tmp_path / "logs"), ROOT, ROOT, path, tmp_path / "plan.toml", Silent())
    with pytest.raises(UpdateError, match="backup"):
        trial.migrate_copy()


# --- the environment


def test_each_commit_uses_the_environment_with_its_packages(tmp_path: Path) -> None:
    box, new = tmp_path / "box", tmp_path / "new"
    for folder in (box, new):
        (folder / "runners").mkdir(parents=True)
        shutil.copy(ROOT / "tidemark", folder)
        (folder / "runners/parsing.py").write_text("import sys\nsys.exit(100)\n")
        (folder / "runners/__main__.py").write_text("import sys\nprint(sys.prefix)\n")
    # Without pip, and with its packages: what the launcher would make takes a minute on a busy machine.
    subprocess.run(["python3", "-P", "-m", "venv", "--without-pip", box / ".venv"], check=True)
    for folder in (box, box / ".venv"):
        (folder / "requirements.txt").write_text("")
    (new / "requirements.txt").write_text("# other packages\n")
    shown = [str(box / "tidemark"), "status"]
    assert subprocess.check_output(shown, text=True).strip() == str(box / ".venv")
    made = (box / ".venv/requirements.txt").stat().st_mtime_ns
    calls = Calls(Home(tmp_path / "home"), tmp_path / "logs")
    trial = Trial(calls, box, new, tmp_path / "history.db", tmp_path / "plan.toml", Silent())
    trial.environment(box / ".venv")
    assert calls.environments == {new: box / ".venv.beside"}
    assert (box / ".venv/requirements.txt").stat().st_mtime_ns == made
    assert subprocess.check_output(shown, text=True).strip() == str(box / ".venv")
    shutil.copy(new / "requirements.txt", box)
    assert subprocess.check_output(shown, text=True).strip() == str(box / ".venv.beside")
    (new / "requirements.txt").write_text("")  # the packages from before are there already
    trial.environment(box / ".venv.beside")
    assert calls.environments == {new: box / ".venv"}
    assert (box / ".venv/requirements.txt").stat().st_mtime_ns == made
