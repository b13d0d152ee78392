"""The request of a confirming session: which commits it compares, in which steps, and to decide what."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Self

from history.errors import DamagedTextError
from history.store.records import CONFIRMS


class ConfirmationRequest(StrEnum):
    """The question that a confirming session answers."""

    NEW = "new"
    """Does tonight's commit differ from the one before it?"""

    GONE = "gone"
    """Is a change gone? Tonight's commit is compared with the one before the change."""


@dataclass(frozen=True)
class Confirms:
    """The options of a confirming session. Nights are given by the uid of their session."""

    question: ConfirmationRequest
    branch: str
    before: str
    """The session of the night whose version of the branch is the base."""

    night: str
    """The session of the night with the suspects."""

    steps: tuple[str, ...]
    threshold: float
    """The fraction beyond which a ratio counts as a change."""

    change: str = ""
    """The fingerprint of the change that may be gone."""

    def option(self) -> dict[str, Any]:
        """Return the value of the option CONFIRMS."""
        return {**asdict(self), "steps": list(self.steps)}

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Self | None:
        """Return what a session with these options confirms; None for an ordinary session.

        Raises DamagedTextError if the options are not those that Tidemark writes.
        """
        value = options.get(CONFIRMS)
        if not isinstance(value, dict):
            return None
        try:
            question, steps = ConfirmationRequest(value["question"]), tuple(value["steps"])
            return cls(**{**value, "question": question, "steps": steps})
        except (KeyError, TypeError, ValueError) as error:
            raise DamagedTextError(
                f"the option {CONFIRMS} of a session is {value!r:.60}, which is not a confirmation"
            ) from error
