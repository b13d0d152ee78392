"""The hostile history, made once, and copied for each test."""

import shutil
from pathlib import Path

import pytest

from tests.outputs.hostile_history import make_hostile, write_history


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A history with something of everything, in which nothing is hostile."""
    path = tmp_path_factory.mktemp("written") / "history.db"
    write_history(path)
    return path


@pytest.fixture
def home(written: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with the hostile history."""
    folder = tmp_path / "home"
    folder.mkdir()
    shutil.copy(written, folder / "history.db")
    make_hostile(folder / "history.db")
    monkeypatch.setenv("TIDEMARK_HOME", str(folder))
    return folder
