"""A box whose nights hang, died or stay away, or bring no results: an alert, closed when the box is well."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from history.escaping.characters import one_line
from history.escaping.markdown import Markdown, document, indented, joined, md
from history.series.task_states import TaskOutcome
from history.store import alert_outbox
from history.store.alert_outbox import AlertKind, DesiredIssue, IssueState
from history.store.writer import Store
from runners.alerting.direct_issues import TRUSTED
from runners.alerting.issues.box_names import ANY_BOX, box_prefix, digest
from runners.nightly.health import BoxHealth
from runners.nightly.heartbeat import MISSED_HOURS, WELL, State, Status


def judged(found: Status, expected_since: datetime | None, now: datetime) -> State:
    """The state of a box. One that never began a night has missed one MISSED_HOURS after it was installed."""
    overdue = expected_since is not None and now - expected_since > timedelta(hours=MISSED_HOURS)
    return State.MISSED if found.state is State.NEVER and overdue else found.state


def results_trouble(health: BoxHealth, disk: str) -> list[str]:
    """Return why the results of a box are overdue, a line each, as far as no other issue says so.

    A version that does not compile, or whose server fails, has an issue of its own. `disk` says that the disk
    is full, if it is.
    """
    told = (TaskOutcome.UNUSABLE, TaskOutcome.FAILED)
    untold = (task for task in health.overdue if task.state is None or task.state.outcome not in told)
    return [*filter(None, [disk]), *(f"{task.name}: {task.why}" for task in untold)]


def update_outbox(
    store: Store, box: str, found: Status, state: State, now: datetime, trouble: Sequence[str] = ()
) -> None:
    """Set the desired state of the issues of a box; their text stays the same as long as the trouble does.

    Every time that a box falls silent is an alert of its own, identified by its last night, so that a person
    who closes one issue does not mute the next; what another box has told of it is taken over. Results that
    are overdue, for the reasons `trouble`, are one alert until they arrive. All are closed when the box is
    well.
    """
    with store.database.writing() as connection:
        known = [
            alert.desired
            for alert in alert_outbox.load(connection)
            if alert.desired.fingerprint.startswith(box_prefix(box))
        ]
        if state in WELL and not trouble:
            issues = [
                replace(issue, state=IssueState.CLOSED, closing="a night runs or ended, and results arrive")
                for issue in known
                if issue.state is IssueState.OPEN
            ]
        elif state in WELL:
            issues = [_overdue(box, trouble, known, now)]
        else:
            issue = _issue(box, found, state, trouble, known)
            issues = [replace(issue, seen_at=now - TRUSTED)]
        alert_outbox.set_desired(connection, issues, now)


def update_others(store: Store, others: Sequence[BoxHealth], now: datetime) -> None:
    """Set the desired state of the issues of other boxes: open for each that is silent, until it is not.

    What a box has told of itself, or another box of it, is left as it is: one cause has one issue.
    """
    with store.database.writing() as connection:
        known = [alert.desired for alert in alert_outbox.load(connection)]
        issues = []
        for health in others:
            told = [
                issue
                for issue in known
                if issue.state is IssueState.OPEN and issue.fingerprint.startswith(box_prefix(health.box))
            ]
            prefix, closing = _silent_prefix(health.box), "it has nights again"
            by_others = [issue for issue in told if issue.fingerprint.startswith(prefix)]
            if health.is_silent:
                lasting = by_others if told else [_silent(health)]
                issues += [replace(issue, seen_at=now - TRUSTED) for issue in lasting]
            else:
                issues += [replace(issue, state=IssueState.CLOSED, closing=closing) for issue in by_others]
        alert_outbox.set_desired(connection, issues, now)


def close_removed(store: Store, boxes: Collection[str], now: datetime) -> None:
    """Close the issues of boxes that the plan, which has `boxes`, does not have any more."""
    kept, closing = tuple(map(box_prefix, boxes)), "the plan has this box no more"
    with store.database.writing() as connection:
        known = [alert.desired for alert in alert_outbox.load(connection)]
        issues = [
            replace(issue, state=IssueState.CLOSED, closing=closing)
            for issue in known
            if issue.state is IssueState.OPEN
            and issue.fingerprint.startswith(ANY_BOX)
            and not issue.fingerprint.startswith(kept)
        ]
        alert_outbox.set_desired(connection, issues, now)


def silent_line(health: BoxHealth) -> str:
    """Return one line about a box that is silent."""
    last = f"{health.last_sign:%Y-%m-%d %H:%M} UTC" if health.last_sign else "never"
    return f"box {health.box}: no sign of a night in the history since {last}"


def _silent(health: BoxHealth) -> DesiredIssue:
    last = f"{health.last_sign:%Y-%m-%d %H:%M} UTC" if health.last_sign else "never"
    return DesiredIssue(
        f"{_silent_prefix(health.box)}{digest(last)}",
        AlertKind.CRASH,
        one_line(f"box {health.box}: silent since {last[:10]}"),
        _paragraphs(
            [
                md(
                    "Box **{}**: another box finds no sign of its nights in the history since {}.",
                    health.box,
                    last,
                ),
                "Is it on, and does it reach the history?",
            ]
        ),
        IssueState.OPEN,
    )


def _silent_prefix(box: str) -> str:
    return f"{box_prefix(box)}silent-"


def _overdue(box: str, trouble: Sequence[str], known: Sequence[DesiredIssue], now: datetime) -> DesiredIssue:
    """Return the issue of results that are overdue: the one that is open, or another."""
    prefix = f"{box_prefix(box)}results-"
    opened = (issue.fingerprint for issue in known if issue.state is IssueState.OPEN)
    fingerprint = next((name for name in opened if name.startswith(prefix)), f"{prefix}{digest(str(now))}")
    found = md("Nights of box **{}** end without the results that are due:", box)
    return DesiredIssue(
        fingerprint,
        AlertKind.CRASH,
        one_line(f"box {box}: results are overdue"),
        _paragraphs([found, _listed(trouble)]),
        IssueState.OPEN,
        seen_at=now - TRUSTED,
    )


def _issue(
    box: str, found: Status, state: State, trouble: Sequence[str], known: Sequence[DesiredIssue]
) -> DesiredIssue:
    last_night = found.beat.began_at if found.beat else "never"
    told = (issue.fingerprint for issue in known if issue.state is IssueState.OPEN)
    own = f"{box_prefix(box)}{digest(last_night)}"
    return DesiredIssue(
        next((name for name in told if name.startswith(_silent_prefix(box))), own),
        AlertKind.CRASH,
        one_line(f"box {box}: its night {'is missing' if state is State.MISSED else state}"),
        _body(box, found, state, trouble),
        IssueState.OPEN,
    )


def _body(box: str, found: Status, state: State, trouble: Sequence[str]) -> Markdown:
    beat = found.beat
    lines: list[str] = [md("Box **{}**: {}.", box, state)]
    if beat is None:
        lines.append("No night has begun since it was installed.")
    elif beat.ended_at is not None:
        lines.append(f"The last night began at {beat.began_at} and ended at {beat.ended_at}: {beat.outcome}.")
    else:
        lines.append(f"The night of {beat.began_at} was at this since {beat.since}: {beat.what}.")
    if trouble:
        lines += ["Results are overdue:", _listed(trouble)]
    return _paragraphs(lines)


def _listed(lines: Sequence[str]) -> Markdown:
    return joined(md("- {}", line) for line in lines)


def _paragraphs(lines: Sequence[str]) -> Markdown:
    """Return them with what a person looks at on the box."""
    steps = ["./tidemark status", "systemctl --failed", "systemctl list-timers 'tidemark-*'"]
    steps.append("journalctl -u tidemark-nightly --since -2d")
    advice = ["On the box:", indented("\n".join(steps)), "docs/hardware.md says what to do."]
    return document([joined([*lines, *advice], "\n\n")])
