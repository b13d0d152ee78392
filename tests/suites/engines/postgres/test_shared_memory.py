"""Whose shared memory is removed: never that of a server that runs."""

import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from suites.postgres import shared_memory
from suites.postgres.shared_memory import segments_of


@pytest.fixture
def segment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A segment that no process maps."""
    monkeypatch.setattr(shared_memory, "POSIX_FOLDER", tmp_path)
    path = tmp_path / "PostgreSQL.4711"
    path.touch()
    return path


@pytest.mark.parametrize(
    ("line", "runs"), [(["/opt/bin/postgres", "-D", "data"], True), (["less", "/opt/bin/postgres"], False)]
)
def test_a_server_under_valgrind_keeps_its_segments(
    segment: Path, tmp_path: Path, line: list[str], runs: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process is called after valgrind's tool; the server's program is one of its words."""
    all_processes = psutil.process_iter
    command = [sys.executable, "-c", "print(flush=True); input()", *line]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        pid = process.pid
        monkeypatch.setattr(
            psutil,
            "process_iter",
            lambda attrs: [all_process for all_process in all_processes(attrs) if all_process.pid == pid],
        )
        segments_of(tmp_path).remove()
        assert segment.exists() is runs
        process.kill()
    segments_of(tmp_path).remove()
    assert not segment.exists()
