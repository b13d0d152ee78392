"""The lock of a machine: across processes, homes and users, and for a night with its sessions."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from build.home import ROOT, Home
from build.lock import LockError
from runners.cli import main
from runners.measuring import machine_lock
from runners.measuring.machine_lock import BusyError, lock_path, measuring_alone

HOLDER = """
import sys, time
from pathlib import Path
from build.home import Home
from runners.measuring.machine_lock import measuring_alone
with measuring_alone(Home(Path(sys.argv[1]))):
    print("held", flush=True)
    time.sleep(60)
"""


@contextmanager
def another_process(home: Path) -> Iterator["subprocess.Popen[str]"]:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(home)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()


def test_another_home_on_the_same_machine_is_kept_out(tmp_path: Path) -> None:
    with another_process(tmp_path / "one") as process:
        with (
            pytest.raises(BusyError, match=rf"the machine is held by process {process.pid} \("),
            measuring_alone(Home(tmp_path / "two")),
        ):
            pass
        process.kill()
        process.wait()
        with measuring_alone(Home(tmp_path / "two")):
            pass


def test_a_night_may_ask_again_and_keeps_the_lock_until_its_end(tmp_path: Path) -> None:
    home = Home(tmp_path)
    with measuring_alone(home):
        with measuring_alone(home):
            pass
        asking = HOLDER.replace("time.sleep(60)", "")
        done = subprocess.run(
            [sys.executable, "-c", asking, str(tmp_path)],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        assert "the machine is held by process" in done.stderr
    with measuring_alone(home):
        pass


@pytest.mark.skipif(os.geteuid() != 0, reason="needs two users")
def test_a_lock_that_another_user_made_counts_too(
    tmp_path_factory: pytest.TempPathFactory, lock_of_its_own: Path
) -> None:
    lock_of_its_own.write_text("1")
    for folder in (lock_of_its_own.parent, *lock_of_its_own.parents):
        if folder.is_relative_to("/tmp") and folder != Path("/tmp"):
            folder.chmod(0o755)
    with measuring_alone(Home(tmp_path_factory.mktemp("home"))):
        code = f"import fcntl, os; d = os.open({str(lock_of_its_own)!r}, os.O_RDONLY); fcntl.flock(d, 6)"
        done = subprocess.run(
            ["setpriv", "--reuid=65534", "--clear-groups", "/usr/bin/python3", "-c", code],
            capture_output=True,
            text=True,
            check=False,
        )
    assert "BlockingIOError" in done.stderr


def test_where_the_lock_lies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TIDEMARK_LOCK")
    monkeypatch.setattr(machine_lock, "MACHINES", tmp_path / "lock/tidemark.lock")
    assert lock_path(Home(tmp_path)) == tmp_path / "measuring.lock"
    (tmp_path / "lock").mkdir()
    assert lock_path(Home(tmp_path)) == tmp_path / "lock/tidemark.lock"


def test_who_held_it_is_not_named_any_more(tmp_path: Path, lock_of_its_own: Path) -> None:
    with measuring_alone(Home(tmp_path)):
        number, host, _ = lock_of_its_own.read_text().split()
        assert (number, host) == (str(os.getpid()), os.uname().nodename)
    assert lock_of_its_own.read_text() == ""


def test_a_link_at_its_path_is_refused(tmp_path: Path, lock_of_its_own: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("a password")
    lock_of_its_own.symlink_to(victim)
    with pytest.raises(LockError, match="symbolic link"), measuring_alone(Home(tmp_path)):
        pass
    assert victim.read_text() == "a password"
    assert not (tmp_path / "measuring.lock").exists(), "the lock of the home is not used instead"


@pytest.mark.skipif(os.geteuid() != 0, reason="about root")
def test_root_never_uses_the_lock_of_a_home_instead(
    tmp_path: Path, lock_of_its_own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(path: Path) -> int:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(machine_lock, "open_lock", refused)
    with (
        pytest.raises(LockError, match="the lock of this machine may not be opened"),
        measuring_alone(Home(tmp_path)),
    ):
        pass
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with (
        pytest.raises(LockError, match="neither the lock of this machine nor"),
        measuring_alone(Home(tmp_path)),
    ):
        pass


def test_a_file_with_a_second_name_is_not_written(tmp_path: Path, lock_of_its_own: Path) -> None:
    (lock_of_its_own.parent / "victim").write_text("kept")
    lock_of_its_own.hardlink_to(lock_of_its_own.parent / "victim")
    with measuring_alone(Home(tmp_path)):
        assert lock_of_its_own.read_text() == "kept"
    assert lock_of_its_own.read_text() == "kept"


def test_a_folder_at_its_path_and_a_foreign_holder_are_said(
    tmp_path: Path, lock_of_its_own: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lock_of_its_own.mkdir()
    assert main(["check"]) == 2
    assert "tidemark: a folder is where the file of a lock belongs" in capsys.readouterr().err
    lock_of_its_own.rmdir()
    pipe = subprocess.PIPE
    command = ["flock", str(lock_of_its_own), "sh", "-c", "echo held; exec cat"]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        assert main(["check"]) == 2
        said = capsys.readouterr().err
        other.communicate("")
    assert f"the machine is held by process {other.pid} (flock " in said
    assert "another program than Tidemark" in said
    assert f"ps -o pid,user,lstart,args {other.pid}" in said
