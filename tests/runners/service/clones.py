"""A repository with the files of this checkout, a clone that is a box, and commits that the clone lacks."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from build.home import ROOT

PARTS = ("build", "suites", "history", "report", "runners", "compare.py", "tidemark", "pyproject.toml")
LISTS = ("requirements.txt", "requirements-dev.txt", ".gitignore")
IDENTITY = ("-c", "user.name=nobody", "-c", "user.email=nobody@example.com")

PLAN = (
    'backups = 2\n[boxes.here]\nlabel = "tidemark-here"\nhostname = "*"\n[engines.postgres]\n'
    'base = "postgres@17.11"\nreleases = ["18.6"]\n[[tasks]]\nsuite = "write-heavy"\nprofile = "smoke"\n'
)


def git(folder: Path, *words: str) -> str:
    return subprocess.run(
        ["git", *IDENTITY, *words], cwd=folder, check=True, capture_output=True, text=True
    ).stdout.strip()


@dataclass(frozen=True)
class Box:
    """A clone with the environment of the tests, and a home of its own."""

    upstream: Path
    checkout: Path
    home: Path

    def publish(self, changes: Mapping[str, str]) -> str:
        """Commit changed files upstream, and return the name of the commit."""
        for name, text in changes.items():
            (self.upstream / name).parent.mkdir(parents=True, exist_ok=True)
            (self.upstream / name).write_text(text)
        git(self.upstream, "add", "--all")
        git(self.upstream, "commit", "--quiet", "--message", "What is new")
        return git(self.upstream, "rev-parse", "HEAD")

    def tidemark(self, *words: str) -> "subprocess.CompletedProcess[str]":
        """Call the launcher of the clone."""
        variables = {
            **os.environ,
            "TIDEMARK_HOME": str(self.home),
            "TIDEMARK_LOCK": str(self.home / "machine.lock"),
        }
        return subprocess.run(
            [self.checkout / "tidemark", *words],
            env=variables,
            capture_output=True,
            text=True,
            check=False,
            timeout=900,
        )

    def update(self, *words: str) -> "subprocess.CompletedProcess[str]":
        return self.tidemark("service", "update", "--plan", str(self.home / "plan.toml"), *words)

    @property
    def commit(self) -> str:
        return git(self.checkout, "rev-parse", "HEAD")

    @property
    def edits(self) -> str:
        """What differs from the commit; empty if every file is as it is there."""
        return git(self.checkout, "status", "--porcelain")


def make_box(folder: Path) -> Box:
    """Make a repository of this checkout's files, and a clone with a home."""
    upstream, checkout, home = folder / "upstream", folder / "box", folder / "home"
    make_upstream(upstream)
    box = Box(upstream, checkout, home)
    box.publish({})
    git(folder, "clone", "--quiet", str(upstream), str(checkout))
    (checkout / ".venv").symlink_to((ROOT / ".venv").resolve())
    home.mkdir()
    (home / "plan.toml").write_text(PLAN)
    return box


def make_upstream(folder: Path) -> None:
    """Make a repository with the files of this checkout, of which none is committed."""
    folder.mkdir(parents=True)
    for name in (*PARTS, *LISTS):
        _copy(ROOT / name, folder / name)
    git(folder, "init", "--quiet", "--initial-branch", "main")


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        shutil.copy(source, target)
