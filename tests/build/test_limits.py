"""What hangs while versions are fetched and compiled is ended, with everything it started."""

import re
import subprocess
import time
from pathlib import Path

import psutil
import pytest

from build import compile_commands
from build.compile_commands import CompileCommands, CompileError
from build.home import Home
from build.progress import Silent
from build.sources import download, git
from build.sources.download import DownloadError
from build.sources.git import GitError
from build.version import Engine
from tests.build.stand import Repository

SLEEPER = "sleep 61.25"
"""A length that no other program sleeps for."""


@pytest.fixture(autouse=True)
def nothing_is_left() -> object:
    yield
    left = [
        process for process in psutil.process_iter(["cmdline"]) if process.info["cmdline"] == SLEEPER.split()
    ]
    assert left == []


def compile_of(tmp_path: Path, script: str) -> None:
    (tmp_path / "log").touch()
    work = CompileCommands("postgres@18.6", tmp_path / "log", {"PATH": "/usr/bin:/bin"}, re.compile(b"gcc"))
    work.run("compile", ["sh", "-c", script], tmp_path)


def test_a_compile_that_is_silent_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compile_commands, "SILENT_SECONDS", 0.6)
    # Silence counts from the last line: this one speaks for longer than the limit before it hangs.
    with pytest.raises(CompileError) as caught:
        compile_of(tmp_path, f"for i in 1 2 3 4; do echo $i; sleep 0.2; done; {SLEEPER}")
    assert caught.value.what == (
        "postgres@18.6: compile failed (stopped after 0.01 minutes without output); the log ends with\n"
        f"\n=== compile: sh -c for i in 1 2 3 4; do echo $i; sleep 0.2; done; {SLEEPER}\n1\n2\n3\n4"
    )


def test_a_compile_that_speaks_for_ever_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compile_commands, "STAGE_SECONDS", 0.6)
    with pytest.raises(CompileError, match=r"compile failed \(stopped after 0.000166667 hours\)"):
        compile_of(tmp_path, "while :; do echo still; sleep 0.05; done")


def test_a_fetch_that_hangs_is_ended_with_what_it_started(
    home: Home, repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(git, "FETCH_SECONDS", 0.5)
    # The program that reaches the server is a child of git's, and would hold our pipes open.
    script = tmp_path / "ssh"
    script.write_text(f"#!/bin/sh\n{SLEEPER}\n")
    script.chmod(0o755)
    monkeypatch.setenv("GIT_SSH_COMMAND", str(script))
    source = git.mirror("ssh://example.org/postgresql.git", Engine.POSTGRES, home)
    began = time.monotonic()
    with pytest.raises(GitError, match=r"git fetch took longer than 0\.5 s"):
        source.fetch("5bf748b86b")
    assert time.monotonic() - began < 20


def test_a_server_that_trickles_is_given_up(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "WHOLE_SECONDS", -1.0)
    (tmp_path / "served").write_bytes(b"x" * 10)
    with pytest.raises(DownloadError, match="not complete after -1 s: 10 bytes received"):
        download.download((tmp_path / "served").as_uri(), tmp_path / "file", "0" * 64, Silent())
    assert not (tmp_path / "file").exists()


def test_what_is_in_time_is_left_alone(tmp_path: Path) -> None:
    compile_of(tmp_path, "echo done")
    assert subprocess.run(["true"], check=True).returncode == 0
