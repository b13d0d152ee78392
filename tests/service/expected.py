"""What has to be told in the simulated year: to which routes, and until when."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from runners.alerting.notices.routes import Route
from tests.service.commits import BRANCH, CommitYear
from tests.service.planted import (
    MORNING,
    Incident,
    PlantedIncident,
    PlantedRegression,
    PlantedYear,
    midnight,
)
from tests.service.receivers import AWAY_ROUTE, ROUTES, ToldLine


@dataclass(frozen=True)
class ExpectedLine:
    """A line that a route has to get."""

    what: str
    """For people."""

    kinds: tuple[str, ...]
    pattern: str
    """A regular expression that the line has behind its kind."""

    since: datetime
    """No line before counts."""

    due: datetime
    route: str

    def is_told_by(self, line: ToldLine) -> bool:
        """Whether a line tells it."""
        is_candidate = line.route == self.route and line.kind in self.kinds and line.at >= self.since
        return is_candidate and re.search(self.pattern, line.text) is not None


def expected_lines(year: PlantedYear, commits: CommitYear) -> list[ExpectedLine]:
    """Return everything that has to be told."""
    found = [line for regression in year.regressions for line in _of_regression(year, commits, regression)]
    found += [line for incident in year.incidents for line in _of_incident(year, incident)]
    return [line for line in found if line.due < midnight(year.days)]


def due(year: PlantedYear, day: int, route: str) -> datetime:
    """Return until when a route has to be told of what the night of a day shows: when its service is back."""
    while route == AWAY_ROUTE and year.lasts(Incident.CHAT_AWAY, day):
        day += 1
    return midnight(day) + MORNING


def _of_regression(
    year: PlantedYear, commits: CommitYear, regression: PlantedRegression
) -> Iterator[ExpectedLine]:
    old, new = commits.pair(regression.day)
    between = f"between {old} and {new}"
    named = f".*owners?: {regression.owner}" if regression.owner else ""
    for route in ROUTES:
        if not {"new", "returned"} & set(route.kinds) or regression.percent < route.min_percent:
            continue
        day = regression.told_on
        yield ExpectedLine(
            f"{regression.name}: {regression.percent:g} % slower",
            ("New", "Returned"),
            f"{BRANCH}.*{between}{named}",
            midnight(day),
            due(year, day, route.name),
            route.name,
        )
        if regression.fixed is not None and regression.closed is None and "fixed" in route.kinds:
            day = regression.fixed
            yield ExpectedLine(
                f"{regression.name}: fixed",
                ("Fixed",),
                f"{BRANCH}.*{between}",
                midnight(day),
                due(year, day, route.name),
                route.name,
            )


def _of_incident(year: PlantedYear, incident: PlantedIncident) -> Iterator[ExpectedLine]:
    box, name = incident.box, incident.what.value.replace("_", " ")
    begins, ends, nights = _PATTERNS.get(incident.what, ("", "", 0))
    for route in ROUTES:
        if not begins or "trouble" not in route.kinds or (box and route.boxes and box not in route.boxes):
            continue
        if incident.what is Incident.CHAT_AWAY and route.name == AWAY_ROUTE:
            continue
        day = incident.first + nights
        what = f"{name} {box}".strip()
        yield ExpectedLine(
            what,
            ("Trouble",),
            begins.format(box=box),
            midnight(incident.first),
            due(year, day, route.name),
            route.name,
        )
        if ends and incident.until < year.days:
            yield ExpectedLine(
                f"{what}: over",
                ("Over",),
                ends.format(box=box),
                midnight(incident.until),
                due(year, incident.until, route.name),
                route.name,
            )


_PATTERNS: Mapping[Incident, tuple[str, str, int]] = {
    Incident.FULL_DISK: (r"on box {box}: ", r"on box {box}", 0),
    Incident.SOURCE_AWAY: (r"the branch could not be fetched", r"on box db\d", 0),
    Incident.TRACKER_AWAY: (r"the report on db\d: .*no answer", r"the report on db\d", 0),
    # Something has to wait for a day before a route counts as stuck.
    Incident.CHAT_AWAY: (rf"the route {AWAY_ROUTE}: it has taken nothing", rf"the route {AWAY_ROUTE}", 2),
    # 26 hours without a sign are over between two nights. When they are, a report that has other troubles by
    # then lists those alone.
    Incident.LOST_BOX: (r"the report on db\d: .*box {box}: no sign of a night", "", 1),
    Incident.BROKEN_BUILD: (r"cannot be built", r"cannot be built", 0),
    Incident.CRASH: (r"fails while it is measured", r"fails while it is measured", 0),
}
"""How begin and end of an incident are told, and after how many nights; a wrong clock need not
be told, and a dead man's switch tells of a night that was killed or reaches no history."""


