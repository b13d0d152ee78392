"""`./tidemark service update`: this box at the newest commit, or where it was before when that fails.

From the moment when files of the checkout change, modules that this process has not loaded would be those of
the other commit: it only calls programs then.
"""

import argparse
import os
import pwd
import subprocess
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from build.errors import TidemarkError
from build.home import ROOT, Home, locate
from build.sources.git import run
from history.counts import counted
from history.open import is_server
from runners.console import progress
from runners.measuring.machine_lock import UNDER_WAY
from runners.nightly.plan import load_plan, plan_history
from runners.occupancy.waiting import machine_awaited
from runners.service.installed import installed_variables, plan_in_use
from suites.processes import tool

BACKUP = "history-before-update.db"
FETCH_SECONDS = 7200.0
MAX_SHOWN = 20
"""The most commits that are listed."""


class UpdateError(TidemarkError):
    """An update is refused, or failed and left everything as it was."""


def update(arguments: argparse.Namespace) -> int:
    """Update this box; return 0. Raises UpdateError when it stays as it was, GitError, and BusyError."""
    installed = installed_variables()
    chosen = installed.get("TIDEMARK_HOME")
    home = Home(Path(chosen)) if chosen and not os.environ.get("TIDEMARK_HOME") else locate()
    plan = plan_in_use(arguments.plan).absolute()
    history = plan_history(load_plan(plan), home)
    _require_unchanged()
    with progress() as shown:
        with shown.task("fetching"):
            _git("fetch", "--quiet", seconds=FETCH_SECONDS)
        old, new = _git("rev-parse", "HEAD"), _git("rev-parse", "@{upstream}")
        commits = _git("log", "--format=%h %s", f"{old}..{new}").splitlines()
        print(f"{old[:12]} to {new[:12]}: {counted(len(commits), 'new commit')}", flush=True)
        print("".join(f"  {line}\n" for line in commits[:MAX_SHOWN]), end="", flush=True)
        if not commits or arguments.dry_run:
            return 0
        with machine_awaited(home, 60 * arguments.wait, shown):
            _require_unchanged()  # it may have waited for long
            _Switch(home, history, plan, old, new, bool(installed)).carry_out()
    print(f"updated to {new[:12]}; {old[:12]} is back by: git -C {ROOT} reset --keep {old[:12]}")
    return 0


@dataclass(frozen=True)
class _Switch:
    """The change from one commit to another."""

    home: Home
    history: Path | str
    plan: Path
    old: str
    new: str
    is_installed: bool

    @property
    def _backup(self) -> Path:
        return self.home.backups / BACKUP

    @property
    def _has_history(self) -> bool:
        return is_server(self.history) or Path(self.history).is_file()

    def carry_out(self) -> None:
        if self._has_history:
            self._history("backup", str(self._backup))
        _git("merge", "--ff-only", "--quiet", self.new)
        is_migrated = False
        try:
            self._set_up()
            if self._has_history:
                is_migrated = True
                self._history("migrate")
            self._call("nightly", "--boxes", "--plan", str(self.plan))
            self._call("check", fine=(0, 1))
        except BaseException as error:
            self._go_back(error, restores=is_migrated)
            raise

    def _set_up(self) -> None:
        self._call("setup", is_owner=True)
        if self.is_installed:
            self._call("service", "install", is_owner=True)

    def _go_back(self, error: BaseException, *, restores: bool) -> None:
        """Put the old commit back, and a history that it can read."""
        try:
            _git("reset", "--keep", "--quiet", self.old)
            if restores and is_server(self.history):
                error.add_note(f"the history is on a server: restore {self._backup} there if it is migrated")
            elif restores:
                self._history("restore", str(self._backup), "--discard")
            self._set_up()
        except TidemarkError as failed:
            error.add_note(f"and it could not be undone: {failed}")
        else:
            error.add_note(f"{self.old[:12]} is in use, as before")

    def _history(self, what: str, *words: str) -> None:
        self._call("history", what, *words, "--history", str(self.history))

    def _call(self, *words: str, is_owner: bool = False, fine: Collection[int] = (0,)) -> None:
        """Call a command as the owner of the home, or of the checkout. Raises UpdateError."""
        command = [] if is_owner else _become_owner(self.home.path)
        # The lock of the machine is held by this process, for all of them.
        around = {
            **os.environ,
            **installed_variables(),
            "TIDEMARK_HOME": str(self.home.path),
            "TIDEMARK_LOCK": str(self.home.path / "update.lock"),
            UNDER_WAY: str(ROOT),
        }
        done = subprocess.run(
            [*command, str(ROOT / "tidemark"), *words],
            env=around,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            cwd="/",
            check=False,
        )
        if done.returncode not in fine:
            said = (done.stderr or done.stdout).strip().splitlines() or ["(nothing)"]
            told = next((line for line in reversed(said) if line.startswith("tidemark: ")), said[-1])
            raise UpdateError(
                f"./tidemark {' '.join(words[:2])} of the new commit failed with {done.returncode}: {told}",
                where=str(ROOT),
            )


def _become_owner(home: Path) -> list[str]:
    """Return the words that become the owner of a home: in it, root would follow the links of others."""
    there = next(folder for folder in (home, *home.parents) if folder.exists()).stat()
    if os.geteuid() != 0 or there.st_uid == 0:
        return []
    group = pwd.getpwuid(there.st_uid).pw_gid
    return [tool("setpriv"), f"--reuid={there.st_uid}", f"--regid={group}", "--clear-groups", "--"]


def _require_unchanged() -> None:
    """Raise UpdateError for a folder that is no clone, or has local edits, which it names."""
    if not (ROOT / ".git").exists():
        raise UpdateError(
            "this folder is no clone of a git repository, so it cannot be updated",
            where=str(ROOT),
            hint="clone Tidemark, and move the folder of outputs (var/) there",
        )
    edited = [line[3:] for line in _git("status", "--porcelain", "--untracked-files=no").splitlines()]
    if edited:
        raise UpdateError(
            f"files of the checkout have local edits: {', '.join(edited[:MAX_SHOWN])}",
            where=str(ROOT),
            hint="commit them in a fork that this checkout follows, or undo them: git restore FILE",
        )


def _git(*arguments: str, seconds: float | None = None) -> str:
    """Return the output of a git command in the checkout. Raises GitError."""
    return run(*arguments, git_dir=ROOT / ".git", work_tree=ROOT, seconds=seconds).strip("\n")
