"""The end of a night: changes are detected, issues delivered, and the history is copied."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from build.errors import TidemarkError
from build.home import Home
from build.progress import Silent
from build.version import Version
from history.backups.backup import require_whole
from history.backups.rotation import renew_copies
from history.changes import repository
from history.changes.boxes.notes import BoxNote
from history.changes.detector import judge
from history.changes.report import ChangeReport, report_changes
from history.changes.repository import Change
from history.comparison.compare import compare
from history.comparison.options import CompareOptions
from history.comparison.result import Comparison
from history.store import alert_outbox
from history.store.alert_outbox import IssueState
from history.store.writer import Store
from history.timestamps import now, to_text
from report.writing.site import SiteOptions, write_site
from runners.alerting.delivery import Delivery, DeliveryResult
from runners.alerting.issues.box_names import ANY_BOX
from runners.alerting.outbox import update_outbox
from runners.alerting.tracker import MissingTokenError, Tracker
from runners.alerting.tracker_check import TrackerCheck, check_tracker, keep_check
from runners.alerting.tracker_registry import open_tracker
from runners.nightly.night_result import NightResult
from runners.nightly.plan import Plan, plan_history
from runners.nightly.plan_rules.applying import apply_rules
from runners.nightly.site_options import of_plan
from runners.nightly.status import unreported_boxes
from runners.nightly.work import PlannedSession
from runners.reporting.bisects import read_bisects
from runners.reporting.commits import commits_in

TRACKER_CHECK = "tracker.json"
"""The file in the output folder with whether alerts would reach the tracker, as the last night found."""

_SEE_ABOVE = "see above"
"""Why alerts wait, where another problem says it."""


@dataclass
class NightReport:
    """What was detected after a night, and what became of it."""

    series: int
    """Series that were looked at."""

    new: tuple[ChangeReport, ...]
    reopened: tuple[ChangeReport, ...]
    closed: tuple[ChangeReport, ...]
    open: int
    """Changes that are open now, with the new and the reopened ones, and with muted ones."""

    delivered: DeliveryResult | None = None
    """None when the plan names no repository, or there is no token."""

    notes: tuple[BoxNote, ...] = ()
    """What changed about the noise of the boxes: no changes, and no issue is opened for them."""

    explained: tuple[ChangeReport, ...] = ()
    """Changes that something else explains since tonight: no issue is opened for them either."""

    muted: tuple[ChangeReport, ...] = ()
    """Open changes that the plan mutes: they are among no others, and no issue is opened for them."""

    notices: tuple[str, ...] = ()
    """What is to be told of the plan's mutes: that one ended, or matches nothing."""

    problems: list[str] = field(default_factory=list)
    """Of delivery and copying; what was measured is safe all the same."""

    @property
    def causes(self) -> list[str]:
        """The problems without what only follows from another one."""
        return [problem for problem in self.problems if not problem.endswith(f": {_SEE_ABOVE}")]


def report(plan: Plan, home: Home, store: Store) -> NightReport:
    """Detect changes in the whole history, update the outbox, deliver it, and copy the history.

    What cannot be delivered stays in the outbox. Raises TidemarkError when the history cannot be
    read, or is damaged: it is checked as a backup is.
    """
    if store.away:
        problems = ["nothing was judged or told without the history"]
        check_delivery(plan, home, problems)
        return NightReport(0, (), (), (), 0, problems=problems)
    require_whole(store.database)
    detected = judge(store.database, store.now)
    ruled = apply_rules(plan, home, store)
    apart = ruled.muted | ruled.returned
    ids = (
        [*_ids(detected.new, apart), *sorted(ruled.returned)],
        _ids(detected.reopened, apart),
        _ids(detected.closed),
        _ids(detected.explained),
        sorted(ruled.muted),
    )
    with store.database.reading() as connection:
        known = {change.id: change for change in repository.load(connection)}
        new, reopened, closed, explained, muted = (
            report_changes(connection, [known[number] for number in numbers]) for numbers in ids
        )
    night = NightReport(
        detected.series,
        new,
        reopened,
        closed,
        len(detected.open),
        notes=detected.notes,
        explained=explained,
        muted=muted,
        notices=ruled.notices,
    )
    with store.database.reading() as connection:
        night.problems += unreported_boxes(plan, home, connection, store.now())
    _close_alerts_of_boxes(store)
    update_outbox(store.database, plan.regression_percent / 100, plan.site.address or "")
    try:
        night.delivered = deliver(plan, home, store, night.problems)
    except TidemarkError as error:
        # What was detected is told only once: it must reach the summary and the exit code all the same.
        night.problems.append(f"issues could not be delivered: {error}")
    night.problems += renew_copies(plan_history(plan, home), home.backups, plan.backups)
    _renew_site(plan, home, store, night.problems)
    return night


