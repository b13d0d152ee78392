"""The end of a night: the judge's word, issues, a summary for people, a copy of the history."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from build.errors import TidemarkError
from build.home import Home
from build.lock import held
from history.changes.confirmation import Confirmation, ConfirmationRequest
from history.changes.detector import Report, judge
from history.changes.repository import Change
from history.comparison.compare import CompareOptions, compare
from history.comparison.verdict import MetricChange, verdict_of
from history.rendering.confirmed import held_against, interval, surest, what
from history.rendering.escaping import escaped
from history.rendering.summary import render_summary
from history.store import alert_outbox
from history.store.writer import Store
from history.timestamps import now
from history.transfer.backup import back_up
from runners.alerting.delivery import Delivered, Delivery
from runners.alerting.tokens import github_token
from runners.alerting.wanted_issues import wanted_alerts
from runners.nightly.night import NightResult
from runners.nightly.plan import Plan
from suites.measurement import METRICS, Better

API = "https://api.github.com"
"""Where the tracker is asked, unless $GITHUB_API_URL says otherwise."""

DELIVERING = "delivering.lock"
"""Below the home."""

BACKUP = "history-"
"""Copies are called so, and by their day."""


@dataclass
class Morning:
    """What a night came to."""

    judged: Report
    delivered: Delivered | None = None
    """None when the plan names no repository."""

    problems: list[str] = field(default_factory=list)
    """Of telling and copying: what was measured is safe whatever these say."""


def report(plan: Plan, home: Home, store: Store) -> Morning:
    """Judge the whole history, bring the outbox up to date, deliver it, copy the history.

    What cannot be delivered stays in the outbox. Raises TidemarkError when the history cannot be read.
    """
    morning = Morning(judge(store.database))
    with store.database.reading() as connection:
        known = {each.wanted.fingerprint: each.wanted.state for each in alert_outbox.load(connection)}
        wanted = wanted_alerts(connection, plan.regression_percent / 100, known)
    # Apart from the texts, whose profiles take a moment that a night of another box need not wait.
    with store.database.writing() as connection:
        alert_outbox.want(connection, wanted, now())
    morning.delivered = deliver(plan, home, store, morning.problems)
    _copy(plan, home, store, morning.problems)
    return morning


def deliver(plan: Plan, home: Home, store: Store, problems: list[str]) -> Delivered | None:
    """Bring the tracker up to date with the outbox; None without a repository in the plan, or a token.

    What could not be delivered is said in `problems`. Two at once could both miss an issue and open it: two
    of one host, whose history is a file, or two of several that share one.
    """
    if plan.alerts.repository is None:
        return None
    token = github_token()
    if not token:
        problems.append("alerts wait in the outbox: GITHUB_TOKEN is not set")
        return None
    from runners.alerting.tracker import Tracker  # takes a moment that other nights need not wait

    tracker = Tracker(plan.alerts.repository, token, os.environ.get("GITHUB_API_URL", API))
    with held(home.path / DELIVERING), store.database.delivery_lock():
        delivery = Delivery(store.database, tracker, plan.alerts.labels, plan.alerts.most_new_issues)
        delivered = delivery.run()
    problems += [f"alert {name}: {why}" for name, why in delivered.failed.items()]
    return delivered


def _copy(plan: Plan, home: Home, store: Store, problems: list[str]) -> None:
    """One copy a day, the latest so many; a copy that fails is told, and deletes none."""
    if plan.backups == 0:
        return
    home.backups.mkdir(parents=True, exist_ok=True)
    try:
        back_up(plan_history(plan, home), home.backups / f"{BACKUP}{now():%Y-%m-%d}.db")
    except (TidemarkError, OSError) as error:
        problems.append(f"the history could not be copied: {error}")
        return
    for old in sorted(home.backups.glob(f"{BACKUP}*.db"))[: -plan.backups]:
        old.unlink()


def plan_history(plan: Plan, home: Home) -> Path | str:
    """The path or URL of the plan's history."""
    return plan.history if "://" in plan.history else home.path / plan.history


# --- for people


def summary(night: NightResult | None, morning: Morning | None, store: Store, when: datetime) -> str:
    """Markdown for a job's summary and for the output folder."""
    lines = [f"## Night of {when:%Y-%m-%d}", ""]
    if night is not None:
        lines += [f"Box {escaped(night.box)}: {night.told}.", ""]
    if morning is not None:
        lines += [*_changes(morning), ""]
    if night is not None and (night.settled or night.unsettled):
        lines += [*_settled(night), ""]
    problems = [*(night.problems if night else []), *(morning.problems if morning else [])]
    lines += [f"- {escaped(each)}" for each in problems]
    if night is not None:
        lines += ["", *_sessions(night, store)]
    return "\n".join(lines).rstrip() + "\n"


def _changes(morning: Morning) -> Iterator[str]:
    judged = morning.judged
    yield (
        f"{judged.series} series: {len(judged.new)} new changes, {len(judged.reopened)} back, "
        f"{len(judged.closed)} gone, {len(judged.open)} open."
    )
    for news, them in (("new", judged.new), ("back", judged.reopened), ("gone", judged.closed)):
        yield from (f"- {news}: {_line(each)}" for each in them)
    told = morning.delivered
    if told is not None:
        yield (
            f"Issues: {len(told.created)} opened, {len(told.updated)} updated, {len(told.closed)} closed, "
            f"{len(told.silenced)} silenced, {len(told.failed)} left for the next night."
        )


def _line(change: Change) -> str:
    steps = escaped(", ".join(sorted({each.key.step for each in change.members})))
    line = f"{change.direction} of {escaped(change.branch)} in {steps} ({change.fingerprint})"
    confirmed = surest(change)
    if confirmed is None:
        return line
    return f"{line}, confirmed the same night: {escaped(held_against(confirmed))}"


def _settled(night: NightResult) -> Iterator[str]:
    """What looked changed, and what rounds of its own said of it."""
    for each in night.settled:
        yield f"- looked into: {escaped(each.doubt.told)}"
        for version, why in each.outcome.not_built.items():
            yield f"  - {escaped(f'{version} could not be had, so that it is left to the watch: {why}')}"
        yield from (f"  - {escaped(why)}" for why in each.outcome.failures)
        for one in each.found:
            if one.key.metric == "qps" or one.is_step or one.is_return:
                said = f"{what(one)}: {interval(one)}, {one.rounds} rounds: {_finding(one)}"
                yield f"  - {escaped(said)}"
    yield from (f"- left for want of time: {escaped(each.told)}" for each in night.unsettled)


def _finding(one: Confirmation) -> str:
    if one.question is ConfirmationRequest.GONE:
        return "gone" if one.is_return else "not surely gone"
    if one.is_step:
        better = METRICS[one.key.metric].better
        return (
            f"confirmed: {verdict_of(one.finding, better)}" if better is not Better.NEITHER else "confirmed"
        )
    return "no change" if one.finding is MetricChange.SAME else "not confirmed"


def _sessions(night: NightResult, store: Store) -> Iterator[str]:
    for session, outcome in night.carried_out:
        versions = session.request.versions
        if len(versions) < 2:
            continue
        options = CompareOptions(session=outcome.uid)
        built = [each for each in versions[1:] if each not in outcome.not_built]
        try:
            yield render_summary(compare(store, versions[0], built, options))
        except TidemarkError as error:
            yield f"- {escaped(str(error))}"
