"""What happens in the simulated year, by day: regressions in commits, and what befalls boxes and services.

Day 0 is a Monday. A regression is in the tip of its day, of which the night of that day measures the first
results; on such days and the day before, nothing else keeps a box from measuring.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum, auto

DAYS = 365
BEGIN = datetime(2027, 1, 4, tzinfo=UTC)
"""The midnight with which day 0 begins."""

MORNING = timedelta(hours=8, minutes=30)
"""When people come to work: what was to be known by then counts as late afterwards."""

EVERY_DAY, MORE_EVERY, MORE_SINCE = 1, 10, 15
"""The commits of a day; every MORE_EVERY days since MORE_SINCE there are two. A year has 400."""


def midnight(day: int) -> datetime:
    """Return when a day begins."""
    return BEGIN + timedelta(days=day)


def tip_on(day: int) -> int:
    """Return the number of the newest commit in the night of a day."""
    return EVERY_DAY * day + max(0, (day - MORE_SINCE) // MORE_EVERY + 1)


@dataclass(frozen=True)
class PlantedRegression:
    """A step of the suite that is slower from the tip of one day to that of another."""

    name: str
    step: str
    percent: float
    """By how much it is slower than it was, in percent."""

    day: int
    fixed: int | None = None
    """The day with whose tip it is gone; None if it stays."""

    path: str = "src/executor.c"
    """The file that its commit changes."""

    owner: str = ""
    """Who has to be named where it is told, by the owners of the plan."""

    told: int | None = None
    """The day on which it has to be told, if a mute of the plan ends only then; None for its own."""

    closed: int | None = None
    """The day on which a person closes its issue; None if nobody does."""

    @property
    def told_on(self) -> int:
        """The day of the night after which it has to be told."""
        return self.day if self.told is None else self.told

    def is_in(self, day: int) -> bool:
        """Whether the tip of a day has it."""
        return self.day <= day and (self.fixed is None or day < self.fixed)


class Incident(StrEnum):
    """What can befall the service."""

    FULL_DISK = auto()
    KILLED_NIGHT = auto()
    SOURCE_AWAY = auto()
    TRACKER_AWAY = auto()
    CHAT_AWAY = auto()
    OLDER_VERSION = auto()
    """Other boxes have another Tidemark already, which has migrated the history."""

    WRONG_CLOCK = auto()
    LOST_BOX = auto()
    BROKEN_BUILD = auto()
    CRASH = auto()


@dataclass(frozen=True)
class PlantedIncident:
    """Something that befalls the service from one day until another."""

    what: Incident
    first: int
    until: int
    """The first day on which it is over."""

    box: str = ""
    """The box that it befalls; empty for what all have in common."""

    ahead: timedelta = timedelta(0)
    """How far the clock of the box is ahead of the true time during its night."""

    def lasts(self, day: int) -> bool:
        """Whether it lasts on a day."""
        return self.first <= day < self.until


@dataclass(frozen=True)
class PlantedMute:
    """A mute that the plan has until the end of a day."""

    step: str
    below_percent: float
    last: int


@dataclass(frozen=True)
class PlantedYear:
    """All that happens in a number of days."""

    days: int
    regressions: Sequence[PlantedRegression] = ()
    incidents: Sequence[PlantedIncident] = ()
    mutes: Sequence[PlantedMute] = ()
    removed: tuple[str, int] = ("", DAYS)
    """A box, and the day on which a person takes it out of the plan."""

    def lasts(self, what: Incident, day: int, box: str = "") -> bool:
        """Whether an incident lasts on a day, for a box or for all."""
        incidents = (
            incident for incident in self.incidents if incident.what is what and incident.box in ("", box)
        )
        return any(incident.lasts(day) for incident in incidents)

    def ahead(self, day: int, box: str) -> timedelta:
        """Return how far the clock of a box is ahead in the night of a day."""
        wrong = (
            incident
            for incident in self.incidents
            if incident.what is Incident.WRONG_CLOCK and incident.box == box
        )
        return next((incident.ahead for incident in wrong if incident.lasts(day)), timedelta(0))

    def boxes(self, day: int) -> list[str]:
        """Return the boxes in the plan of a day."""
        name, last = self.removed
        return [box for box in BOXES if box != name or day < last]


BOXES = ("db1", "db2", "db3")
STEPS = ("insert", "update-index", "delete")
OWNED, OWNER = "src/access/**", "alice"

QUIET = PlantedYear(DAYS)

TWO_WEEKS = PlantedYear(
    15,
    regressions=(
        PlantedRegression("appears", "insert", 7.0, 4, fixed=6),
        PlantedRegression("the next night", "delete", 6.0, 5),
    ),
    incidents=(
        PlantedIncident(Incident.FULL_DISK, 7, 8, "db2"),
        PlantedIncident(Incident.LOST_BOX, 9, 10, "db3"),
        PlantedIncident(Incident.TRACKER_AWAY, 11, 13),
    ),
)
"""What the tests try."""

YEAR = PlantedYear(
    DAYS,
    regressions=(
        PlantedRegression("appears", "insert", 7.0, 40, fixed=80, path="src/access/heap.c", owner=OWNER),
        PlantedRegression("grows", "insert", 6.0, 60, fixed=80),
        PlantedRegression("small", "delete", 3.5, 50, fixed=90),
        PlantedRegression("returns", "insert", 7.0, 100, fixed=120),
        PlantedRegression("muted", "update-index", 3.0, 130, fixed=160, told=151),
        PlantedRegression("wanted", "delete", 6.0, 170, closed=172),
        PlantedRegression("without a tracker", "insert", 8.0, 232, fixed=262),
        PlantedRegression("without a chat", "update-index", 8.0, 250, fixed=270),
        PlantedRegression("lasts", "insert", 7.0, 350),
    ),
    incidents=(
        PlantedIncident(Incident.BROKEN_BUILD, 182, 185),
        PlantedIncident(Incident.CRASH, 192, 195),
        PlantedIncident(Incident.FULL_DISK, 202, 203, "db2"),
        PlantedIncident(Incident.KILLED_NIGHT, 208, 209, "db1"),
        PlantedIncident(Incident.SOURCE_AWAY, 218, 220),
        PlantedIncident(Incident.TRACKER_AWAY, 230, 237),
        PlantedIncident(Incident.CHAT_AWAY, 249, 256),
        PlantedIncident(Incident.OLDER_VERSION, 280, 282, "db2"),
        PlantedIncident(Incident.OLDER_VERSION, 280, 282, "db3"),
        PlantedIncident(Incident.WRONG_CLOCK, 288, 289, "db3", timedelta(days=2)),
        PlantedIncident(Incident.WRONG_CLOCK, 292, 293, "db1", timedelta(days=-365)),
        PlantedIncident(Incident.LOST_BOX, 300, 312, "db3"),
        PlantedIncident(Incident.LOST_BOX, 320, DAYS, "db2"),
    ),
    mutes=(PlantedMute("update-index", 4.0, 150),),
    removed=("db2", 335),
)
