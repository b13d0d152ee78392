"""What passes count, in place of servers under callgrind."""

import pytest

from runners.measuring.passes import counted_passes
from tests.runners.measuring.journal import Journal
from tests.runners.measuring.passes.stand import Passes


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch, journal: Journal) -> Passes:
    """What passes count, on a machine on which `journal` sees nothing else run."""
    passes = Passes()
    monkeypatch.setattr(counted_passes, "count", passes)
    return passes
