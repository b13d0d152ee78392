"""The interface through which long operations report progress, whether or not it is displayed."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol


class ProgressTask(Protocol):
    """One operation, whose length may be unknown."""

    def update(self, done: float, total: float | None = None) -> None:
        """Report that `done` of `total` units are finished; the unit is the caller's choice."""

    def rename(self, label: str) -> None:
        """Replace the label by what is being done now."""


class Progress(Protocol):
    """Receives the progress of long operations."""

    def note(self, message: str) -> None:
        """Report one line for both log and screen, such as which source was used."""

    def task(self, label: str, total: float | None = None) -> AbstractContextManager[ProgressTask]:
        """Show `label` for the duration of the context; `total` is the length of the operation, if known."""


class SilentTask:
    """A task that displays nothing."""

    def update(self, done: float, total: float | None = None) -> None:
        """Do nothing."""

    def rename(self, label: str) -> None:
        """Do nothing."""


class Silent:
    """Progress that displays nothing, for tests and for programs that print only a result.

    `notes` are the messages received so far.
    """

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, message: str) -> None:
        """Append the message to `notes`."""
        self.notes.append(message)

    @contextmanager
    def task(self, label: str, total: float | None = None) -> Iterator[ProgressTask]:
        """Yield a task that displays nothing."""
        del label, total
        yield SilentTask()
