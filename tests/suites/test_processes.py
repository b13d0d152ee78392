"""Starting programs, ending them, and the unprivileged user."""

import contextlib
import os
import pwd
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import psutil
import pytest

from build.accounts import SERVER_USER, AccountError, server_account
from build.finished_build import Build
from build.version import parse_version
from suites import server as server_module
from suites.generators.load import LoadError
from suites.generators.programs import lines_of, run_all
from suites.postgres.server import PostgresServer
from suites.processes import (
    ProcessError,
    as_server_user,
    kill_processes_in,
    processes_in,
    require_reachable,
    run,
    start,
    stop,
    tail,
    tool,
    tree_of,
)
from suites.server import Address, Server, ServerError
from suites.sizing import Sizes
from tests.manifests import a_manifest

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root runs servers as another user")


def shell(script: str) -> list[str]:
    return ["/bin/sh", "-c", script]


def gone(pid: int, patience: float = 10) -> bool:
    """Whether the process ends soon; one that nobody has reaped has ended too."""
    deadline = time.monotonic() + patience
    while not ended(pid):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def ended(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


# --- run


def test_run_returns_both_streams() -> None:
    assert run(shell("echo out; echo err >&2"), what="a test") == "out\nerr\n"


def test_run_takes_folder_and_environment(tmp_path: Path) -> None:
    said = run(shell('pwd; echo "$COLOUR$HOME"'), what="a test", cwd=tmp_path, env={"COLOUR": "red"})
    assert said.splitlines() == [str(tmp_path), "red/nonexistent"]


def test_run_says_what_failed_with_its_last_lines() -> None:
    with pytest.raises(ProcessError) as caught:
        run(shell("seq 1 30; exit 3"), what="counting")
    assert caught.value.where == "/bin/sh"
    what, *said = caught.value.what.splitlines()
    assert what == "counting failed with exit status 3; it said:"
    assert said == [str(number) for number in range(11, 31)]


def test_run_takes_bytes_that_are_no_text() -> None:
    assert run(shell(r"printf 'a\377b'"), what="a test") == "a\N{REPLACEMENT CHARACTER}b"


def test_an_interrupted_run_leaves_nothing(tmp_path: Path) -> None:
    note = tmp_path / "pid"

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 1.5)
    try:
        with pytest.raises(KeyboardInterrupt):
            run(shell(f"echo $$ >{note}; exec sleep 60"), what="sleeping")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert gone(int(note.read_text()))


def test_tail_of_a_text() -> None:
    assert tail("a\nb\nc\n\n", 2) == "b\nc"
    statement = f"INSERT {'x' * 4000}"
    assert tail(f"{statement}\nFATAL: no\n{statement}\n{statement}\n") == f"FATAL: no\n{statement[:300]}…"
    assert tail("") == ""


# --- stop


AFFINITY = "grep Cpus_allowed_list /proc/self/status"


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="bound to one core already")
def test_a_program_is_bound_with_its_children_from_its_beginning_on() -> None:
    """Several times: a program that was bound after its start would win the race now and then."""
    before = os.sched_getaffinity(0)
    for core in [*sorted(before)] * 5:
        process = start(shell(f"{AFFINITY} & {AFFINITY}; wait"), subprocess.PIPE, bound_to=(core,))
        output, _ = process.communicate(timeout=20)
        assert output.decode().split() == ["Cpus_allowed_list:", str(core)] * 2
        assert os.sched_getaffinity(0) == before, "we ourselves stay free"


def test_a_program_is_left_to_the_scheduler_unless_it_is_bound() -> None:
    code = "import os; print(sorted(os.sched_getaffinity(0)))"
    process = start([sys.executable, "-c", code], subprocess.PIPE)
    output, _ = process.communicate(timeout=20)
    assert output.decode().strip() == str(sorted(os.sched_getaffinity(0)))


def test_we_stay_free_when_a_start_fails() -> None:
    before = os.sched_getaffinity(0)
    with pytest.raises(FileNotFoundError):
        start(["/nowhere/program"], subprocess.PIPE, bound_to=(min(before),))
    assert os.sched_getaffinity(0) == before


def test_stop_kills_what_does_not_listen_and_its_group() -> None:
    process = start(shell("trap '' TERM; sleep 60 & echo $!; wait; sleep 60"), subprocess.PIPE)
    assert process.stdout is not None
    child = int(process.stdout.readline())
    stop(process, patience=0.2)
    process.stdout.close()
    assert process.returncode == -signal.SIGKILL
    assert gone(child)


