"""A plan, a git source and a stand-in tracker, for a plan that is checked."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from runners.alerting import tokens
from runners.service import installed, plan_check
from tests.plain_repository import PlainRepository
from tests.runners.alerting.github import GitHub, running


@pytest.fixture
def github() -> Iterator[GitHub]:
    """The stand-in of GitHub."""
    with running() as github:
        yield github
        assert github.violations == []


@dataclass
class NewBox:
    """A folder for plan, home and git source, on a machine that is fit for measurements."""

    folder: Path
    github: GitHub

    @property
    def plan(self) -> Path:
        return self.folder / "nightly.toml"

    def write(self, text: str = "", **changed: str) -> None:
        """Write a plan, with more lines at its end, and with values of the others changed."""
        values = {"branch": "main", "release": "18.6", "git": str(self.folder / "source"), **changed}
        self.plan.write_text(
            '[boxes.db1]\nlabel = "tidemark-db1"\n[engines.postgres]\nbase = "postgres@17.11"\n'
            f'releases = ["{values["release"]}"]\nbranches = ["{values["branch"]}"]\n'
            f'git = "{values["git"]}"\n[[tasks]]\nsuite = "write-heavy"\nprofile = "smoke"\n{text}'
        )


@pytest.fixture
def around(tmp_path: Path, github: GitHub, monkeypatch: pytest.MonkeyPatch, quick_disk: None) -> NewBox:
    (tmp_path / "home").mkdir()
    PlainRepository(tmp_path / "source").commit("a file")
    for name in ("TIDEMARK_HOME", "TIDEMARK_BOX", "TIDEMARK_GIT_POSTGRES", "GITHUB_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TIDEMARK_LOCK", str(tmp_path / "lock"))
    monkeypatch.setenv("GITHUB_API_URL", github.url)
    monkeypatch.setenv("TIDEMARK_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(installed, "ENVIRONMENT", tmp_path / "environment")
    for module in (tokens, plan_check):
        monkeypatch.setattr(module, "STORE", str(tmp_path / "credentials"))
    # What this machine, where the checkout belongs to whoever tests, has or lacks must not decide.
    monkeypatch.setattr(plan_check, "examine", lambda machine: iter(()))
    monkeypatch.setattr(plan_check, "missing_packages", list)
    monkeypatch.setattr(plan_check, "require_reachable", lambda site: None)
    monkeypatch.setattr(plan_check, "blocked_folder", lambda path: None)
    return NewBox(tmp_path, github)
