"""What came of trials of one kind."""

from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass
class Outcome:
    """The trials of one kind, and what was wrong with them."""

    kind: str
    tried: int = 0
    failed: int = 0
    """Trials with a fault; one can have several."""

    faults: list[str] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    """Surroundings -> why they were not tried."""

    def add(self, faults: Iterable[str]) -> None:
        """Add a trial with its faults."""
        found = list(faults)
        self.tried += 1
        self.failed += bool(found)
        self.faults += found
