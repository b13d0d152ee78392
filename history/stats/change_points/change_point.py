"""What is said of one change of level."""

from dataclasses import dataclass

COVERAGE = 0.95
"""Of the range of positions and of the interval of the size."""


@dataclass(frozen=True)
class ChangePoint:
    """One change of level in a series; positions count its nights from 0, gaps included."""

    index: int
    """The first night with the new level: the best estimate."""

    first: int
    """The last night that surely had the old level: with `last` it holds the change with COVERAGE."""

    last: int
    """The first night that surely had the new level; not before `index`."""

    before: float
    """The old level, in the units of the values."""

    after: float
    """The new level."""

    low: float
    """Lower end of the interval of the size, which holds it with COVERAGE if the change is real and in place.

    A change that is raised at the first night at which it could be looks larger than it is: the interval of a
    change that was just raised is not corrected for that.
    """

    high: float
    """Upper end of that interval."""

    confidence: float
    """One minus the share of quiet series-years in which as strong evidence comes up by chance; 0 to 1."""

    raised: int | None
    """The night whose value raised it in the nightly watch; None when it was found in the finished series."""

    @property
    def size(self) -> float:
        """By how much the level rose; negative when it fell."""
        return self.after - self.before


@dataclass(frozen=True)
class Known:
    """A change of level that was found in another way: it is not looked for any more."""

    row: int
    """The row of the series among those that are watched."""

    night: int
    """The first with the new level."""

    level: float
    """The new level, in the units of the values; nan where the level is known to be the old one."""
