"""What root writes for a server, into folders of the server's user."""

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from suites import processes
from suites.processes import ProcessError, open_log, own, tail_of, write_for_server

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root runs servers as another user")


@needs_root
def test_what_root_writes_for_a_server_goes_through_no_link(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("a password")
    victim.chmod(0o600)
    with reachable_folder() as folder:
        own(folder)
        write_for_server(folder / "settings", "one\n")
        assert (folder / "settings").read_text() == "one\n"
        assert (folder / "settings").stat().st_uid == folder.stat().st_uid != 0
        assert (folder / "settings").stat().st_mode & 0o777 == 0o600
        for name in ("settings", "log"):
            (folder / name).unlink(missing_ok=True)
            (folder / name).symlink_to(victim)
        with pytest.raises(ProcessError, match="cannot be written"):
            write_for_server(folder / "settings", "two\n")
        with pytest.raises(ProcessError, match="symbolic link"):
            open_log(folder / "log")
        own(folder / "log")
        assert "a password" not in tail_of(folder / "log")
    assert victim.read_text() == "a password"
    assert victim.stat().st_uid == 0


@needs_root
def test_a_log_is_appended_to_and_belongs_to_the_server_user() -> None:
    with reachable_folder() as folder:
        own(folder)
        for line in (b"one\n", b"two\n"):
            with open_log(folder / "log") as log:
                log.write(line)
        assert (folder / "log").read_bytes() == b"one\ntwo\n"
        assert (folder / "log").stat().st_uid == folder.stat().st_uid != 0
        assert (folder / "log").stat().st_mode & 0o777 == 0o600


@needs_root
def test_what_lies_in_place_of_a_file_for_a_server_ends_in_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "RUN_SECONDS", 1.0)
    with reachable_folder() as folder:
        own(folder)
        os.mkfifo(folder / "settings")
        own(folder / "settings")
        with pytest.raises(ProcessError, match="could not be written within 1 s"):
            write_for_server(folder / "settings", "one\n")
        (folder / "log").write_text("of root, under another name\n")
        with pytest.raises(ProcessError, match="belongs to somebody else"):
            open_log(folder / "log")


@contextlib.contextmanager
def reachable_folder() -> Iterator[Path]:
    """A folder that the server user can reach; pytest's is private."""
    with tempfile.TemporaryDirectory(prefix="tmt-", dir="/tmp") as name:
        Path(name).chmod(0o755)
        yield Path(name)
