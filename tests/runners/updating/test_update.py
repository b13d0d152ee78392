"""`./tidemark update` in a clone, to commits that are well, that fail, and that kill it on the way."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from build.home import ROOT
from history.store.schema_status import newest
from tests.history.released.histories import RELEASED
from tests.runners.updating.clones import Box, git, make_box

pytestmark = pytest.mark.deep("updates of a real checkout, with backups and migrations")

NEXT = newest() + 1
MIGRATION = {
    f"history/store/migrations/{NEXT:04}_more.sql": "CREATE TABLE more (id $integer NOT NULL) $strict;\n"
}
"""A step of the schema that only the new commit has."""

IN_PLACE = 'from build.home import ROOT\nif ROOT.parent.name != ".update":\n'
"""Begins what the new commit does only once it is in use."""


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
    unfinished = (box.checkout / ".update/unfinished").exists()
    return (box.commit, box.edits, unfinished, schema(box.home / "history.db")) == (commit, "", False, 1)


def test_a_box_is_updated_with_its_history(made: Callable[[], Box]) -> None:
    box = made()
    measured = sessions(box.home / "history.db")
    old = box.commit
    new = box.publish(MIGRATION)
    shown = box.update("--dry-run")
    assert (shown.returncode, box.commit) == (0, old)
    assert f"{old[:12]} to {new[:12]}: 1 new commit" in shown.stdout
    assert f"schema of the history: {NEXT - 1} to {NEXT}" in shown.stdout
    done = box.update()
    assert done.returncode == 0, done.stderr
    assert (box.commit, box.edits, git(box.checkout, "branch", "--show-current")) == (new, "", "main")
    assert (schema(box.home / "history.db"), sessions(box.home / "history.db")) == (NEXT, measured)
    assert schema(box.home / "backups/history-before-update.db") == 1
    assert not (box.home / "update").exists()
    assert "nothing is new" in box.update().stdout
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
            "./tidemark nightly --boxes of the new commit failed with exit code 2",
            id="tried",
        ),
        pytest.param(
            with_line("runners/commands/check.py", f"{IN_PLACE}    raise RuntimeError('a broken check')"),
            "./tidemark check failed with exit code 2: RuntimeError: a broken check",
            id="in use",
        ),
        pytest.param(
            with_line("runners/history/transfers.py", f"{IN_PLACE}    raise RuntimeError('no migration')"),
            "./tidemark history migrate failed with exit code 2: RuntimeError: no migration",
            id="migrating",
        ),
        pytest.param(
            {next(iter(MIGRATION)): "CREATE TABLE sessions (id $integer);\n"},
            "./tidemark history migrate of the new commit failed with exit code 2",
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
    log = Path(done.stderr.partition("where: ")[2].splitlines()[0])
    assert log.parent == box.checkout / ".update/logs"
    assert log.is_file()
    assert is_as_before(box, old)
    assert box.tidemark("history", "show").returncode == 0


KILLS = f"{IN_PLACE}    import os, signal\n    os.kill(os.getppid(), signal.SIGKILL)\n    raise SystemExit(2)"


def test_the_next_command_ends_an_update_that_was_killed(made: Callable[[], Box]) -> None:
    box = made()
    old = box.commit
    box.publish(with_line("runners/commands/check.py", KILLS))
    assert box.update().returncode == -9
    (box.checkout / ".git/index.lock").touch()
    (box.checkout / "runners/cli.py").write_text("half of it")
    done = box.tidemark("history", "show")
    assert done.returncode == 0, done.stderr
    assert f"an update of this checkout was killed; it is at {old} again" in done.stderr
    assert is_as_before(box, old)


def test_an_update_that_was_killed_before_the_migration_is_done(made: Callable[[], Box]) -> None:
    box = made()
    new = box.publish({**MIGRATION, **with_line("runners/history/transfers.py", KILLS)})
    assert box.update().returncode == -9
    assert (box.commit, box.edits, schema(box.home / "history.db")) == (new, "", 1)
    judged = box.tidemark("history", "judge")
    assert schema(box.home / "history.db") == NEXT, judged.stderr


def test_what_would_be_lost_is_refused(made: Callable[[], Box]) -> None:
    box = made()
    old = box.commit
    box.publish({"runners/box.toml": "", **MIGRATION})
    (box.checkout / "runners/box.toml").write_text("a plan of ours")
    done = box.update()
    assert (done.returncode, "files where this checkout has others" in done.stderr) == (2, True)
    (box.checkout / "runners/box.toml").unlink()
    (box.checkout / "compare.py").write_text("edited")
    done = box.update()
    assert (done.returncode, "local edits: compare.py" in done.stderr) == (2, True)
    git(box.checkout, "commit", "--quiet", "--all", "--message", "Ours")
    done = box.update()
    assert (done.returncode, "1 commit that origin lacks" in done.stderr) == (2, True), done.stderr
    git(box.checkout, "reset", "--quiet", "--hard", old)
    done = box.update("--to", "nowhere")
    assert (done.returncode, "no tag, branch or commit 'nowhere'" in done.stderr) == (2, True)
    assert is_as_before(box, old)
