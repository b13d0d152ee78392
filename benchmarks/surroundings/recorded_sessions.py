"""Sessions that are recorded into a history that stays, until there are enough of them."""

from collections.abc import Callable

from benchmarks.output.figures import Figure
from runners.console import Lines
from runners.measuring.session import SessionOutcome


def record_sessions(
    what: str, enough: int, recorded: Callable[[], int], record: Callable[[], SessionOutcome], shown: Lines
) -> list[Figure]:
    """Record sessions until there are enough; `recorded` says how many there are.

    Return a missed figure with the failures of a session that is not whole, after which no other begins;
    empty if there are enough.
    """
    while (number := recorded()) < enough:
        shown.note(f"{what}: session {number + 1} of {enough}")
        outcome = record()
        if not outcome.whole:
            failures = [*outcome.failures, *map(str, outcome.not_built.values())]
            return [Figure(f"{what}: failures", len(failures), "", at_most=0, note="; ".join(failures))]
    return []
