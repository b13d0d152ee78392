"""A git repository of plain files, for tests of history and not of compiling."""

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
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    def commit(self, name: str, message: str = "") -> str:
        """A commit that adds a line to one file; returns it."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{path.read_text() if path.exists() else ''}{message or name}\n")
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", message or f"change {name}")
        return self.git("rev-parse", "HEAD")
