"""A git repository of plain files, for tests of history and not of compiling."""

import os
import subprocess
from pathlib import Path


class PlainRepository:
    """A repository whose author is called as nobody should be."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir()
        self.git("init", "--quiet", "--initial-branch=main")

    def git(self, *words: str) -> str:
        """Run git in the work tree; returns what it says."""
        identity = ["-c", "user.name=Ada | &b", "-c", "user.email=t@example.org"]
        command = ["git", "-C", str(self.path), *identity, *words]
        # Fixed dates, so that the same commits have the same names in every run.
        dates = {f"GIT_{who}_DATE": "2026-02-03T04:05:06+00:00" for who in ("AUTHOR", "COMMITTER")}
        done = subprocess.run(
            command, env={**os.environ, **dates}, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    def commit(self, name: str, message: str = "") -> str:
        """A commit that adds a line to one file; returns it."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{path.read_text() if path.exists() else ''}{message or name}\n")
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", message or f"change {name}")
        return self.git("rev-parse", "HEAD")
