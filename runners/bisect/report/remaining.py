"""How long a search that has no answer yet still takes, if it goes on learning as it did so far."""

import numpy as np

from history.store.bisects import EventKind
from runners.bisect.report.state import BisectState

LEARNED = 0.1
"""The least share of what there is to learn from which on what is left is estimated."""


def seconds_left(state: BisectState, seconds: float) -> float | None:
    """Return the seconds that an open search still needs; None while it has learned too little.

    `seconds` are what its last session took, with the builds before it. What the rounds so far have taken of
    the uncertainty about the commit, in bits, the others take of the rest, as fast.
    """
    uids = [event.session for event in state.log.bisect.events if event.kind is EventKind.SESSION]
    last = len(state.log.rounds.get(uids[-1] or "", ())) if uids else 0
    whole = float(np.log2(state.log.span.length + 1))
    rest = max(0.0, _bits(np.array(state.posterior)) - _bits(_at_the_end(state)))
    learned = 1 - rest / whole
    if not (last and state.posterior) or learned < LEARNED:
        return None
    rounds = state.rounds + state.passes
    return seconds / last * max(1.0, rounds * (1 - learned) / learned)


def _at_the_end(state: BisectState) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return a posterior at which a search stops: the commit, and one other explanation."""
    stop = state.log.question.rules().stop
    return np.array([stop, 1 - stop])


def _bits(shares: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
    """Return the entropy of a distribution in bits."""
    present = shares[shares > 0]
    return float(-(present * np.log2(present)).sum())
