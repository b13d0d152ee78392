"""A check of the machine, and its result."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from runners.fitness.checked_machine import CheckedMachine


class Level(StrEnum):
    """The severity of a finding."""

    OK = "ok"
    NOTE = "note"
    """It cannot be determined here, or does not affect most measurements."""

    UNFIT = "unfit"
    """Results that are measured in this state are not reliable."""


@dataclass(frozen=True)
class Reading:
    """What a check read on the machine."""

    level: Level
    text: str
    remedy: str = ""
    """The command that fixes it; empty when there is none. It never stops what somebody else has started."""

    look: str = ""
    """A command that shows more, where a person has to decide; empty without one."""


@dataclass(frozen=True)
class Check:
    """One property of the machine that is checked."""

    name: str
    why: str
    """Why it matters for measurements, in one sentence."""

    look: Callable[[CheckedMachine], Reading]
    """Raises OSError or ValueError when the property cannot be determined."""


@dataclass(frozen=True)
class CheckFinding:
    """A check with its reading."""

    check: Check
    reading: Reading

    def as_json(self) -> dict[str, str]:
        """Return the finding as an object of `check --format json`."""
        return {
            "check": self.check.name,
            "level": self.reading.level,
            "found": self.reading.text,
            "why": self.check.why,
            "mend": self.reading.remedy,
            "look": self.reading.look,
        }


FIX = "./tidemark check --fix"
NOT_VISIBLE = "not visible in this machine (virtual?)"


def ok(text: str) -> Reading:
    """Return a reading that is fit for measurements."""
    return Reading(Level.OK, text)


def note(text: str, remedy: str = "", look: str = "") -> Reading:
    """Return a reading that is worth knowing but does not make the machine unfit."""
    return Reading(Level.NOTE, text, remedy, look)


def unfit(text: str, remedy: str = "", look: str = "") -> Reading:
    """Return a reading that makes the machine unfit for measurements."""
    return Reading(Level.UNFIT, text, remedy, look)
