"""Segments of shared memory that no process maps at the moment: orphans, or of a server that just starts."""

import subprocess
import sys
from pathlib import Path

import pytest

from suites.postgres import shared_memory
from suites.postgres.shared_memory import Segments


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        (("valgrind", "/builds/18.6/bin/postgres", "-D", "/data"), True),
        (("less", "/builds/18.6/bin/postgres"), False),
    ],
    ids=["a server under an instrument", "something else"],
)
def test_what_is_not_mapped_yet_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], kept: bool
) -> None:
    monkeypatch.setattr(shared_memory, "POSIX_FOLDER", tmp_path)
    segment = tmp_path / "PostgreSQL.1"
    segment.touch()
    waiting = [sys.executable, "-c", "print(flush=True); input()", *words]
    with subprocess.Popen(waiting, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        Segments(None, frozenset({segment})).remove()
        process.communicate(b"\n")
    assert segment.exists() is kept
