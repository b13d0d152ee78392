"""`./tidemark runner watch`: this box by heartbeat and results, and the others of a shared history."""

import json
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from build.files import json_value, make_folder, write_atomically
from build.home import Home
from history.errors import HistoryError, NewerSchemaError
from history.escaping.characters import one_line
from history.escaping.markdown import document, md
from history.open import existing_history, is_server, open_store
from history.store.writer import Store
from runners.alerting.direct_issues import DirectAlert, DirectIssues
from runners.alerting.issues.box_names import box_prefix, digest
from runners.alerting.notices.outbox import NoticeKind
from runners.alerting.notices.routes import About
from runners.alerting.notices.sending import send_directly
from runners.alerting.tracker import TrackerError
from runners.alerting.tracker_registry import open_tracker
from runners.fitness.agent_release import agent_releases
from runners.fitness.kernel import Kernel
from runners.monitoring.prometheus import MetricsFile
from runners.nightly.health import box_healths, full_disk
from runners.nightly.heartbeat import MISSED_HOURS, WELL, State, Status, status
from runners.nightly.plan import Plan, plan_history
from runners.nightly.report import deliver
from runners.nightly.status_text import heard_of, status_text, task_lines
from runners.nightly.telling import tell_of_watch
from runners.occupancy.pause import Pause, last_pause
from runners.values import history_of
from runners.watching.box_issues import (
    close_removed,
    judged,
    results_trouble,
    silent_line,
    update_others,
    update_outbox,
)
from runners.watching.telling import tell
from runners.watching.watch_github import github_verdicts

HISTORY_AWAY = "history-away.json"
"""The file in the output folder that says since when the watch has not reached the history, as long as it has
not."""

TOLD_OF_GITHUB = "told-of-github"
"""An empty file there while the watch has issues about schedules or runners of GitHub."""


@dataclass(frozen=True)
class ThisBox:
    """What a box knows of itself without the history."""

    box: str
    home: Home
    found: Status
    """Its heartbeat, and the state by that."""

    state: State
    """The state that is known from when it was installed, too."""

    pause: Pause | None
    """The last one, which may have ended."""

    disk: str
    """That the disk is full; empty if it is not."""

    def lines(self, now: datetime) -> list[str]:
        """Return its state for people."""
        paused = self.pause if self.pause is not None and self.pause.is_in_force(now) else None
        return [status_text(Status(self.state, self.found.beat), now, paused), *filter(None, [self.disk])]


def watch_box(plan: Plan, box: str, home: Home, installed: datetime | None, now: datetime) -> int:
    """Print the state of this box, and of others that are silent; return 1 when somebody has to act.

    Each has an issue. Return 2 when all is well and an alert could not be delivered, else 0.
    """
    pause = last_pause(home)
    found = status(home.heartbeat, now, None if pause is None else pause.until)
    expected = [moment for moment in (installed, pause.until if installed and pause else None) if moment]
    this = ThisBox(
        box, home, found, judged(found, max(expected, default=None), now), pause, full_disk(home.path)
    )
    history = history_of(str(plan_history(plan, home)), home)
    problems, metrics = list[str](), MetricsFile(plan, box, home)
    try:
        # A history that was lost is not made anew: the box would be as well as before its first night.
        had_night = found.beat is not None and found.beat.has_recorded
        with open_store(existing_history(str(history)) if had_night else history) as store:
            is_well = _by_history(plan, this, store, now, problems, sees_others=is_server(history))
            deliver(plan, home, store, problems)
            problems += tell_of_watch(plan, store)
            metrics.write(store)
    except HistoryError as error:
        metrics.write(None)
        _complain(filter(None, [metrics.problem]))
        return _without_history(plan, this, error, now)
    problems += filter(None, [metrics.problem])
    _settle(plan, this, problems)
    is_well = _by_github(plan, this, problems, now) and is_well
    _complain(problems)
    if is_well:
        return 2 if problems else 0
    return 1


def _by_history(
    plan: Plan, this: ThisBox, store: Store, now: datetime, problems: list[str], *, sees_others: bool
) -> bool:
    """Print what the history knows of boxes, and set their issues; return whether all are well."""
    boxes = list(plan.boxes) if sees_others else [this.box]
    with store.database.reading() as connection:
        healths = box_healths(plan, connection, now, boxes, heard_of(this.found, this.pause))
    (own,) = (health for health in healths if health.box == this.box)
    # One that the history has never heard of is not silent: it may not be set up yet.
    others = [other for other in healths if other.box != this.box and other.last_sign is not None]
    # Before its first night nothing of a box can be late but the night itself.
    is_first = this.state is State.NEVER
    is_well = this.state in WELL and not this.disk and (is_first or own.is_well)
    silent = [silent_line(health) for health in others if health.is_silent]
    lines = [*this.lines(now), *task_lines(own, now), *silent]
    print("\n".join(lines if is_well else [*lines, "see docs/hardware.md"]), flush=True)
    trouble = [] if is_first else results_trouble(own, this.disk)
    update_outbox(store, this.box, this.found, this.state, now, trouble)
    update_others(store, others, now)
    close_removed(store, plan.boxes, now)
    return is_well and not silent


