"""Where the messages of the simulated year arrive: what came, line by line, when, and by which route."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from runners.alerting.notices.apprise_urls import RouteError
from runners.alerting.notices.routes import Route
from tests.service.clock import SimulatedClock

ROUTES = (
    Route(name="team"),
    Route(name="planner", kinds=("new", "returned", "fixed"), branches=("postgres@master",), min_percent=5.0),
    Route(name="admins", kinds=("trouble", "digest")),
    Route(name="keeper", kinds=("trouble",), boxes=("db3",)),
)
"""The routes of the plan."""

AWAY_ROUTE = "team"
"""The route whose service is away for a week."""

DIGEST = "Week"

_LINE = re.compile(r"(?:\d{4}-\d\d-\d\d )?((?:New|Returned|Confirmed|Fixed|Trouble|Over): .*)")
_DIGEST = re.compile(r"Week to \d{4}-\d\d-\d\d: .*")


def url_of(route: Route) -> str:
    """Return the URL of a route, which ends with its name."""
    return f"json://127.0.0.1/{route.name}"


@dataclass(frozen=True)
class ToldLine:
    """A line that a route got."""

    at: datetime
    """The true time."""

    route: str
    text: str
    """From its kind on: `New: postgres@master, ...`; of a digest its first line."""

    @property
    def kind(self) -> str:
        """The word with which it begins: New, Returned, Confirmed, Fixed, Trouble, Over or Week."""
        return re.split(r"[: ]", self.text, maxsplit=1)[0]

    def __str__(self) -> str:
        """Return it for people."""
        return f"{self.at:%Y-%m-%d %H:%M}  {self.route:<8} {self.text}"


class Receivers:
    """Stands in for `runners.alerting.notices.apprise_urls.send`."""

    def __init__(self, clock: SimulatedClock) -> None:
        self._clock = clock
        self.told: list[ToldLine] = []
        self.messages = 0
        self.is_away = False
        """Whether the service of AWAY_ROUTE takes nothing."""

    def __call__(self, url: str, title: str, text: str, where: str) -> None:
        """Take a message, or raise RouteError."""
        del title
        route = url.rpartition("/")[2]
        if self.is_away and route == AWAY_ROUTE:
            raise RouteError("the message did not arrive: it answers 503", where=where)
        self.messages += 1
        self.told += [ToldLine(self._clock.moment, route, line) for line in _told_lines(text)]

    def of(self, route: str) -> Sequence[ToldLine]:
        """Return what a route got, in order."""
        return [line for line in self.told if line.route == route]


def _told_lines(text: str) -> Iterator[str]:
    """Yield what a message tells: its line, or what several that waited were joined into."""
    for line in text.splitlines():
        found = _LINE.fullmatch(line)
        if found is not None:
            yield found[1]
        elif _DIGEST.fullmatch(line):
            yield line
