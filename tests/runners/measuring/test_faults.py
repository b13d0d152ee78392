"""What goes wrong in a session, on real servers: a clear message, nothing left behind, everything kept."""

import contextlib
import json
import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from build.finished_build import Build
from build.home import ROOT, Home
from runners.cli import main, parser
from runners.commands.run import main as run_main

pytestmark = pytest.mark.server

VERSION = "postgres@18.6"
STEPS = ("update-index", "insert")
PATIENCE = 60.0


def arguments(home: Home, *more: str, steps: tuple[str, ...] = STEPS) -> list[str]:
    """A session of some seconds: steps of two seconds each on one version, and on those in `more`."""
    chosen = [word for step in steps for word in ("--step", step)]
    return [
        "run",
        *chosen,
        "--seconds",
        "2",
        "--repetitions",
        "1",
        "--no-exact",
        "--keep-disturbed",
        *(() if any("@" in word for word in more) else ("--alone",)),
        *more,
        VERSION,
    ]


def start_session(home: Home, *more: str, steps: tuple[str, ...] = STEPS) -> "subprocess.Popen[str]":
    """The session as a program of its own, as a person would have it."""
    environment = {**os.environ, "TIDEMARK_HOME": str(home.path), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-P", "-m", "runners", *arguments(home, *more, steps=steps)]
    pipes = subprocess.PIPE
    return subprocess.Popen(command, env=environment, stdout=pipes, stderr=pipes, text=True, cwd="/")


def finish(session: "subprocess.Popen[str]") -> tuple[int, str]:
    """Exit code, and everything it said."""
    try:
        out, err = session.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        session.kill()
        raise
    return session.returncode, out + err


def rows(home: Home, query: str) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(home.history)
    try:
        return list(connection.execute(query))
    finally:
        connection.close()


def statuses(home: Home) -> dict[object, object]:
    return {row[0]: row[1] for row in rows(home, "SELECT step, status FROM runs ORDER BY position")}


def below(session: "subprocess.Popen[str]", name: str) -> list[psutil.Process]:
    """Processes called `name` that the session started."""
    try:
        children = psutil.Process(session.pid).children(recursive=True)
        return [child for child in children if child.name() == name]
    except psutil.Error:
        return []


def wait_for(what: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not what():
        assert time.monotonic() < deadline, "what was waited for did not happen"
        time.sleep(0.02)


def in_the_middle_of_a_step(session: "subprocess.Popen[str]") -> None:
    """Wait until a step has put its load on for half a second."""

    def running() -> bool:
        with contextlib.suppress(psutil.Error):  # the one that loaded the data may just be ending
            return any("run" in process.cmdline() for process in below(session, "sysbench"))
        return False

    wait_for(running)
    time.sleep(0.5)


def postmaster(session: "subprocess.Popen[str]") -> psutil.Process:
    (process,) = [candidate for candidate in below(session, "postgres") if candidate.ppid() == session.pid]
    return process


def nothing_left(home: Home) -> None:
    """The fixture `home` checks processes and shared memory when it ends; here it is the data."""
    assert not home.data.exists() or not list(home.data.iterdir())


@pytest.mark.parametrize("victim", ["postmaster", "backend"])
def test_a_server_killed_in_a_step_fails_that_step_only(home: Home, postgres_18: Build, victim: str) -> None:
    with start_session(home) as session:
        in_the_middle_of_a_step(session)
        process = postmaster(session)
        if victim == "backend":
            process = next(child for child in process.children() if "tidemark" in " ".join(child.cmdline()))
        process.kill()
        code, said = finish(session)
    assert code == 2
    assert "died during update-index" in said
    assert "the end of its log" in said
    assert statuses(home) == {"update-index": "failed", "insert": "finished"}
    (kept,) = home.logs.glob("server-s*-1-postgres.log")
    assert f"the log of its server is kept: {kept}" in "".join(said.split("\n"))
    assert kept.stat().st_mode & 0o777 == 0o600
    assert kept.read_text().count("database system is ready to accept connections") > 1
    nothing_left(home)


def test_a_load_generator_killed_in_a_step_fails_that_step_only(home: Home, postgres_18: Build) -> None:
    with start_session(home) as session:
        in_the_middle_of_a_step(session)
        below(session, "sysbench")[0].kill()
        code, said = finish(session)
    assert code == 2
    assert "sysbench was killed by signal 9" in said
    assert statuses(home) == {"update-index": "failed", "insert": "finished"}
    nothing_left(home)


def is_working_on(session: "subprocess.Popen[str]", word: str) -> bool:
    """Whether sysbench has been started with this word."""
    with contextlib.suppress(psutil.Error):
        return any(word in process.cmdline() for process in below(session, "sysbench"))
    return False


REACHED: dict[str, Callable[[Home, "subprocess.Popen[str]"], object]] = {
    "anything": lambda home, session: True,
    "the history": lambda home, session: home.history.exists() and statuses_or_none(home) is not None,
    "a server": lambda home, session: below(session, "postgres"),
    "loading": lambda home, session: is_working_on(session, "prepare"),
    "a step": lambda home, session: is_working_on(session, "run"),
    "the last step": lambda home, session: statuses_or_none(home),
}
"""What a session has reached -> whether it has."""


@pytest.mark.parametrize("reached", REACHED)
def test_ctrl_c_at_any_moment(home: Home, postgres_18: Build, reached: str) -> None:
    """Twice, because people press it twice. The moments are spread over the whole session."""
    with start_session(home) as session:
        wait_for(lambda: REACHED[reached](home, session))
        time.sleep(0.6 * random.Random(reached).random() + (0.6 if reached == "anything" else 0))
        session.send_signal(signal.SIGINT)
        time.sleep(0.05)
        session.send_signal(signal.SIGINT)
        code, said = finish(session)
    assert code == 130, said
    assert said.count("tidemark: interrupted") == 1
    assert "Traceback" not in said
    told_what_is_stored(home, said, reached)
    there = rows(home, "SELECT name FROM sqlite_master WHERE type = 'table'")
    assert there or reached == "anything", "a session of seconds has no history"
    if there:
        assert rows(home, "SELECT DISTINCT status FROM sessions") in ([("interrupted",)], [])
        assert set(statuses(home).values()) <= {"finished"}
    nothing_left(home)


def told_what_is_stored(home: Home, said: str, reached: str) -> None:
    """What is said at once, and at the end, is what was so."""
    begins = re.search(r"session (\w{8}): write-heavy", said)
    if not begins:
        assert "servers" not in said
        assert "stored" not in said
    elif statuses_or_none(home):
        resuming = "./tidemark run .*--keep-disturbed .*postgres@18.6 --resume"
        stored = rf"session {begins[1]}: \d rounds? of .* stored; to resume within 24 hours: {resuming}\n"
        assert re.search(stored, said)
    else:
        assert f"session {begins[1]}: no round was finished, and none is stored\n" in said
    if reached in ("a server", "loading", "a step"):
        assert re.search(r'interrupted at "[^\n]+": stopping the servers and removing their data\n', said)


def test_sigterm_is_an_interrupt_too(home: Home, postgres_18: Build) -> None:
    with start_session(home) as session:
        in_the_middle_of_a_step(session)
        session.terminate()
        code, _ = finish(session)
    assert code == 130
    nothing_left(home)


def test_tidemark_killed_leaves_no_server_and_the_next_session_cleans_up(
    home: Home, postgres_18: Build
) -> None:
    with start_session(home) as session:
        wait_for(lambda: home.history.exists() and statuses_or_none(home))
        in_the_middle_of_a_step(session)
        server = postmaster(session)
        session.kill()
        session.communicate()
    wait_for(lambda: not server.is_running() or server.status() == psutil.STATUS_ZOMBIE)
    assert list(home.data.iterdir())
    with start_session(home, steps=("insert",)) as session:
        code, said = finish(session)
    assert code == 0, said
    assert rows(home, "SELECT status FROM sessions ORDER BY id") == [("interrupted",), ("finished",)]
    kept = rows(home, "SELECT step, status FROM runs WHERE session_id = 1")
    assert ("update-index", "finished") in kept
    nothing_left(home)


def statuses_or_none(home: Home) -> object:
    try:
        return statuses(home)
    except sqlite3.Error:
        return None


def test_a_second_measurement_at_once_is_refused(home: Home, postgres_18: Build) -> None:
    with start_session(home, steps=("update-index", "update-one", "insert")) as session:
        in_the_middle_of_a_step(session)
        with start_session(home) as second:
            code, said = finish(second)
        assert (code, "the machine is held by process" in said) == (2, True)
        assert finish(session)[0] == 0


def test_a_version_that_cannot_be_built_does_not_stop_the_others(home: Home, postgres_18: Build) -> None:
    with start_session(home, "postgres@99.9", steps=("insert",)) as session:
        code, said = finish(session)
    assert code == 2
    assert "postgres@99.9 is skipped" in said
    assert rows(home, "SELECT DISTINCT version, status FROM runs") == [(VERSION, "finished")]
    (options,) = rows(home, "SELECT options FROM sessions")
    assert "postgres@99.9" in json.loads(str(options[0]))["not_built"]


def test_a_version_that_lacks_a_setting_does_not_stop_the_others(
    home: Home, postgres_17: Build, postgres_18: Build
) -> None:
    words = ("--with", "setting.io_method=worker", "postgres@17.11")
    with start_session(home, *words, steps=("insert",)) as session:
        code, said = finish(session)
    assert code == 2
    assert "postgres@17.11 is skipped: postgres@17.11 has no setting io_method" in said
    assert rows(home, "SELECT DISTINCT version, status FROM runs") == [(VERSION, "finished")]
    (settings,) = rows(home, "SELECT settings FROM configurations")
    assert json.loads(str(settings[0]))["io_method"] == "worker"


def test_a_variant_with_an_unknown_setting_is_refused_before_anything_is_measured(
    home: Home, postgres_18: Build
) -> None:
    words = ("--with", "mine:setting.wrok_mem=8MB", "postgres@18.6#mine")
    with start_session(home, *words) as session:
        code, said = finish(session)
    assert code == 2
    assert 'postgres@18.6#mine refuses its settings: unrecognized configuration parameter "wrok_mem"' in said
    assert rows(home, "SELECT count(*) FROM sessions") == [(0,)]


def test_too_little_disk_is_said_before_anything_is_done(
    home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TIDEMARK_HOME", str(home.path))
    monkeypatch.setattr(shutil, "disk_usage", lambda path: _Usage())
    assert main(arguments(home)) == 2
    said = capsys.readouterr().err
    assert "too little disk" in said
    assert str(home.path) in said
    nothing_left(home)


class _Usage:
    free = 1_000_000


def test_a_socket_path_that_is_too_long(
    home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TIDEMARK_HOME", str(home.path / ("long" * 25)))
    assert main(arguments(home)) == 2
    assert "the limit is 107" in capsys.readouterr().err


def test_sysbench_missing(
    home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TIDEMARK_HOME", str(home.path))
    monkeypatch.setenv("PATH", str(home.path))
    assert main(arguments(home)) == 2
    said = capsys.readouterr().err
    assert "sysbench is not installed" in said
    assert "./tidemark setup" in said


def test_interrupt_handlers_are_put_back(
    home: Home, postgres_18: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIDEMARK_HOME", str(home.path))
    before = [signal.getsignal(sent) for sent in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
    assert run_main(parser().parse_args(arguments(home, steps=("insert",)))) == 0
    assert [signal.getsignal(sent) for sent in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)] == before


def test_a_folder_in_the_way_of_the_server_user_is_named(home: Home, postgres_18: Build) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root drops to another user")
    private = Path(home.path / "private")
    private.mkdir(mode=0o700)
    inner = Home(private / "home")
    inner.path.mkdir()
    (inner.path / "builds").symlink_to(home.builds)
    (inner.path / "sources").symlink_to(home.sources)
    with start_session(inner) as session:
        code, said = finish(session)
    assert code == 2
    assert f"chmod o+x {private}" in said
