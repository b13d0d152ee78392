"""Asking servers again and again while a load runs, in a thread that keeps their answers with the times."""

import random
import threading
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from build.errors import TidemarkError
from suites.processes import prefer
from suites.slices import Schedule

PATIENCE_SECONDS = 10.0
"""How long the last answer may take once the load has ended; a server that hangs is not waited for."""

Answer = TypeVar("Answer")


class RepeatedQuestion(Generic[Answer]):
    """What one server answers to one question."""

    def __init__(self, read: Callable[[], Answer], per_second: float) -> None:
        """`read` asks the server, and raises TidemarkError; it is called so often in the server's slices."""
        self.per_second = per_second
        self.answers: list[tuple[float, Answer]] = []
        """The moment of each question, by the monotonic clock, and its answer."""

        self.failure: TidemarkError | None = None
        """Why the server could not be asked, which ends the questions; the load goes on."""

        self._read = read

    def take(self) -> None:
        """Ask once, unless the server has failed to answer before."""
        if self.failure is None:
            moment = time.monotonic()
            try:
                self.answers.append((moment, self._read()))
            except TidemarkError as error:
                self.failure = error


class ServerSampler:
    """Asks servers that take turns, from entering its context until its end.

    Each is asked when it begins, when it ends, and at random moments of its slices: at equal distances they
    would keep step with the slices. A server whose slice it is not is not asked, since an answer takes time
    from whoever works. Before the first slice, all are asked.
    """

    def __init__(self, questions: Sequence[RepeatedQuestion[Any]], schedule: Schedule) -> None:
        """`questions` has one for each server, in order."""
        self._questions = questions
        self._schedule = schedule
        self._begin: float | None = None
        self._works: int | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._ask_on, daemon=True)

    def slices_begin(self, moment: float) -> None:
        """Ask from a moment of the monotonic clock on the server whose slice the schedule says it is."""
        self._begin = moment

    def slice_of(self, place: int) -> None:
        """Ask from now on the server with this index, until this is called again."""
        self._works = place

    def __enter__(self) -> Self:
        if self._questions:
            self._ask(self._questions)
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        if self._questions:
            self._thread.join(PATIENCE_SECONDS)
            if error is None and not self._thread.is_alive():
                self._ask(self._questions)

    def _ask_on(self) -> None:
        prefer(threading.get_native_id())
        draw, began, period = random.Random(0), time.monotonic(), 0
        most = max(question.per_second for question in self._questions)
        while not self._ended.wait(max(0.0, began + (period + draw.random()) / most - time.monotonic())):
            self._ask(
                [question for question in self._working() if draw.random() < question.per_second / most]
            )
            period = max(period, int((time.monotonic() - began) * most)) + 1

    def _working(self) -> Sequence[RepeatedQuestion[Any]]:
        if self._works is not None:
            return [self._questions[self._works]]
        if self._begin is None or time.monotonic() < self._begin:
            return self._questions
        place = self._schedule.worker(time.monotonic() - self._begin)
        return [] if place is None else [self._questions[place]]

    @staticmethod
    def _ask(questions: Sequence[RepeatedQuestion[Any]]) -> None:
        for question in questions:
            question.take()
