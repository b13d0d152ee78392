"""`./tidemark service update` in a clone, to a commit that is well, and to commits that fail."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from build.home import ROOT
from history.store.schema_status import newest
from tests.history.released.histories import RELEASED
from tests.runners.service.clones import Box, git, make_box

pytestmark = pytest.mark.deep("updates of a real checkout, with backups and migrations")

NEXT = newest() + 1
MIGRATION = {
    f"history/store/migrations/{NEXT:04}_more.sql": "CREATE TABLE more (id $integer NOT NULL) $strict;\n"
}
"""A step of the schema that only the new commit has."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Box]:
    """Makes boxes, of which each has a history of the first schema."""
    numbers = iter(range(100))

    def make() -> Box:
        folder = tmp_path_factory.mktemp(f"box{next(numbers)}")
        box = make_box(folder)
        RELEASED[0].write(box.home / "history.db")
        return box

    return make


def schema(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute("SELECT max(number) FROM schema_migrations").fetchone()[0])


def sessions(path: Path) -> set[str]:
    with closing(sqlite3.connect(path)) as connection:
        return {uid for (uid,) in connection.execute("SELECT uid FROM sessions")}


def with_line(name: str, line: str) -> dict[str, str]:
    """A module of this checkout with more at its end."""
    return {name: f"{(ROOT / name).read_text()}\n{line}"}


def is_as_before(box: Box, commit: str) -> bool:
    """Whether a box works with a commit, and a history that nobody has touched."""
    return (box.commit, box.edits, schema(box.home / "history.db")) == (commit, "", 1)


def test_a_box_is_updated_with_its_history(made: Callable[[], Box]) -> None:
    box = made()
    measured = sessions(box.home / "history.db")
    old = box.commit
    new = box.publish(MIGRATION)
    shown = box.update("--dry-run")
    assert (shown.returncode, box.commit) == (0, old)
    assert f"{old[:12]} to {new[:12]}: 1 new commit" in shown.stdout
    done = box.update()
    assert done.returncode == 0, done.stderr
    assert (box.commit, box.edits, git(box.checkout, "branch", "--show-current")) == (new, "", "main")
    assert (schema(box.home / "history.db"), sessions(box.home / "history.db")) == (NEXT, measured)
    assert schema(box.home / "backups/history-before-update.db") == 1
    assert ": 0 new commits" in box.update().stdout
    # Another box, with the older commit, on the same history.
    git(box.checkout, "reset", "--quiet", "--hard", old)
    refused = box.tidemark("history", "show")
    assert refused.returncode == 2
    assert f"schema {NEXT} of a newer Tidemark, and this one knows up to {NEXT - 1}" in refused.stderr
    assert "update this box" in refused.stderr


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        pytest.param(
            with_line("runners/nightly/plan.py", "raise RuntimeError('a broken night')"),
            "./tidemark nightly --boxes of the new commit failed with 2",
            id="plan",
        ),
        pytest.param(
            {**MIGRATION, **with_line("runners/commands/check.py", "raise RuntimeError('a broken check')")},
            "./tidemark check of the new commit failed with 2",
            id="check",
        ),
        pytest.param(
            {next(iter(MIGRATION)): "CREATE TABLE sessions (id $integer);\n"},
            "./tidemark history migrate of the new commit failed with 2",
            id="schema",
        ),
    ],
)
def test_a_commit_that_fails_leaves_the_one_before_in_use(
    made: Callable[[], Box], changes: dict[str, str], said: str
) -> None:
    box = made()
    old = box.commit
    box.publish(changes)
    done = box.update()
    assert done.returncode == 2, done.stdout
    assert said in done.stderr
    assert f"{old[:12]} is in use, as before" in done.stderr
    assert is_as_before(box, old)
    assert box.tidemark("history", "show").returncode == 0


def test_what_would_be_lost_is_refused(made: Callable[[], Box]) -> None:
    box = made()
    old = box.commit
    box.publish(MIGRATION)
    (box.checkout / "compare.py").write_text("edited")
    done = box.update()
    assert (done.returncode, "local edits: compare.py" in done.stderr) == (2, True), done.stderr
    git(box.checkout, "commit", "--quiet", "--all", "--message", "Ours")
    ours = box.commit
    done = box.update()
    assert (done.returncode, box.commit) == (2, ours), done.stderr
    git(box.checkout, "reset", "--quiet", "--hard", old)
    assert is_as_before(box, old)
