"""Putting a commit in the place of another: the checkout, the units, the history; and back when one fails.

From the moment when files of the checkout change, modules that this process has not loaded would be those
of the other commit: it only calls programs then.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from build.errors import TidemarkError
from build.files import write_atomically
from build.lock import held
from build.progress import Progress
from history.open import is_server
from runners.updating.calls import Calls
from runners.updating.checkout import Checkout, News, UpdateError
from runners.updating.trial import has_history

BACKUP = "history-before-update.db"


@dataclass(frozen=True)
class Switch:
    """The change of a box from one commit to another, which was tried."""

    calls: Calls
    checkout: Checkout
    news: News
    history: Path | str
    install: Sequence[str]
    """The command that renews the installed units; empty if there are none."""

    progress: Progress

    def carry_out(self) -> None:
        """Put the new commit in place, or leave the old one there. Raises UpdateError with what failed."""
        backup = self.calls.home.backups / BACKUP
        if has_history(self.history):
            with self.progress.task("backing up the history"):
                self.calls.files("mkdir", "-p", backup.parent)
                self._call("history", "backup", str(backup), "--history", str(self.history))
        with held(self.checkout.lock), self.progress.task("switching"):
            try:
                self._put(self.news.new, self.news.old)
                self._call("check", fine=(0, 1))
                # Before the history is changed: from here on it is the old commit that could not read it.
                self.checkout.unfinished.unlink()
                if has_history(self.history):
                    self._call("history", "migrate", "--history", str(self.history))
            except BaseException as error:
                self._go_back(error, backup)
                raise

    def _put(self, commit: str, otherwise: str) -> None:
        """Change checkout and units to a commit; killed, it leaves word to return to `otherwise`."""
        write_atomically(self.checkout.unfinished, otherwise + "\n")
        self.checkout.change_to(commit)
        if self.install:
            self.calls.call(self.checkout.root, *self.install, own=True, fine=(0, 1))

    def _go_back(self, error: BaseException, backup: Path) -> None:
        """Put the old commit back, and a history that it can read."""
        try:
            self._put(self.news.old, self.news.old)
            self.checkout.unfinished.unlink()
            if has_history(self.history):
                self._require_readable(backup)
        except TidemarkError as failed:
            error.add_note(f"and it could not be undone: {failed}")

    def _require_readable(self, backup: Path) -> None:
        """See that the old commit can read the history; one in a file is restored if only its backup can be.

        Nothing was measured since the backup: the lock of the machine is held. One on a server holds what
        other boxes measured since: the new commit stays, and its next command goes on with the migration.
        """
        probe = str(self.calls.home.path / "update" / "probe.db")
        try:
            self._call("history", "backup", probe, "--history", str(self.history))
        except UpdateError as unreadable:
            if is_server(self.history):
                self._put(self.news.new, self.news.new)
                self.checkout.unfinished.unlink()
                raise UpdateError(
                    "the history is partly migrated, so the new commit stays",
                    where=unreadable.where,
                    hint="./tidemark history migrate --history URL goes on with the migration",
                ) from unreadable
            self._call("history", "restore", str(backup), "--history", str(self.history), "--discard")

    def _call(self, *words: str, fine: Sequence[int] = (0,)) -> None:
        self.calls.call(self.checkout.root, *words, fine=fine)