@dataclass(frozen=True)
class Lateness:
    """An expected line with when a route got it."""

    expected: ExpectedLine
    told: ToldLine | None
    """None if it never did."""

    @property
    def late(self) -> timedelta:
        """How much too late it came; negative if it was in time, and zero if it never came."""
        return timedelta(0) if self.told is None else self.told.at - self.expected.due


def lateness(expected: Sequence[ExpectedLine], told: Sequence[ToldLine]) -> list[Lateness]:
    """Return when each expected line came first."""
    return [Lateness(line, next(filter(line.is_told_by, told), None)) for line in expected]


# --- what must not be told

_VARYING = re.compile(r"\b(?:\d[\d:.,-]*|[0-9a-f]{7,})\b")
_BETWEEN = re.compile(r"between (?P<old>[0-9a-f]{12}) and (?P<new>[0-9a-f]{12})")
_BOX = re.compile(r"\bbox (db\d)")
_REPORT = re.compile(r"\bthe report on db\d")
_SUBJECT_ENDS = re.compile(r": |; | had no problem")


def told_twice(told: Sequence[ToldLine]) -> list[ToldLine]:
    """Return the lines that say to a route what its last line about the same subject has said."""
    last: dict[tuple[str, str], str] = {}
    twice = []
    for line in told:
        subject, state = _said(line)
        if last.get((line.route, subject)) == state:
            twice.append(line)
        last[line.route, subject] = state
    return twice


def _said(line: ToldLine) -> tuple[str, str]:
    """Return what a line is about, and what it says of that."""
    pair = _BETWEEN.search(line.text)
    if pair is not None:
        return pair[0], line.kind
    if line.kind == "Week":
        return "digest", line.text.partition(":")[0]
    what = line.text.partition(": ")[2].partition("; to do:")[0]
    # Reports of all boxes say what is wrong with what the boxes share, such as the tracker.
    what = _REPORT.sub("a report", what)
    subject = _VARYING.sub("#", _SUBJECT_ENDS.split(what, maxsplit=1)[0])
    return subject, f"{line.kind} {_VARYING.sub('#', what)}"


def uninvited(told: Sequence[ToldLine], size: Callable[[str], float | None]) -> list[ToldLine]:
    """Return the lines that a route did not ask for.

    `size` gives the percent of the change that is in a commit, named by its first digits; None if none is.
    """
    routes = {route.name: route for route in ROUTES}
    return [line for line in told if not _is_asked_for(routes[line.route], line, size)]


def _is_asked_for(route: Route, line: ToldLine, size: Callable[[str], float | None]) -> bool:
    kind = {"Over": "trouble", "Week": "digest"}.get(line.kind, line.kind.lower())
    if kind not in route.kinds and not ("confirmed" in route.kinds and "confirmed" in line.text):
        return False
    pair, box = _BETWEEN.search(line.text), _BOX.search(line.text)
    percent = size(pair["new"]) if pair else None
    if percent is not None and percent < route.min_percent:
        return False
    return box is None or not route.boxes or box[1] in route.boxes


def unplanned(told: Sequence[ToldLine], size: Callable[[str], float | None]) -> list[ToldLine]:
    """Return the lines about new changes whose commits have none."""
    new = [line for line in told if line.kind in ("New", "Returned")]
    return [line for line in new if (pair := _BETWEEN.search(line.text)) is None or size(pair["new"]) is None]
