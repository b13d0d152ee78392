"""How servers warmed up before the first block of a step in long mode, as it is told and recorded."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

WARMED_UP = "warmed_up"
"""The option of a session with the warmth of its servers: by step, an object with the `seconds` for which all
of them worked, what was waited `for`, of `memory` and `checkpoint`, and what was `lacking` after that."""


@dataclass(frozen=True)
class Warmth:
    """How far servers got."""

    seconds: float
    """How long each of them worked."""
    checkpoint: bool
    """Whether a checkpoint was waited for too, and not only memory that is full or no longer grows."""
    lacking: Sequence[str] = ()
    """What a server had not reached by then, one clause each; empty if all had reached everything."""

    @property
    def text(self) -> str:
        """What was reached, in words."""
        reached = "all have what they need in memory" + (", and a checkpoint is over" * self.checkpoint)
        return "; ".join(self.lacking) or reached

    def as_option(self) -> dict[str, object]:
        """Return it as the option of a session has it."""
        waited = ["memory", "checkpoint"] if self.checkpoint else ["memory"]
        return {"seconds": self.seconds, "for": waited, "lacking": list(self.lacking)}


def warmth_of(option: object) -> Mapping[str, Warmth]:
    """Return what the option of a session says, by step; a step of which it says nothing that can be is not
    there."""
    found = {}
    for step, said in option.items() if isinstance(option, Mapping) else ():
        seconds, waited, lacking = (
            said.get(name) if isinstance(said, Mapping) else None for name in ("seconds", "for", "lacking")
        )
        if isinstance(seconds, int | float) and isinstance(waited, list) and isinstance(lacking, list):
            found[str(step)] = Warmth(float(seconds), "checkpoint" in waited, tuple(map(str, lacking)))
    return found
