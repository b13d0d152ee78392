"""Locks in folders in which others may write: no link is followed, and nobody's file is written."""

import errno
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from build.files import open_checked, write_atomically
from build.lock import LockError, held, holder, may_write, open_lock, taken


def test_a_missing_file_is_created_for_every_user(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        os.close(open_lock(tmp_path / "lock"))
    finally:
        os.umask(before)
    assert (tmp_path / "lock").stat().st_mode & 0o777 == 0o644


def to_a_file(path: Path, victim: Path) -> None:
    victim.write_text("a password")
    path.symlink_to(victim)


def to_nothing(path: Path, victim: Path) -> None:
    path.symlink_to(victim)


@pytest.mark.parametrize("planted", [to_a_file, to_nothing])
def test_a_link_is_neither_followed_nor_created_through(
    planted: Callable[[Path, Path], None], tmp_path: Path
) -> None:
    victim = tmp_path / "victim"
    planted(tmp_path / "lock", victim)
    was = victim.read_text() if victim.exists() else None
    with pytest.raises(LockError, match="symbolic link"), held(tmp_path / "lock"):
        pass
    assert (victim.read_text() if victim.exists() else None) == was


def test_a_folder_is_said_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "lock").mkdir()
    with pytest.raises(LockError, match=r"a folder is where[^\n]*\n  where: .*/lock\n  to do: "):
        open_lock(tmp_path / "lock")


def test_a_pipe_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "lock")
    with pytest.raises(LockError, match="no regular file"):
        open_lock(tmp_path / "lock")
    with pytest.raises(OSError, match="no regular file") as caught:
        open_checked(tmp_path / "lock")
    assert caught.value.errno == errno.EINVAL


def test_a_file_with_a_second_name_is_locked_and_never_written(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("kept")
    (tmp_path / "lock").hardlink_to(tmp_path / "victim")
    descriptor = open_lock(tmp_path / "lock")
    try:
        assert taken(descriptor)
        assert not may_write(descriptor)
    finally:
        os.close(descriptor)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs two users")
def test_a_file_of_another_user_is_never_written(tmp_path: Path) -> None:
    (tmp_path / "lock").write_text("kept")
    os.chown(tmp_path / "lock", 65534, 65534)
    descriptor = open_lock(tmp_path / "lock")
    try:
        assert taken(descriptor)
        assert not may_write(descriptor)
    finally:
        os.close(descriptor)


def test_the_kernel_says_who_holds_it(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    ours = open_lock(path)
    command = ["flock", str(path), "sh", "-c", "echo held; exec cat"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        assert not taken(ours)
        assert holder(ours) == other.pid
        other.communicate("")
    assert holder(ours) is None
    assert holder(ours, tmp_path / "no such file") is None
    os.close(ours)


def test_the_mode_is_never_set_through_a_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The name of the temporary file may be somebody's link by the time the mode is set."""
    victim = tmp_path / "victim"
    victim.write_text("a password")
    victim.chmod(0o600)
    really = os.fsync

    def swapped(number: int) -> None:
        really(number)
        name = next(path for path in tmp_path.iterdir() if path.name.startswith(".state."))
        name.unlink()
        name.symlink_to(victim)

    monkeypatch.setattr(os, "fsync", swapped)
    write_atomically(tmp_path / "state", "text")
    assert victim.stat().st_mode & 0o777 == 0o600
    assert victim.read_text() == "a password"
