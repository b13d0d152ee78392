"""A plan, a root to install below, and GitHub's runner there."""

from pathlib import Path

import pytest

from tests.runners.installing.boxes import PLAN


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TIDEMARK_HOME", "TIDEMARK_USER", "TIDEMARK_BOX"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    path = tmp_path / "plan.toml"
    path.write_text(PLAN)
    return path


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "root"


@pytest.fixture
def agent(root: Path) -> Path:
    """GitHub's runner, with a line of its own in its environment."""
    folder = root / "srv/actions runner"
    folder.mkdir(parents=True)
    for name in ("config.sh", "run.sh"):
        (folder / name).write_text("#!/bin/sh\n")
    (folder / ".env").write_text("LANG=C.UTF-8\n")
    return folder
