"""A clock that all of Tidemark reads: in the modules of its rooms, `datetime.now` is simulated time.

What other packages and programs read stays the time of this machine.
"""

import pkgutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta, tzinfo
from importlib import import_module
from types import ModuleType
from typing import Self

ROOMS = ("build", "suites", "history", "report", "runners")


class SimulatedClock:
    """The true time, and how far the clock of the box is ahead whose programs run now."""

    def __init__(self, moment: datetime) -> None:
        self.moment = moment
        self.ahead = timedelta(0)

    @property
    def shown(self) -> datetime:
        """What the box takes for the time."""
        return self.moment + self.ahead

    def advance(self, passed: timedelta) -> None:
        """Let time pass."""
        self.moment += passed

    def reach(self, moment: datetime) -> None:
        """Wait until a moment, unless it has passed."""
        self.moment = max(self.moment, moment)


@contextmanager
def simulated_time(clock: SimulatedClock) -> Iterator[None]:
    """Let every module of the rooms read a clock, also those that are otherwise imported only when needed."""
    for room in ROOMS:
        for found in pkgutil.walk_packages(import_module(room).__path__, f"{room}."):
            if not found.name.endswith("__main__"):
                import_module(found.name)
    reading = [
        module
        for name, module in sys.modules.items()
        if name.partition(".")[0] in ROOMS and vars(module).get("datetime") is datetime
    ]
    simulated = _reading(clock)
    for module in reading:
        vars(module)["datetime"] = simulated
    try:
        yield
    finally:
        for module in reading:
            vars(module)["datetime"] = datetime


@contextmanager
def replaced(module: ModuleType, **values: object) -> Iterator[None]:
    """Let some names of a module mean something else."""
    before: Mapping[str, object] = {name: vars(module)[name] for name in values}
    vars(module).update(values)
    try:
        yield
    finally:
        vars(module).update(before)


def _reading(clock: SimulatedClock) -> type[datetime]:
    """Return a class like `datetime` whose present is that of a clock."""

    class AnyDatetime(type):
        """Takes every datetime for an instance, as those of other packages are of the original class."""

        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, datetime)

    class SimulatedDatetime(datetime, metaclass=AnyDatetime):
        """Reads the clock."""

        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Self:
            return cls.fromtimestamp(clock.shown.timestamp(), tz)

    return SimulatedDatetime
