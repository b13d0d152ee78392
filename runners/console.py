"""Progress as bars on a terminal, and as plain lines in pipes and logs."""

import os
import secrets
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from build.progress import Progress, ProgressTask
from history.escaping.characters import one_line
from history.escaping.markdown import Markdown
from history.escaping.streams import escape_output, unescaped
from runners.interrupts import task_shown, told_by
from runners.task_courses import TaskCourse

if TYPE_CHECKING:
    from history.store.writer import Store

REFRESH_PER_SECOND = 1
"""Redraws are rare, because they use CPU on the machine that is being measured."""

TICK_SECONDS = 5.0

MIN_SILENCE, MAX_SILENCE, SILENT_SHARE = 30.0, 300.0, 0.05
"""A log gets a line of a task after half a minute without one; of a task that has taken longer, after 5 % of
its time so far, and at least every five minutes."""


def _to_stderr(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


class Lines:
    """Writes notes, the start of each task, and from time to time how far it is, to stderr by default."""

    def __init__(
        self, write: Callable[[str], None] = _to_stderr, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._write, self._clock = write, clock
        self._lock = threading.RLock()
        self._wrote_at = clock()
        self._running: list[LineTask] = []
        self._idle = threading.Event()

    def note(self, message: str) -> None:
        """Write a note, as one line."""
        with self._lock:
            self._write(f"{time.strftime('%H:%M:%S')} {one_line(message)}")
            self._wrote_at = self._clock()

    @contextmanager
    def task(self, label: str, total: float | None = None, unit: str = "") -> Iterator[ProgressTask]:
        """Write the label of a task that starts, and later how far it is if nothing else is written."""
        self.note(label)
        with task_shown(one_line(label)) as rename:
            task = LineTask(self, rename, TaskCourse(label, unit, self._clock, total))
            with self._lock:
                self._running.append(task)
                if len(self._running) == 1:
                    self._idle = threading.Event()
                    threading.Thread(target=self._tell_until, args=(self._idle,), daemon=True).start()
            try:
                yield task
            finally:
                with self._lock:
                    self._running.remove(task)
                    if not self._running:
                        self._idle.set()

    def _tell_until(self, idle: threading.Event) -> None:
        while not idle.wait(TICK_SECONDS):
            self.tell()

    def tell(self) -> None:
        """Write how far the task is that began last, unless something was written lately."""
        with self._lock:
            if self._running:
                course = self._running[-1].course
                silence = min(max(MIN_SILENCE, course.elapsed * SILENT_SHARE), MAX_SILENCE)
                if self._clock() - self._wrote_at >= silence:
                    self.note(course.sentence())


class LineTask:
    """A task of Lines."""

    def __init__(self, lines: Lines, rename: Callable[[str], None], course: TaskCourse) -> None:
        self._lines, self._rename, self.course = lines, rename, course

    def update(self, done: float, total: float | None = None) -> None:
        """Remember how far it is."""
        self.course.update(done, total)

    def rename(self, label: str) -> None:
        """Write the new label."""
        self.course.rename(label)
        self._lines.note(label)
        self._rename(one_line(label))

    def detail(self, text: str) -> None:
        """Remember what it waits for."""
        self.course.waits_for = text


class Bars:
    """Shows notes, and a bar with the remaining time for every running task."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as RichProgress

        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=20),
            TimeElapsedColumn(),
            TextColumn("{task.fields[far]}", markup=False),
        )
        # Bars are sequences for the terminal; the texts beside them are escaped here.
        console = Console(file=unescaped(sys.stderr))
        self._rich = RichProgress(
            *columns,
            console=console,
            refresh_per_second=REFRESH_PER_SECOND,
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
    def task(self, label: str, total: float | None = None, unit: str = "") -> Iterator[ProgressTask]:
        """Show a bar until the context ends."""
        identity = self._rich.add_task(one_line(label), total=total, far="")
        bars, course = self._rich, TaskCourse(label, unit, time.monotonic, total)

        with task_shown(one_line(label)) as renamed:

            class Bar:
                def update(self, done: float, total: float | None = None) -> None:
                    course.update(done, total)
                    bars.update(identity, completed=done, total=course.total, far=course.far())

                def rename(self, label: str) -> None:
                    course.rename(label)
                    bars.update(identity, description=one_line(label))
                    renamed(one_line(label))

                def detail(self, text: str) -> None:
                    course.waits_for = text
                    bars.update(identity, description=one_line(course.doing))

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


def say_problems(store: "Store") -> None:
    """Say on stderr what of recording needs somebody, such as what waits on this box."""
    for problem in store.problems:
        print(f"tidemark: {problem}", file=sys.stderr)


def add_to_job_summary(text: Markdown) -> None:
    """Append Markdown to the summary of a GitHub job; do nothing elsewhere."""
    path = os.environ.get("GITHUB_STEP_SUMMARY")
    if path:
        with Path(path).open("a", encoding="utf-8") as shown:
            shown.write(text + "\n")


def set_job_output(name: str, text: str) -> None:
    """Set an output of the step of a GitHub job; do nothing elsewhere. No text can set another output."""
    path = os.environ.get("GITHUB_OUTPUT")
    if path:
        end = f"end-{secrets.token_hex(16)}"
        with Path(path).open("a", encoding="utf-8") as outputs:
            outputs.write(f"{name}<<{end}\n{text}\n{end}\n")