def _by_github(plan: Plan, this: ThisBox, problems: list[str], now: datetime) -> bool:
    """Print what GitHub says of schedules and runners, if somebody has to act, and set the issues."""
    found, unknown = github_verdicts(plan, this.box, agent_releases(Kernel()), now)
    alerts = [verdict for verdict in found if verdict.alert is not None]
    for line in (*unknown, *(verdict.line for verdict in alerts)):
        print(line, flush=True)
    # The issues are many requests to read, and there are none to close before one was opened.
    told = this.home.path / TOLD_OF_GITHUB
    if alerts or told.exists():
        failed = tell(plan, found)
        problems += failed
        if alerts:
            make_folder(this.home.path)
            told.touch()
        elif not failed and not unknown:
            told.unlink(missing_ok=True)
    return not alerts


# --- without the history


def _without_history(plan: Plan, this: ThisBox, error: HistoryError, now: datetime) -> int:
    """Say that the history cannot be read; return 1 when that needs somebody, else 2.

    Nights go on without a server that is away (docs/history.md), for as long as nothing else is wrong:
    nobody could be told. It comes back by itself; a newer schema is there until this box is updated.
    """
    print("\n".join(this.lines(now)), flush=True)
    away = _away_since(this.home, now)
    is_late = now - away > timedelta(hours=MISSED_HOURS)
    is_newer = isinstance(error, NewerSchemaError)
    what = "cannot be read by this version" if is_newer else "is not reached"
    _complain([f"the history {what} since {away:%Y-%m-%d %H:%M} UTC: {error}"])
    if this.state in WELL and not this.disk and not is_late and not is_newer:
        return 2
    began = this.found.beat.began_at if this.found.beat else "never"
    text = document(
        [
            md("Box **{}**: {}.", this.box, this.state),
            "",
            md("Its history {} since {:%Y-%m-%d %H:%M} UTC: {}", what, away, error.what),
            *(["", _UNTIL_UPDATED] if is_newer else []),
            "",
            "docs/hardware.md says what to do. The issue is closed when the history is reached again.",
        ]
    )
    title = f"box {this.box}: its history {what} since {away:%Y-%m-%d}"
    alert = DirectAlert(_subject(this), digest(began), title, text)
    _complain(_directly(plan, lambda issues: issues.tell(alert)))
    advice = "./tidemark status on the box, then docs/hardware.md"
    _complain(
        _tell_routes(plan, this, NoticeKind.TROUBLE, f"Trouble: {title}; {error.what}; to do: {advice}")
    )
    return 1


_UNTIL_UPDATED = md(
    "Update Tidemark on this box. Until then its watch does not see whether other boxes are silent, and what"
    " is recorded for a history on a server waits on the box."
)


def _settle(plan: Plan, this: ThisBox, problems: list[str]) -> None:
    """Close the issue about a history that is reached again."""
    if not (this.home.path / HISTORY_AWAY).exists():
        return
    failed = _directly(plan, lambda issues: issues.settle(_subject(this), "its history is reached again"))
    over = f"Over: box {this.box}: its history is reached again"
    failed += _tell_routes(plan, this, NoticeKind.OVER, over)
    problems += failed
    if not failed:
        (this.home.path / HISTORY_AWAY).unlink(missing_ok=True)


@dataclass(frozen=True)
class _Away:
    """What is kept on the box while the history is away."""

    since: datetime
    told: tuple[str, ...] = ()
    """The routes that know."""

    def keep(self, home: Home) -> None:
        make_folder(home.path)
        kept = {"since": self.since.isoformat(), "told": self.told}
        write_atomically(home.path / HISTORY_AWAY, json.dumps(kept) + "\n")


def _kept(home: Home) -> _Away | None:
    """Return what is kept of a history that is away; None for one that is not."""
    try:
        kept = json_value((home.path / HISTORY_AWAY).read_text(encoding="utf-8"))
        return _Away(datetime.fromisoformat(kept["since"]), tuple(map(str, kept.get("told", ()))))
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


def _away_since(home: Home, now: datetime) -> datetime:
    """Return since when the history is away, and keep it for the next watch."""
    away = _kept(home)
    if away is None:
        away = _Away(now)
        away.keep(home)
    return away.since


def _tell_routes(plan: Plan, this: ThisBox, kind: NoticeKind, text: str) -> list[str]:
    """Tell routes that the history is away, or those that know of it that it is back; return what went wrong.

    Each is told once: the box keeps which of them know.
    """
    away = _kept(this.home)
    if away is None:
        return []
    is_over = kind is NoticeKind.OVER
    asked = [route for route in plan.notify if (route.name in away.told) is is_over]
    sent = send_directly(asked, kind, About(boxes=[this.box]), one_line(text))
    arrived = [name for name, error in sent.items() if error is None]
    left = [name for name in away.told if name not in arrived]
    if arrived:
        replace(away, told=tuple(left if is_over else [*left, *arrived])).keep(this.home)
    return [str(error) for error in sent.values() if error is not None]


def _directly(plan: Plan, act: Callable[[DirectIssues], str]) -> list[str]:
    """Do something with issues in the tracker itself, if the plan has one; return what went wrong."""
    if plan.alerts.repository is None:
        return []
    try:
        tracker = open_tracker(plan.alerts.tracker, plan.alerts.repository, plan.alerts.url)
        done = act(DirectIssues(tracker, plan.alerts.labels))
    except TrackerError as error:
        return [f"the issue of the box could not be written: {error}"]
    if done:
        print(done)
    return []


def _subject(this: ThisBox) -> str:
    return f"{box_prefix(this.box)}history"


def _complain(problems: Iterable[str]) -> None:
    for problem in problems:
        print(f"tidemark: {problem}", file=sys.stderr)
