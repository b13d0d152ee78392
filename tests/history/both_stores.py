"""Where a test has its history, in each of the two stores: for modules whose statements both must take."""

from pathlib import Path

import pytest

from tests.history.conftest import Target, emptied


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.server)])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Target:
    """A place for a history that holds nothing yet, in each of the two stores."""
    if request.param == "sqlite":
        return tmp_path / "history.db"
    url: str = request.getfixturevalue("server_url")
    return emptied(url)