def test_stop_is_patient_with_what_ends_in_order() -> None:
    process = start(shell("trap 'exit 7' TERM; echo ready; while :; do sleep 0.05; done"), subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    stop(process)
    process.stdout.close()
    assert process.returncode == 7
    stop(process)


# --- lines_of


def test_lines_come_with_the_pid_and_the_last_needs_no_end() -> None:
    found = list(lines_of(shell("echo $$; echo '  two'; printf three"), 10))
    assert [line for _, line in found][1:] == ["  two", "three"]
    assert {pid for pid, _ in found} == {int(found[0][1])}


def test_lines_come_while_the_program_runs() -> None:
    lines = lines_of(shell("echo one; sleep 60"), 30)
    began = time.monotonic()
    pid, line = next(lines)
    assert (line, time.monotonic() - began < 30) == ("one", True)
    lines.close()  # type: ignore[attr-defined]
    assert gone(pid)


def test_a_caller_that_fails_ends_the_program() -> None:
    seen = []
    with contextlib.suppress(KeyError):
        for pid, _ in lines_of(shell("echo one; sleep 60"), 30):
            seen.append(pid)
            raise KeyError
    assert gone(seen[0])


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "script",
    [
        pytest.param("sleep 60", id="silent"),
        pytest.param("trap '' TERM; sleep 60", id="does not listen"),
        pytest.param("yes | tr -d '\\n'", id="never stops printing"),
    ],
)
def test_a_program_that_takes_too_long_is_ended(script: str) -> None:
    seen: list[tuple[int, str]] = []
    began = time.monotonic()
    with pytest.raises(LoadError, match="sh is still running 30 s after its time limit"):
        seen.extend(lines_of(shell("echo $$; " + script), 0.5))
    assert time.monotonic() - began < 30
    assert gone(int(seen[0][1]), patience=0)


def test_a_program_that_fails_is_quoted() -> None:
    with pytest.raises(LoadError) as caught:
        list(lines_of(shell("echo FATAL: no table; exit 4"), 10))
    assert caught.value.what == "sh failed with exit status 4: no table"


def test_lines_of_takes_an_environment() -> None:
    assert [line for _, line in lines_of(shell("echo $COLOUR"), 10, {"COLOUR": "red"})] == ["red"]


# --- run_all


def test_no_more_than_asked_for_run_at_once(tmp_path: Path) -> None:
    count = f"cd {tmp_path}; touch $$; ls | wc -l >>../seen-{tmp_path.name}; sleep 0.2; rm $$ # "
    run_all([shell(count + str(number)) for number in range(5)], 2, 10)
    seen = (tmp_path.parent / f"seen-{tmp_path.name}").read_text().split()
    assert len(seen) == 5
    assert set(seen) <= {"1", "2"}
    assert "2" in seen


