"""The course of a task that is shown: how far it is, what it waits for, and how long it still takes."""

from collections.abc import Callable

from build.progress import in_words

MIN_SHARE, MIN_SECONDS = 0.02, 5.0
"""What has to be done, and for how long, before the time left is estimated."""


class TaskCourse:
    """How far a task is."""

    def __init__(self, label: str, unit: str, clock: Callable[[], float], total: float | None = None) -> None:
        """`unit` is the plural of what is counted; empty if the number says nothing to people."""
        self.label, self._unit, self._clock = label, unit, clock
        self.waits_for = ""
        """What it waits for within what the label says; empty if there is nothing to be added."""
        self.total = total
        self._done = 0.0
        self._began = self._renamed = clock()
        self._first: tuple[float, float] | None = None
        """When something was first counted, and how much."""

    @property
    def elapsed(self) -> float:
        """The seconds since it began."""
        return self._clock() - self._began

    @property
    def doing(self) -> str:
        """What is being done now."""
        return f"{self.label}: {self.waits_for}" if self.waits_for else self.label

    def update(self, done: float, total: float | None = None) -> None:
        """Take in that `done` of `total` units are finished."""
        self.total = self.total if total is None else total
        if done > 0 and (self._first is None or done < self._first[1]):
            self._first = (self._clock(), done)
        self._done = done

    def rename(self, label: str) -> None:
        """Take in what is being done now."""
        self.label, self.waits_for, self._renamed = label, "", self._clock()

    def seconds_left(self) -> float | None:
        """Return the seconds that the rest takes if it goes on as since the first count; None if unknown."""
        if self._first is None or self.total is None:
            return None
        since, first = self._first
        took, done = self._clock() - since, self._done - first
        if took < MIN_SECONDS or done < MIN_SHARE * self.total:
            return None
        return took / done * max(0.0, self.total - self._done)

    def far(self) -> str:
        """Return what is done of how much, and the time left; empty if neither is known."""
        parts = []
        if self._unit and self._done > 0:
            of = "" if self.total is None else f" of {self.total:,.0f}"
            parts.append(f"{self._done:,.0f}{of} {self._unit}")
        left = self.seconds_left()
        if left:
            parts.append(f"about {in_words(left)} left")
        return ", ".join(parts)

    def sentence(self) -> str:
        """Return the line for a log."""
        so_far = f"{in_words(self._clock() - self._renamed)} so far"
        return f"{self.doing}: {self.far() or so_far}"
