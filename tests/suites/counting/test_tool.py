"""What a valgrind that is missing or too old says."""

from pathlib import Path

import pytest

from suites.counting.callgrind import CallgrindError
from suites.counting.tool import find_callgrind
from suites.processes import ProcessError


def program(folder: Path, says: str) -> Path:
    file = folder / "valgrind"
    file.write_text(f"#!/bin/sh\necho {says}\n")
    file.chmod(0o755)
    return file


@pytest.mark.parametrize("says", ["valgrind-3.19.0", "valgrind-3.24.0.GIT", "valgrind-4.0"])
def test_a_new_one_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str) -> None:
    file = program(tmp_path, says)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    found = find_callgrind()
    assert (found.program, found.version) == (str(file), says)
    command = found.command(Path("/counts"), "mark", ("--separate-threads=yes",), stacks=True)
    assert {"--dump-before=mark*", "--separate-threads=yes", "--addr-no-randomize"} <= set(command)
    without = found.command(Path("/counts"), "mark", (), stacks=False)
    assert not [word for word in without if word.startswith("--separate")]


@pytest.mark.parametrize("says", ["valgrind-3.17.0", "valgrind-2", "what"])
def test_an_old_one_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str) -> None:
    program(tmp_path, says)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    with pytest.raises(CallgrindError, match="too old") as caught:
        find_callgrind()
    assert "3.18 or newer" in caught.value.hint


def test_without_one_it_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ProcessError, match="valgrind is not installed"):
        find_callgrind()
