"""What the routes of a plan are told after a night and a report."""

import platform
import shutil
from collections.abc import Sequence
from datetime import datetime

from build.errors import TidemarkError
from build.home import Home
from history.series.task_states import TaskOutcome
from history.store.writer import Store
from runners.alerting.notices.digest import night_notice, night_trouble, report_trouble
from runners.alerting.notices.of_alerts import Links
from runners.alerting.notices.outbox import Notice
from runners.alerting.notices.telling import Telling, Trouble, tell
from runners.alerting.tracker_registry import issue_pages
from runners.nightly.night_result import HARMLESS, NightResult, short_reason
from runners.nightly.plan import Plan
from runners.nightly.report import NightReport

NEARLY_FULL_BYTES = 5 * 10**9
"""Fewer free bytes than this are a trouble: a night stops at a tenth of it."""

_OF_ISSUES = (TaskOutcome.UNUSABLE, TaskOutcome.FAILED)
"""What an alert of its own tells."""


def tell_of_night(
    plan: Plan, home: Home, store: Store, night: NightResult | None, report: NightReport | None
) -> list[str]:
    """Tell what a night did and a report found; return what went wrong.

    Without a report nothing is sent: what measures has no credentials, and the report comes after it.
    """
    troubles, nights = list[Trouble](), list[Notice]()
    if night is not None:
        troubles.append(_of_night(home, night, store.now()))
        measured = bool(night.carried_out or (night.past and night.past.carried_out))
        nights.append(night_notice(night.box, night.outcome, measured=measured, failed=night.has_failed))
    if report is not None:
        name = night.box if night is not None else platform.node()
        advice = f"read its summary, {home.summaries}/{store.now():%Y-%m-%d}.md"
        what = f"the report on {name}"
        troubles.append(Trouble(report_trouble(name), what, report.causes, advice, reported_by=name))
    return _told(store, _telling(plan, nights=nights), troubles, sends=report is not None)


def _told(store: Store, telling: Telling, troubles: Sequence[Trouble], *, sends: bool = True) -> list[str]:
    if store.away:  # the missing ping and the exit code tell it
        return []
    try:
        return tell(store.database, telling, troubles, store.now(), sends=sends)
    except TidemarkError as error:  # the summary must be written all the same
        return [f"nobody was told by the routes of the plan: {error}"]


def _telling(plan: Plan, nights: Sequence[Notice] = ()) -> Telling:
    page = issue_pages(plan.alerts.tracker, plan.alerts.url)
    links = Links(
        lambda repository, number: page.replace("{repository}", repository).replace("{number}", str(number)),
        plan.site.address or "",
    )
    return Telling(plan.notify, links, list(plan.boxes), plan.digest_day, nights=nights)


def _of_night(home: Home, night: NightResult, when: datetime) -> Trouble:
    """Return what went wrong in a night, as far as no alert of its own tells it."""
    reasons = list(night.problems)
    reasons += [
        f"{target.name}, {target.place}: {short_reason(target)}"
        for target in night.targets
        if target.outcome not in (*HARMLESS, *_OF_ISSUES)
    ]
    free = shutil.disk_usage(home.path).free
    if free < NEARLY_FULL_BYTES:
        reasons.append(f"the disk is nearly full: {free / 1e9:.1f} GB are free in {home.path}")
    advice = f"read its summary, {home.summaries}/{when:%Y-%m-%d}.md, and ./tidemark status"
    what = f"the night of {when:%Y-%m-%d} on box {night.box}"
    return Trouble(night_trouble(night.box), what, reasons, advice, [night.box])
