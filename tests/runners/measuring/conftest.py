"""A journal of what servers, generator and store were asked to do, without what other processes do."""

import pytest

from runners.measuring import round_measurement
from suites.accounting.disturbance import DisturbanceLimits
from tests.runners.measuring.journal import Journal


@pytest.fixture
def journal(monkeypatch: pytest.MonkeyPatch) -> Journal:
    """A journal, whose `disturbed` decides what is seen of other processes."""
    journal = Journal()

    class FakeWatch:
        def __init__(self, ours: object) -> None: ...

        def begin(self) -> None: ...

        def end(self) -> "FakeWatch":
            return self

        def metrics(self) -> dict[str, float]:
            return {"others_cpu_share": 0.25}

        def reasons(self, limits: DisturbanceLimits) -> tuple[str, ...]:
            journal.disturbed -= 1
            return ("a neighbour",) if journal.disturbed >= 0 else ()

    monkeypatch.setattr(round_measurement, "DisturbanceWatch", FakeWatch)
    return journal
