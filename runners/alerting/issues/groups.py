"""One issue for one cause: which alert tells a group of things, and which alerts it makes superfluous."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from history.escaping.markdown import document, md
from history.store.alert_outbox import Alert, ClosedAs, DesiredIssue, IssueState


@dataclass(frozen=True)
class Assigned:
    """Who tells a group."""

    alert: Alert | None
    """The alert that has told a part of it before; None for a new one."""

    superseded: tuple[Alert, ...] = ()
    """Other open alerts that have told a part of it."""


def assign(groups: Sequence[Sequence[str]], alerts: Sequence[Alert]) -> list[Assigned]:
    """Find for each group, given as the fingerprints of its members, the alert that goes on to tell it.

    It is one that nobody muted if there is one, rather open than closed, the oldest of several. An alert
    tells one group only.
    """
    chosen: list[Alert | None] = []
    for members in groups:
        taken = {alert.id for alert in chosen if alert is not None}
        free = [alert for alert in alerts if alert.id not in taken]
        candidates = [alert for alert in free if not set(members).isdisjoint(alert.desired.told)]
        chosen.append(min(candidates, key=_preference, default=None))
    taken = {alert.id for alert in chosen if alert is not None}
    free = [alert for alert in alerts if alert.id not in taken and _is_open(alert) and alert.muted is None]
    assigned: list[Assigned] = []
    for alert, members in zip(chosen, groups, strict=True):
        others = tuple(other for other in free if not set(members).isdisjoint(other.desired.told))
        free = [other for other in free if other not in others]
        assigned.append(Assigned(alert, others))
    return assigned


def superseded_issues(assigned: Assigned, told_by: DesiredIssue) -> Iterator[DesiredIssue]:
    """The issues that end because another one tells the same."""
    number = assigned.alert.issue if assigned.alert is not None else None
    where = md("#{}", number) if number is not None else md("the issue “{}”", told_by.title)
    for alert in assigned.superseded:
        yield replace(
            alert.desired,
            body=document([md("{} tells of this, too: both have the same cause.", where)]),
            state=IssueState.CLOSED,
            closing="the same cause is told in another issue, which the text above names",
            closed_as=ClosedAs.NOT_PLANNED,
            seen_at=None,
        )


def _preference(alert: Alert) -> tuple[bool, bool, int]:
    return alert.muted is not None, not _is_open(alert), alert.id


def _is_open(alert: Alert) -> bool:
    return alert.desired.state is IssueState.OPEN