def test_one_failure_ends_them_all(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    slow = shell(f"echo $$ >{note}; exec sleep 60")
    failing = shell(f"while [ ! -s {note} ]; do sleep 0.02; done; echo disk full; exit 5")
    with pytest.raises(LoadError) as caught:
        run_all([slow, failing, shell(f"touch {tmp_path}/never")], 2, 30)
    assert caught.value.what == "loading data failed: sh failed with exit status 5: disk full"
    assert gone(int(note.read_text()))
    assert not (tmp_path / "never").exists()


def test_a_load_that_hangs_is_ended(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    with pytest.raises(LoadError, match="loading data is not finished after"):
        run_all([shell(f"echo $$ >{note}; exec sleep 60")], 1, 1.5)
    assert gone(int(note.read_text()))


def test_a_program_that_hangs_is_ended(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    with pytest.raises(ProcessError) as caught:
        run(shell(f"echo $$ >{note}; exec sleep 60"), what="initdb", seconds=1.5)
    assert caught.value.what == "initdb took longer than 1.5 s and was stopped"
    assert gone(int(note.read_text()))


class Hanging(PostgresServer):
    """A server that does not answer."""

    ERROR = re.compile("FATAL (.*)")

    def __init__(self, folder: Path) -> None:
        build = Build(parse_version("postgres@18.6"), "18.6", "key", folder, a_manifest())
        room = cast("Sizes", SimpleNamespace(workers=1, bound_to=None, memory_bytes=None, disk=None))
        Server.__init__(self, build, room, folder, cast("Address", None), {})
        self._process = start(shell("sleep 60 & sleep 60"), subprocess.DEVNULL)

    def ask(self) -> None:
        """Wait until it is gone, as a client does, and complain."""
        with self._answering("the reset"):
            assert self._process is not None
            self._process.wait(20)
            raise OSError("the connection was closed")


def test_a_server_that_does_not_answer_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "ANSWER_SECONDS", 0.5)
    server = Hanging(tmp_path)
    deadline = time.monotonic() + 30
    while len(children := tree_of(server.pid)) < 3 and time.monotonic() < deadline:
        time.sleep(0.02)
    with pytest.raises(ServerError) as caught:
        server.ask()
    assert caught.value.what == "postgres@18.6: the reset took longer than 0.5 s; the server was killed"
    assert len(children) == 3
    assert all(gone(pid) for pid in children)


def test_what_fails_in_time_is_told_as_it_is(tmp_path: Path) -> None:
    server = Hanging(tmp_path)
    for pid in tree_of(server.pid):
        os.kill(pid, signal.SIGKILL)
    with pytest.raises(OSError, match="the connection was closed"):
        server.ask()


# --- the unprivileged user


def test_a_missing_tool_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert tool("sh").endswith("/sh")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ProcessError) as caught:
        tool("setpriv")
    assert str(caught.value) == ("setpriv is not installed\n  to do: run ./tidemark setup, which installs it")


def test_servers_do_not_run_as_root() -> None:
    said = run(as_server_user(shell("id -u; id -G")), what="id")
    user, groups = said.splitlines()
    assert int(user) != 0
    assert "0" not in groups.split()
    account = server_account()
    assert int(user) == (os.geteuid() if account is None else account.pw_uid)


@needs_root
def test_servers_do_not_keep_the_groups_of_root() -> None:
    with_groups = ["setpriv", "--groups=0,4", "--"]
    assert "4" in run([*with_groups, "id", "-G"], what="id").split()
    groups = run([*with_groups, *as_server_user(["id", "-G"])], what="id").split()
    assert not {"0", "4"} & set(groups)


@needs_root
def test_the_server_user_can_be_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEMARK_USER", "nobody")
    assert run(as_server_user(["id", "-un"]), what="id").strip() == "nobody"
    monkeypatch.setenv("TIDEMARK_USER", "root")
    with pytest.raises(AccountError, match="the server user is root"):
        server_account()


@needs_root
def test_a_user_that_cannot_be_made(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TIDEMARK_USER", "no-such-user")
    monkeypatch.setattr(shutil, "which", lambda name, path=None: None)
    with pytest.raises(AccountError) as caught:
        server_account()
    assert caught.value.what == "the user 'no-such-user', who runs the servers, does not exist"
    with pytest.raises(KeyError):
        pwd.getpwnam("no-such-user")


@needs_root
def test_the_folder_in_the_way_is_named(server_folder: Path) -> None:
    deep = server_folder / "open" / "closed" / "deep"
    deep.mkdir(parents=True)
    for folder in (deep, deep.parent, deep.parent.parent):
        folder.chmod(0o755)
    require_reachable(deep)
    deep.parent.chmod(0o700)
    with pytest.raises(AccountError) as caught:
        require_reachable(deep)
    assert caught.value.where == str(deep.parent)
    assert caught.value.what == f"the user {SERVER_USER} has no access to {deep}"
    assert f"chmod o+x {deep.parent}" in caught.value.hint
    with pytest.raises(ProcessError):
        run(as_server_user(["ls", deep]), what="ls")


def test_a_server_does_not_outlive_a_killed_tidemark() -> None:
    program = (
        "import signal, subprocess, sys, time\n"
        "from suites.processes import as_server_user, start\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # ignored in the background of a shell
        "child = start(as_server_user(['sh', '-c', 'echo here; exec sleep 60']), subprocess.PIPE)\n"
        "child.stdout.readline()\n"
        "print(child.pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    root = Path(__file__).resolve().parents[2]
    parent = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, cwd=root)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    assert not gone(child, patience=0.2)
    parent.kill()
    parent.communicate()
    assert gone(child)


# --- who works in a folder


def test_processes_are_found_by_their_folder(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    inside = subprocess.Popen(["sleep", "60"], cwd=tmp_path)
    beside = subprocess.Popen(["sleep", "60"], cwd=tmp_path / "other")
    try:
        assert [process.pid for process in processes_in(tmp_path)] == [inside.pid]
        kill_processes_in(tmp_path)
        assert gone(inside.pid, patience=0)
        assert beside.poll() is None
    finally:
        for process in (inside, beside):
            process.kill()
            process.wait()
