"""The interface through which long operations report progress, whether or not it is displayed."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

_MINUTE = 60


class ProgressTask(Protocol):
    """One operation, whose length may be unknown."""

    def update(self, done: float, total: float | None = None) -> None:
        """Report that `done` of `total` units are finished."""

    def rename(self, label: str) -> None:
        """Replace the label by what is being done now."""

    def detail(self, text: str) -> None:
        """Add to the label what it waits for now; a log has it only if that takes long."""


class Progress(Protocol):
    """Receives the progress of long operations."""

    def note(self, message: str) -> None:
        """Report one line for both log and screen, such as which source was used."""

    def task(
        self, label: str, total: float | None = None, unit: str = ""
    ) -> AbstractContextManager[ProgressTask]:
        """Show `label` for the duration of the context; `total` is the length of the operation, if known.

        `unit` is the plural of what is counted, such as `files`. Without one no number is shown.
        """


class SilentTask:
    """A task that displays nothing."""

    def update(self, done: float, total: float | None = None) -> None:
        """Do nothing."""

    def rename(self, label: str) -> None:
        """Do nothing."""

    def detail(self, text: str) -> None:
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
    def task(self, label: str, total: float | None = None, unit: str = "") -> Iterator[ProgressTask]:
        """Yield a task that displays nothing."""
        del label, total, unit
        yield SilentTask()


def in_words(seconds: float) -> str:
    """Return a duration as people say it: `40 s`, `6 min`, `1 h 20 min`."""
    if seconds < 1.5 * _MINUTE:
        return f"{max(0.0, seconds):.0f} s"
    minutes = round(seconds / _MINUTE)
    hours, rest = divmod(minutes, 60)
    if minutes < 90:
        return f"{minutes} min"
    return f"{hours} h {rest} min" if rest else f"{hours} h"
