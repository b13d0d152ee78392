"""Progress as bars on a terminal, and as plain lines in pipes and logs."""

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from build.progress import Progress, ProgressTask, SilentTask
from history.escaping.characters import one_line
from history.escaping.markdown import Markdown
from history.escaping.streams import escape_output, unescaped
from history.store.writer import Store
from runners.interrupts import task_shown, told_by

REFRESH_PER_SECOND = 1
"""Redraws are rare, because they use CPU on the machine that is being measured."""


def _to_stderr(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


class Lines:
    """Writes notes and the start of each task as lines with the time, to stderr by default."""

    def __init__(self, write: Callable[[str], None] = _to_stderr) -> None:
        self._write = write

    def note(self, message: str) -> None:
        """Write a note, as one line."""
        self._write(f"{time.strftime('%H:%M:%S')} {one_line(message)}")

    @contextmanager
    def task(self, label: str, total: float | None = None) -> Iterator[ProgressTask]:
        """Write the label of a task that starts."""
        del total
        self.note(label)
        with task_shown(one_line(label)) as rename:
            yield LineTask(self, rename)


class LineTask(SilentTask):
    """A task of Lines, which only writes its new labels."""

    def __init__(self, lines: Lines, rename: Callable[[str], None]) -> None:
        self._lines, self._rename = lines, rename

    def rename(self, label: str) -> None:
        """Write the new label."""
        self._lines.note(label)
        self._rename(one_line(label))


class Bars:
    """Shows notes, and a bar with the remaining time for every running task."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
        from rich.progress import Progress as RichProgress

        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=20),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
        )
        # Bars are sequences for the terminal; the texts beside them are escaped here.
        console = Console(file=unescaped(sys.stderr))
        # A long window, because steps differ in length and the remaining time would jump otherwise.
        self._rich = RichProgress(
            *columns,
            console=console,
            refresh_per_second=REFRESH_PER_SECOND,
            speed_estimate_period=600,
            transient=True,
            # What is printed for a file or another program must not go to the bars on stderr.
            redirect_stdout=sys.stdout.isatty(),
        )

    def __enter__(self) -> "Bars":
        self._rich.start()
        escape_output()  # rich prints above the bars what others print, and obeys the sequences in it
        self._told = told_by(self._tell)
        self._told.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._told.__exit__(None, None, None)
        self._rich.stop()

    def _tell(self, line: str) -> None:
        self._rich.console.print(line, markup=False, highlight=False)

    def note(self, message: str) -> None:
        """Write a note above the bars."""
        self._tell(f"{time.strftime('%H:%M:%S')} {one_line(message)}")

    @contextmanager
    def task(self, label: str, total: float | None = None) -> Iterator[ProgressTask]:
        """Show a bar until the context ends."""
        identity = self._rich.add_task(one_line(label), total=total)
        bars = self._rich

        with task_shown(one_line(label)) as renamed:

            class Bar:
                def update(self, done: float, total: float | None = None) -> None:
                    if total is not None:
                        bars.update(identity, total=total)
                    bars.update(identity, completed=done)

                def rename(self, label: str) -> None:
                    bars.update(identity, description=one_line(label))
                    renamed(one_line(label))

            try:
                yield Bar()
            finally:
                bars.remove_task(identity)


@contextmanager
def progress() -> Iterator[Progress]:
    """Show progress as bars when stderr is a terminal, else as lines."""
    if sys.stderr.isatty():
        with Bars() as bars:
            yield bars
    else:
        yield Lines()


def say_problems(store: Store) -> None:
    """Say on stderr what of recording needs somebody, such as what waits on this box."""
    for problem in store.problems:
        print(f"tidemark: {problem}", file=sys.stderr)


def add_to_job_summary(text: Markdown) -> None:
    """Append Markdown to the summary of a GitHub job; do nothing elsewhere."""
    path = os.environ.get("GITHUB_STEP_SUMMARY")
    if path:
        with Path(path).open("a", encoding="utf-8") as shown:
            shown.write(text + "\n")
