"""A machine of files."""

from pathlib import Path

import pytest

from suites.accounting.proc import TICKS_PER_SECOND
from tests.suites.fake_proc import US, FakeMachine


@pytest.fixture
def machine(tmp_path: Path) -> FakeMachine:
    assert TICKS_PER_SECOND == 100
    made = FakeMachine(tmp_path)
    made.process(US, "tidemark")
    return made