def _close_alerts_of_boxes(store: Store) -> None:
    """Close what an earlier Tidemark told of boxes that fell silent: a missing ping tells it now."""
    with store.database.writing() as connection:
        left = [
            replace(alert.desired, state=IssueState.CLOSED, closing="boxes are no longer watched by issues")
            for alert in alert_outbox.load(connection)
            if alert.desired.fingerprint.startswith(ANY_BOX) and alert.desired.state is IssueState.OPEN
        ]
        alert_outbox.set_desired(connection, left, store.now())


def _ids(changes: Iterable[Change], without: Collection[int] = ()) -> list[int]:
    return [change.id for change in changes if change.id not in without]


def deliver(plan: Plan, home: Home, store: Store, problems: list[str]) -> DeliveryResult | None:
    """Bring the tracker to the desired state of the outbox; None without a repository or a token.

    What could not be delivered is added to `problems`, and so is how many alerts wait, in every delivery
    until the tracker has them; also that an alert would not reach it, when none is due. There is one delivery
    at a time, because two of them could both miss an issue and open it.
    """
    tracker = _opened_tracker(plan, home, _count_due(store), problems)
    if tracker is None:
        return None
    with store.database.delivery_lock():
        result = Delivery(store.database, tracker, plan.alerts.labels, plan.alerts.most_new_issues).run()
    problems += [f"alert {name}: {why}" for name, why in result.failed.items()]
    problems += [
        f"the issue of {name} was opened without its labels: {why}"
        for name, why in result.without_labels.items()
    ]
    problems += [f"the issue of {name}: {why}" for name, why in result.not_assigned.items()]
    if result.unreachable:
        keep_check(
            TrackerCheck(to_text(now()), tracker.repository, result.unreachable), home.path / TRACKER_CHECK
        )
    elif result.paused_until is None:
        _check(tracker, home, problems)
    if result.waiting:
        paused = result.paused_until
        why = f"the tracker wants no request before {paused:%H:%M:%S} UTC" if paused else _SEE_ABOVE
        problems.append(_waiting(result.waiting, why))
    return result


def check_delivery(plan: Plan, home: Home, problems: list[str]) -> None:
    """Add to `problems` why an alert would not reach the tracker of a plan; without a history, too."""
    tracker = _opened_tracker(plan, home, 0, problems)
    if tracker is not None:
        _check(tracker, home, problems)


def _opened_tracker(plan: Plan, home: Home, due: int, problems: list[str]) -> Tracker | None:
    """The tracker of a plan; None if it names no repository, or there is no token, which is a problem."""
    repository = plan.alerts.repository
    if repository is None:
        return None
    try:
        return open_tracker(plan.alerts.tracker, repository, plan.alerts.url)
    except MissingTokenError as error:
        keep_check(TrackerCheck(to_text(now()), repository, str(error)), home.path / TRACKER_CHECK)
        problems.append(_waiting(due, str(error)))
        return None


def _check(tracker: Tracker, home: Home, problems: list[str]) -> None:
    check = check_tracker(tracker, home.path / TRACKER_CHECK)
    if check.problem:
        problems.append(f"no alert would reach {tracker.repository}: {check.problem}")


def _waiting(count: int, why: str) -> str:
    return f"alerts wait in the outbox ({count}): {why}"


def _count_due(store: Store) -> int:
    with store.database.reading() as connection:
        return sum(alert.is_due for alert in alert_outbox.load(connection))


@dataclass(frozen=True)
class SessionComparison:
    """The comparison of a session of a night, or why there is none."""

    session: PlannedSession
    versions: tuple[Version, ...]
    """The contenders with a result."""

    found: Comparison | TidemarkError


def comparisons(night: NightResult, store: Store) -> Iterator[SessionComparison]:
    """Yield the comparison of every session of a night in which a contender was measured."""
    for session, outcome in night.carried_out:
        base, *contenders = session.request.versions
        measured = tuple(
            version
            for version in contenders
            if version not in outcome.not_built and str(version) not in outcome.without_result
        )
        if not measured or str(base) in outcome.without_result:
            continue
        found: Comparison | TidemarkError
        try:
            found = compare(store.holder(outcome.uid), base, measured, CompareOptions(session=outcome.uid))
        except TidemarkError as error:
            found = error
        yield SessionComparison(session, measured, found)


def _renew_site(plan: Plan, home: Home, store: Store, problems: list[str]) -> None:
    """Renew the report site, if the plan has one. What goes wrong is a problem of the night, and no more."""
    if not plan.site.write:
        return
    folder = Path(plan.site.folder) if plan.site.folder else home.site
    try:
        options = SiteOptions(folder, plan.site.public, bisects=read_bisects(store), commits=commits_in(home))
        write_site(store, of_plan(options, plan), Silent())
    except (TidemarkError, OSError) as error:
        problems.append(f"the report site could not be renewed: {error}")
