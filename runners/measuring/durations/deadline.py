"""Whether there is time for a further round."""

from collections.abc import Callable

from runners.measuring.request import Request


class Deadline:
    """The end of the budget of a session, and how long its rounds take.

    A budget without a deadline begins with the first round, and limits only rounds beyond the least number.
    """

    def __init__(self, request: Request, session_began: float, clock: Callable[[], float]) -> None:
        """`session_began` is a moment of `clock`, which returns seconds."""
        self._request, self._clock = request, clock
        self._began = session_began if request.has_deadline else clock()
        self._limit = request.limit_seconds
        self._rounds, self._took = 0, 0.0
        self.passed = False
        """Whether a round was left out for want of time."""

    def share_among(self, steps: int) -> None:
        """Leave the next of so many steps, which are measured one after the other, its share of what is left.

        Rounds of the step before say nothing of how long its own take.
        """
        spent = self._clock() - self._began
        self._limit = spent + max(0.0, self._request.limit_seconds - spent) / steps
        self._rounds, self._took, self.passed = 0, 0.0, False

    @property
    def left_seconds(self) -> float:
        """The seconds that are left of the budget, or of the share of a step."""
        return max(0.0, self._limit - (self._clock() - self._began))

    def allows(self, number: int) -> bool:
        """Return whether a round with this number may begin: one that a deadline allows also ends in time."""
        if not self._request.has_deadline and number <= self._request.least_rounds:
            return True
        needed = self._took / self._rounds if self._rounds and self._request.has_deadline else 0.0
        self.passed = self.passed or self._clock() + needed - self._began > self._limit
        return not self.passed

    def leaves_rounds(self, seconds: float) -> bool:
        """Return whether counting for so many seconds more leaves half of the budget to rounds."""
        return self._clock() + seconds - self._began <= self._request.limit_seconds / 2

    def take(self, seconds: float) -> None:
        """Take in how long a round took."""
        self._rounds += 1
        self._took += seconds
