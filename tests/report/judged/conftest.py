"""The history of sessions that other metrics judge, and its site."""

from pathlib import Path

import pytest

from tests.report.conftest import write
from tests.report.judged.judged_history import JudgedHistory


@pytest.fixture(scope="session")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The path of the history."""
    path = tmp_path_factory.mktemp("judged") / "h.db"
    JudgedHistory(path).write()
    return path


@pytest.fixture(scope="session")
def pages(judged: Path) -> Path:
    """Its site."""
    folder = judged.with_name("site")
    write(judged, folder)
    return folder
