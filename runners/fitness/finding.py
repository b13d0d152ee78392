"""A check of the machine, and what it found."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from runners.fitness.place import Place


class Level(StrEnum):
    """How bad it is."""

    OK = "ok"
    NOTE = "note"
    """It cannot be known here, or it does no harm to most measurements."""

    UNFIT = "unfit"
    """Numbers that are measured now may not be believed."""


@dataclass(frozen=True)
class Reading:
    """What a check saw."""

    level: Level
    text: str
    mend: str = ""
    """The command that mends it; empty when there is none."""


@dataclass(frozen=True)
class Check:
    """One thing that is looked at."""

    name: str
    why: str
    """Why it matters, in one sentence."""

    look: Callable[[Place], Reading]
    """May raise OSError and ValueError, which say that it cannot be known."""


@dataclass(frozen=True)
class Finding:
    """A check with what it found."""

    check: Check
    found: Reading

    def as_json(self) -> dict[str, str]:
        """One object of `check --format json`."""
        return {
            "check": self.check.name,
            "level": self.found.level,
            "found": self.found.text,
            "why": self.check.why,
            "mend": self.found.mend,
        }


FIX = "./tidemark check --fix"
NOT_VISIBLE = "not visible in this machine (virtual?)"


def ok(text: str) -> Reading:
    """Nothing to say against it."""
    return Reading(Level.OK, text)


def note(text: str, mend: str = "") -> Reading:
    """Worth knowing."""
    return Reading(Level.NOTE, text, mend)


def unfit(text: str, mend: str = "") -> Reading:
    """Not to be measured on."""
    return Reading(Level.UNFIT, text, mend)
