"""Confirmations: a commit of a branch and an earlier one, measured in interleaved rounds of one session.

What is to be asked, the request of a session that answers it, the findings of its rounds, and what these say
of the shifts that the watch raises. Everything outside imports from here.
"""

from history.changes.confirmation.ask import OpenQuestion, asked, open_questions, whether_new
from history.changes.confirmation.decide import CONFIDENCE, METRIC_CONFIDENCE, decide
from history.changes.confirmation.refutation import weighed
from history.changes.confirmation.request import ConfirmationRequest, Confirms
from history.changes.confirmation.store import Confirmation, latest_by_nights, load, session_id
from history.changes.confirmation.suspects import FALSE_SUSPECTS_A_NIGHT, WAYS_OF_SUSPICION, series_count

__all__ = [
    "CONFIDENCE",
    "FALSE_SUSPECTS_A_NIGHT",
    "METRIC_CONFIDENCE",
    "WAYS_OF_SUSPICION",
    "Confirmation",
    "ConfirmationRequest",
    "Confirms",
    "OpenQuestion",
    "asked",
    "decide",
    "latest_by_nights",
    "load",
    "open_questions",
    "series_count",
    "session_id",
    "weighed",
    "whether_new",
]
