"""What was confirmed in its own night, for people."""

from history.changes.confirmation import Confirmation
from history.changes.repository import Change
from suites.metrics import PRIMARY, label_of


def held_against(each: Confirmation) -> str:
    """How it was measured, and what came out: `7 interleaved rounds, X against Y: -7.1% (-8.0% to -6.2%)`."""
    rounds = f"{each.rounds} interleaved rounds"
    return f"{rounds}, {each.before.version} against {each.after.version}: {interval(each)}"


def interval(each: Confirmation) -> str:
    """Of tonight's commit over the one that it was held against."""
    return f"{each.ratio - 1:+.1%} ({each.low - 1:+.1%} to {each.high - 1:+.1%})"


def what(each: Confirmation) -> str:
    """Step and metric."""
    return f"{each.key.step} {label_of(each.key.metric)}"


def surest(change: Change) -> Confirmation | None:
    """What confirms the series of a change that says most: throughput before costs, then the larger."""
    found = [each.confirmed for each in change.members if each.confirmed is not None]
    return max(found, key=lambda each: (each.key.metric == PRIMARY, abs(each.ratio - 1)), default=None)
