"""A compile beside counting: it ends by itself, or with all its programs when it is ended."""

import os
import re
import subprocess
import time
from pathlib import Path

import psutil
import pytest

from build.compile_commands import CompileCommands, end_group
from build.errors import TidemarkError
from build.home import Home
from runners.bisect.run import ahead
from runners.bisect.run.ahead import CompilingAhead
from runners.measuring.cleanup import data_folder

SECONDS = 10.0


def awaited(path: Path) -> str:
    """The text of a file, once it is there."""
    until = time.monotonic() + SECONDS
    while not (path.exists() and path.read_text()):
        assert time.monotonic() < until
        time.sleep(0.02)
    return path.read_text()


def test_it_lets_passes_go_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ahead, "usable_cores", lambda: (0, 1))
    told, before = tmp_path / "told", os.nice(0)
    compiling = CompilingAhead()
    compiling.start("one", lambda: told.write_text(f"{os.getpid()} {os.nice(0)}"))
    pid, niceness = map(int, awaited(told).split())
    compiling.end()
    assert pid != os.getpid()
    assert niceness == min(19, before + ahead.NICENESS)
    assert os.nice(0) == before


@pytest.mark.skipif(not Path("/proc/self/autogroup").exists(), reason="the kernel has no autogroups")
def test_its_programs_let_passes_go_first_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are in sessions of their own, between which the niceness of a process does not count."""
    monkeypatch.setattr(ahead, "usable_cores", lambda: (0, 1))
    log, told = tmp_path / "log", tmp_path / "told"
    command = f"sleep 0.3; cp /proc/self/autogroup {told}"
    commands = CompileCommands("postgres@18.6", log, os.environ, re.compile(b"gcc"))
    compiling = CompilingAhead()
    compiling.start("one", lambda: commands.run("compile", ["sh", "-c", command], tmp_path))
    niceness = int(awaited(told).split()[-1])
    compiling.end()
    assert niceness == min(19, os.nice(0) + ahead.NICENESS)


def test_programs_of_a_compile_that_is_ended_are_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ahead, "usable_cores", lambda: (0, 1))
    told = tmp_path / "told"

    def compile_() -> None:
        process = subprocess.Popen(["sleep", "60"], start_new_session=True)
        try:
            told.write_text(str(process.pid))
            process.wait()
        finally:
            end_group(process)

    compiling = CompilingAhead()
    compiling.start("one", compile_)
    pid = int(awaited(told))
    compiling.start("two", lambda: told.write_text("another"))
    compiling.end()
    assert not psutil.pid_exists(pid)
    assert told.read_text() == str(pid), "one at a time"


def test_what_does_not_compile_is_left_to_its_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ahead, "usable_cores", lambda: (0, 1))

    def fails() -> None:
        raise TidemarkError("does not compile")

    compiling, told = CompilingAhead(), tmp_path / "told"
    compiling.start("one", fails)
    until = time.monotonic() + SECONDS
    while not told.exists() and time.monotonic() < until:
        compiling.start("two", lambda: told.write_text("the next one"))
        time.sleep(0.02)
    assert awaited(told) == "the next one"
    compiling.end()
    CompilingAhead().end()


def test_the_next_compile_does_not_miss_the_end_of_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was compiled is there, and its process ends a little later."""
    monkeypatch.setattr(ahead, "usable_cores", lambda: (0, 1))
    there, told = tmp_path / "there", tmp_path / "told"

    def compile_() -> None:
        there.write_text("compiled")
        time.sleep(0.3)

    compiling = CompilingAhead()
    compiling.start("one", compile_)
    awaited(there)
    compiling.taken("another")
    compiling.start("two", lambda: told.write_text("two"))
    compiling.end(but="one")
    compiling.taken("one")
    compiling.start("three", lambda: told.write_text("three"))
    assert awaited(told) == "three", "nothing began while the first one was going on"
    compiling.end()


def test_one_core_is_for_counting(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(ahead, "usable_cores", lambda: (0,))
    told = tmp_path / "told"
    compiling = CompilingAhead()
    compiling.start("one", lambda: told.write_text("compiled"))
    compiling.end()
    assert not told.exists()


def test_the_end_of_a_session_ends_its_programs_and_no_compile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The session of a backfill is over before the next commit is compiled."""
    monkeypatch.setattr(ahead, "usable_cores", lambda: (0, 1))
    told, go_on, compiled = (tmp_path / name for name in ("told", "go on", "compiled"))

    def compile_() -> None:
        with subprocess.Popen(["sleep", "60"]) as program:
            told.write_text(str(program.pid))
            awaited(go_on)
            compiled.write_text("ended" if program.poll() is not None else "done")
            program.kill()

    compiling = CompilingAhead()
    compiling.start("one", compile_)
    awaited(told)
    with data_folder(Home(tmp_path), "s0123abcd"):
        own = subprocess.Popen(["sleep", "60"])
    assert not psutil.pid_exists(own.pid)
    go_on.write_text("now")
    assert awaited(compiled) == "done"
    compiling.end()
