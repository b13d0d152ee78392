"""What was confirmed in its own night, for people."""

from history.changes.confirmation import Confirmation
from history.rendering.table import NAMES


def held_against(each: Confirmation) -> str:
    """How it was measured, and what came out: `7 interleaved rounds, X against Y: -7.1% (-8.0% to -6.2%)`."""
    rounds = f"{each.rounds} interleaved rounds"
    return f"{rounds}, {each.before.version} against {each.after.version}: {interval(each)}"


def interval(each: Confirmation) -> str:
    """Of tonight's commit over the one that it was held against."""
    return f"{each.ratio - 1:+.1%} ({each.low - 1:+.1%} to {each.high - 1:+.1%})"


def what(each: Confirmation) -> str:
    """Step and metric."""
    return f"{each.key.step} {NAMES.get(each.key.metric, each.key.metric)}"
