"""Answers, a git source and a stand-in tracker, for plans that are written."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from runners.alerting import tokens
from runners.initializing import needs, reach
from runners.installing.machine import TargetMachine
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
        return self.folder / "etc/nightly.toml"

    @property
    def words(self) -> list[str]:
        """The options that answer all questions but those about whom to tell."""
        return [
            *("--box", "db1", "--base", "postgres@17.11", "--release", "postgres@18.6"),
            *("--branch", "postgres@main", "--git", str(self.folder / "source")),
            *("--suite", "write-heavy", "--profile", "smoke", "--budget", "60"),
        ]

    @property
    def where(self) -> list[str]:
        """The options that say where to write."""
        return ["--plan", str(self.plan), "--home", str(self.folder / "home")]


@pytest.fixture
def around(tmp_path: Path, github: GitHub, monkeypatch: pytest.MonkeyPatch, quick_disk: None) -> NewBox:
    (tmp_path / "home").mkdir()
    PlainRepository(tmp_path / "source").commit("a file")
    for name in ("TIDEMARK_HOME", "TIDEMARK_BOX", "TIDEMARK_GIT_POSTGRES", "GITHUB_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TIDEMARK_LOCK", str(tmp_path / "lock"))
    monkeypatch.setenv("GITHUB_API_URL", github.url)
    for module in (tokens, reach):
        monkeypatch.setattr(module, "STORE", str(tmp_path / "credentials"))
    # What this machine, where the checkout belongs to whoever tests, has or lacks must not decide.
    monkeypatch.setattr(needs, "examine", lambda machine: iter(()))
    monkeypatch.setattr(needs, "missing_packages", list)
    monkeypatch.setattr(needs, "require_reachable", lambda site: None)
    monkeypatch.setattr(needs, "blocked_folder", lambda path: None)
    monkeypatch.setattr(TargetMachine, "has_systemd", True)
    return NewBox(tmp_path, github)
