"""How long work tells what it is doing, without knowing whether anybody watches."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol


class ProgressTask(Protocol):
    """One piece of work with a known or unknown length."""

    def update(self, done: float, total: float | None = None) -> None:
        """`done` of `total` units are finished; units are the caller's (seconds, targets, bytes)."""

    def rename(self, label: str) -> None:
        """What is being done now."""


class Progress(Protocol):
    """Receives what a person wants to know while waiting."""

    def note(self, message: str) -> None:
        """One line that belongs in the log as well as on the screen, such as which source served."""

    def task(self, label: str, total: float | None = None) -> AbstractContextManager[ProgressTask]:
        """Show `label` while the context lasts."""


class SilentTask:
    """A task that shows nothing."""

    def update(self, done: float, total: float | None = None) -> None:
        """Ignore it."""

    def rename(self, label: str) -> None:
        """Ignore it."""


class Silent:
    """Progress for tests and for programs that print a result only; keeps the notes."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, message: str) -> None:
        """Keep the line."""
        self.notes.append(message)

    @contextmanager
    def task(self, label: str, total: float | None = None) -> Iterator[ProgressTask]:
        """Show nothing."""
        del label, total
        yield SilentTask()
