"""A new commit is tried beside the one in use: its environment, the history, the machine, a short night."""

import shutil
from dataclasses import dataclass
from pathlib import Path

from build.files import make_folder
from build.home import Home
from build.progress import Progress
from history.open import is_server
from runners.updating.calls import Calls
from runners.updating.checkout import UpdateError

TEST_PLAN = "runners/updating/test_night.toml"

BESIDE = ".beside"
"""Ends the name of the second folder for an environment. The launcher knows it."""

_LINKED = ("builds", "sources", "tools", "ccache")
"""What the test night has of the box's home: all else it writes into a home of its own."""


@dataclass(frozen=True)
class Trial:
    """The files of two commits, and the history of a box. It writes into folders of the update alone."""

    calls: Calls
    old: Path
    new: Path
    history: Path | str
    plan: Path
    progress: Progress

    @property
    def home(self) -> Home:
        """The home of the test night, with the copy of the history."""
        return Home(self.calls.home.path / "update")

    def carry_out(self, prefix: Path) -> None:
        """Try the new commit; `prefix` is the environment in use, which is left as it is.

        Raises UpdateError with what failed, and its log.
        """
        if not (self.new / TEST_PLAN).is_file():
            raise UpdateError(
                "the commit is older than ./tidemark update, which could not lead away from it again",
                where="--to",
                hint="git checkout it by hand, and restore a backup that it can read",
            )
        with self.progress.task("making the Python environment"):
            self.environment(prefix)
        with self.progress.task("reading the plan"):
            self.calls.call(self.new, "nightly", "--boxes", "--plan", str(self._new_plan()))
        self.clear()
        self.calls.files("mkdir", "-p", self.home.path)
        if has_history(self.history):
            with self.progress.task("migrating a copy of the history, and checking it"):
                self.migrate_copy()
        with self.progress.task("checking the machine"):
            before = self.calls.call(self.old, "check", fine=(0, 1))
            self.calls.call(self.new, "check", fine=(0, before))
        with self.progress.task("measuring a test night"):
            self.test_night()

    def environment(self, prefix: Path) -> None:
        """Give the new files an environment: the one in use if it has their packages, or one beside it."""
        first = Path(str(prefix).removesuffix(BESIDE))
        folders = (first, first.with_name(first.name + BESIDE))
        wanted = (self.new / "requirements.txt").read_bytes()
        same = [folder for folder in folders if _content(folder / "requirements.txt") == wanted]
        (chosen,) = same[:1] or [folder for folder in folders if folder != prefix]
        if not same:
            if (chosen / "made-by-tidemark").is_file():
                shutil.rmtree(chosen)
            make_folder(chosen)
        self.calls.environments[self.new] = chosen
        # Any command that is carried out has the launcher make what is missing.
        self.calls.call(self.new, "completion", "bash", own=True)

    def migrate_copy(self) -> None:
        """Copy the history with the old commit, and migrate the copy with the new one.

        The copy replaces the one from before as a backup does: it is checked as a whole, and has to hold all
        of its sessions.
        """
        before, copy = self.home.path / "before.db", self.home.history
        self.calls.call(self.old, "history", "backup", str(before), "--history", str(self.history))
        self.calls.files("cp", before, copy)
        self.calls.call(self.new, "history", "migrate", "--history", str(copy))
        self.calls.call(self.new, "history", "backup", str(before), "--history", str(copy))

    def test_night(self) -> None:
        """Measure, record into the copy of the history, judge and report, with the builds of the box."""
        for name in _LINKED:
            self.calls.files("mkdir", "-p", self.calls.home.path / name)
            self.calls.files("ln", "-sfn", self.calls.home.path / name, self.home.path / name)
        plan = str(self.new / TEST_PLAN)
        # 1: a change that the copy has not told of yet.
        self.calls.call(
            self.new, "nightly", "--plan", plan, "--box", "update", home=self.home.path, fine=(0, 1)
        )

    def clear(self) -> None:
        """Remove what an earlier update left in the home."""
        self.calls.files("rm", "-rf", "--one-file-system", self.home.path)

    def _new_plan(self) -> Path:
        """Return the plan as the new commit has it, if it is part of the checkout."""
        if not self.plan.is_relative_to(self.old):
            return self.plan
        return self.new / self.plan.relative_to(self.old)


def has_history(history: Path | str) -> bool:
    """Whether there is a history; before the first night there is none."""
    return is_server(history) or Path(history).is_file()


def _content(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None
