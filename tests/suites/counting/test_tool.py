"""What a valgrind that is missing or too old says, and what an installed one does."""

import platform
import shutil
import subprocess
from pathlib import Path

import pytest

from build.errors import TidemarkError
from suites.counting.callgrind import CallgrindError
from suites.counting.counted_pass import part_of
from suites.counting.tool import LOG, Callgrind, find_callgrind
from suites.processes import ProcessError

PROGRAM = """
#include <sys/wait.h>
#include <unistd.h>
__attribute__((noinline)) void mark(void) { __asm__ volatile("" ::: "memory"); }
int main(void) {
    if (fork() == 0) {
        mark();
        mark();
        __asm__ volatile(".byte 0x62, 0xf1, 0x7d, 0x48, 0x6f, 0xc0"); /* of AVX-512 */
    }
    wait(0);
    return 0;
}
"""


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


@pytest.fixture
def callgrind() -> Callgrind:
    if platform.machine() != "x86_64" or not shutil.which("gcc"):
        pytest.skip("the program is for x86-64, and needs gcc")
    try:
        return find_callgrind()
    except TidemarkError as error:
        pytest.skip(str(error))


def test_it_writes_counts_at_marks_and_the_instruction_that_it_does_not_know(
    tmp_path: Path, callgrind: Callgrind
) -> None:
    """As in Postgres, the process is a child, whose death nobody else sees."""
    (tmp_path / "program.c").write_text(PROGRAM)
    subprocess.run(["gcc", "-o", "program", "program.c"], cwd=tmp_path, check=True)
    command = callgrind.command(tmp_path, "mark", (), stacks=False)
    done = subprocess.run([*command, tmp_path / "program"], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert sorted(part for file in tmp_path.iterdir() if (part := part_of(file.name))) == [1, 2]
    (said,) = [log.read_text() for log in tmp_path.glob(f"{LOG}.*") if log.stat().st_size]
    assert "unhandled instruction bytes: 0x62 0xF1 0x7D 0x48 0x6F 0xC0" in said
