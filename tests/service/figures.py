"""What a simulated year of the nightly service did wrong, as figures with targets.

Three boxes with one history measure a branch of 400 commits with all of the service's code. Nights fail, a
disk fills up, clocks jump, boxes are lost, the tracker, a chat and the git source are away, another version
of Tidemark comes, and commits get slower, are fixed, and get slower again (planted.py). What was told to whom
and when is held against what should have been.
"""

from collections.abc import Iterator, Sequence
from datetime import timedelta

from benchmarks.output.figures import Figure
from tests.service.expected import expected_lines, lateness, told_twice, uninvited, unplanned
from tests.service.plan_text import LIMIT_GB, LOGS_DAYS
from tests.service.planted import PlantedRegression, midnight
from tests.service.receivers import DIGEST, ROUTES
from tests.service.simulated_year import ServiceYear

WEEK = timedelta(days=7)
ALLOWED_FALSE = 1
"""The false changes of a year (docs/changes.md): 0.5 of nights, 0.11 of confirmations of each box."""


def service_figures(service: ServiceYear) -> Iterator[Figure]:
    """Yield what was told too late, twice, or to the wrong route, and what was left over or lost."""
    told = service.receivers.told
    yield from _of_lateness(service)
    twice = told_twice(told)
    yield Figure("told twice to a route", len(twice), "", at_most=0, note=_first(twice))
    wrong = uninvited(told, lambda commit: planted_percent(service, commit))
    yield Figure("told to a route that did not ask", len(wrong), "", at_most=0, note=_first(wrong))
    false = unplanned(told, lambda commit: planted_percent(service, commit))
    yield Figure(
        "changes told that nobody planted", len(false), "", at_most=ALLOWED_FALSE, note=_first(false)
    )
    yield from _of_digests(service)
    share = service.most_build_bytes / (LIMIT_GB * 1e9)
    yield Figure("builds of a box over the limit of the plan, worst night", share, "", at_most=1)
    days = service.oldest_log / timedelta(days=1)
    yield Figure("oldest log", days, "days", at_most=LOGS_DAYS + 1)
    yield from _of_issues(service)
    lost = service.lost_sessions()
    note = f"of {len(service.sessions.recorded)} in {service.nights} nights"
    yield Figure("sessions lost", len(lost), "", at_most=0, note=note)
    errors = service.errors
    yield Figure("nights with problems that nobody planted", len(errors), "", at_most=0, note=_first(errors))
    yield Figure("messages", service.receivers.messages, "", note=_by_route(service))


def planted_percent(service: ServiceYear, commit: str) -> float | None:
    """Return the percent of the planted regression in a commit, named by its first digits; None without."""
    planted = service.year.regressions
    return next((slow.percent for slow in planted if service.commits.pair(slow.day)[1] == commit), None)


def _of_lateness(service: ServiceYear) -> Iterator[Figure]:
    found = lateness(expected_lines(service.year, service.commits), service.receivers.told)
    never = [f"{line.expected.what} ({line.expected.route})" for line in found if line.told is None]
    note = f"of {len(found)}" + (f": {'; '.join(never)}" if never else "")
    yield Figure("what matters: never told", len(never), "", at_most=0, note=note)
    late = sorted((line for line in found if line.late > timedelta(0)), key=lambda line: line.late)
    note = ""
    if late:
        note = f"the worst by {late[-1].late / timedelta(hours=1):.1f} hours: {late[-1].expected.what}"
    yield Figure("what matters: told after the next morning", len(late), "", at_most=0, note=note)


def _of_digests(service: ServiceYear) -> Iterator[Figure]:
    routes = [route.name for route in ROUTES if "digest" in route.kinds]
    weeks = range(1, service.year.days // 7)
    missing = 0
    for route in routes:
        came = [line.at for line in service.receivers.of(route) if line.kind == DIGEST]
        having = {(at - midnight(0)) // WEEK for at in came}
        missing += len(set(weeks) - having)
    yield Figure("weeks without a digest", missing, "", at_most=0, note=f"of {len(weeks) * len(routes)}")


def _of_issues(service: ServiceYear) -> Iterator[Figure]:
    last = service.year.days - 1
    lasting = [slow for slow in service.year.regressions if slow.is_in(last) and slow.closed is None]
    opened = service.tracker.opened
    gone = [issue.title for issue in opened if not any(_names(service, issue.body, slow) for slow in lasting)]
    yield Figure("issues left open for what is gone", len(gone), "", at_most=0, note="; ".join(gone[:3]))
    lacking = [slow for slow in lasting if not any(_names(service, issue.body, slow) for issue in opened)]
    note = f"of {len(lasting)}; {len(service.tracker.issues)} issues in all"
    yield Figure("regressions that last without an open issue", len(lacking), "", at_most=0, note=note)


def _names(service: ServiceYear, body: str, regression: PlantedRegression) -> bool:
    return service.commits.pair(regression.day)[1] in body


def _by_route(service: ServiceYear) -> str:
    return ", ".join(f"{route.name} {len(service.receivers.of(route.name))}" for route in ROUTES)


def _first(found: Sequence[object]) -> str:
    return f"first: {found[0]}" if found else ""
