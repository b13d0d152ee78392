"""How a site is replaced: whole or not at all, whatever happens while it is written."""

import errno
import os
import signal
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import text

from build.home import ROOT
from history.open import open_reader, open_store
from report.writing.parallel import InParallel
from report.writing.tree import STATE, SiteError, SiteTree, renewed

NOW = datetime(2026, 5, 1, tzinfo=UTC)


def contents(site: Path) -> dict[str, str]:
    return {
        str(path.relative_to(site)): path.read_text()
        for path in site.rglob("*")
        if path.is_file() and path.name != STATE
    }


def put(site: Path, **files: str) -> SiteTree:
    with renewed(site, NOW) as tree:
        for name, text in files.items():
            tree.write(f"{name}.html", text)
    return tree


def test_what_is_no_longer_written_goes_and_what_is_equal_stays(tmp_path: Path) -> None:
    site = tmp_path / "site"
    put(site, a="one", b="two", c="three")
    inode = (site / "a.html").stat().st_ino
    assert put(site, a="one", b="2").changed == ["b.html", STATE]
    assert contents(site) == {"a.html": "one", "b.html": "2"}
    assert (site / "a.html").stat().st_ino == inode
    assert [path.name for path in tmp_path.iterdir() if path.name != ".site.lock"] == ["site"]


def test_an_error_leaves_the_old_site_whole(tmp_path: Path) -> None:
    site = tmp_path / "site"
    put(site, a="one")

    def fail() -> None:
        with renewed(site, NOW) as tree:
            tree.write("a.html", "other")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert contents(site) == {"a.html": "one"}
    assert sorted(path.name for path in tmp_path.iterdir()) == [".site.lock", "site"]


def test_a_full_disk_leaves_the_old_site_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = tmp_path / "site"
    put(site, a="one")
    real = Path.write_bytes

    def full(self: Path, data: bytes) -> int:
        if self.name == "b.html":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(self, data)

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(SiteError, match=r"No space left on device; the old one is whole"):
        put(site, a="other", b="two")
    assert contents(site) == {"a.html": "one"}


WRITER = """
import sys, time
from datetime import UTC, datetime
from pathlib import Path
from report.writing.tree import renewed
with renewed(Path(sys.argv[1]), datetime.now(UTC)) as tree:
    tree.write("a.html", "other")
    print("half", flush=True)
    time.sleep(60)
"""


def test_a_kill_leaves_the_old_site_whole_and_the_next_one_cleans_up(tmp_path: Path) -> None:
    site = tmp_path / "site"
    put(site, a="one")
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(site)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "half\n"
        writer.send_signal(signal.SIGKILL)
    assert contents(site) == {"a.html": "one"}
    assert (tmp_path / ".site.new").is_dir()
    put(site, a="two")
    assert contents(site) == {"a.html": "two"}
    assert not (tmp_path / ".site.new").exists()


def test_a_kill_between_the_two_renames_is_repaired(tmp_path: Path) -> None:
    """Where the file system cannot exchange two folders."""
    site = tmp_path / "site"
    put(site, a="one")
    site.rename(tmp_path / ".site.old")
    put(site, a="one", b="two")
    assert contents(site) == {"a.html": "one", "b.html": "two"}


def test_two_at_once_take_turns(tmp_path: Path) -> None:
    site = tmp_path / "site"
    order: list[str] = []

    def write(name: str, seconds: float) -> None:
        with renewed(site, NOW) as tree:
            order.append(f"{name} begins")
            time.sleep(seconds)
            tree.write("a.html", name)
            order.append(f"{name} ends")

    first = threading.Thread(target=write, args=("first", 0.3))
    first.start()
    while not order:
        time.sleep(0.01)
    write("second", 0.0)
    first.join()
    assert order == ["first begins", "first ends", "second begins", "second ends"]
    assert contents(site) == {"a.html": "second"}


@pytest.mark.parametrize("kind", ["file", "folder", "link"])
def test_what_is_no_site_is_not_replaced(tmp_path: Path, kind: str) -> None:
    site = tmp_path / "site"
    if kind == "file":
        site.write_text("mine")
    else:
        folder = site if kind == "folder" else tmp_path / "other"
        folder.mkdir()
        (folder / "mine.txt").write_text("mine")
        if kind == "link":
            site.symlink_to(folder)
    with pytest.raises(SiteError, match=r"choose an(other| empty or a new) folder with --out"):
        put(site, a="one")


def test_files_of_a_source_are_kept_while_its_signature_is_the_same(tmp_path: Path) -> None:
    site = tmp_path / "site"
    made = []

    def renew(signature: str) -> None:
        with renewed(site, NOW) as tree:
            with tree.made_of("source", signature) as fresh:
                made.append(fresh)
                if fresh:
                    tree.write("s/a.html", signature)
            tree.write("index.html", "index")

    for signature in ("1", "1", "2"):
        renew(signature)
    assert made == [True, False, True]
    assert contents(site) == {"s/a.html": "2", "index.html": "index"}
    with renewed(site, NOW) as tree:
        tree.keep("source")
    assert contents(site) == {"s/a.html": "2"}


def test_what_was_remembered_of_a_source_stays_as_long_as_its_files(tmp_path: Path) -> None:
    site = tmp_path / "site"

    def renew(signature: str, value: object) -> object:
        with renewed(site, NOW) as tree:
            with tree.made_of("source", signature) as fresh:
                if fresh:
                    tree.write("a.html", signature)
                    tree.remember(value)
            return tree.value_of("source")

    assert renew("1", {"x": [1, None]}) == {"x": [1, None]}
    assert renew("1", "not asked for") == {"x": [1, None]}
    with renewed(site, NOW) as tree:
        assert tree.keep("source")
        assert tree.value_of("source") == {"x": [1, None]}
    assert renew("2", "new") == "new"
    (site / "a.html").unlink()
    assert renew("2", "written again") == "written again"


# --- work of another process


def test_work_runs_in_another_process_and_here_where_that_fails(tmp_path: Path) -> None:
    open_store(tmp_path / "h.db").close()
    here = os.getpid()

    def fails() -> int:
        if os.getpid() != here:
            raise ValueError
        return here

    def dies() -> int:
        if os.getpid() != here:
            os.kill(os.getpid(), signal.SIGKILL)
        return here

    def sessions() -> tuple[int, int]:
        with history.database.reading() as connection:
            return os.getpid(), len(connection.execute(text("SELECT * FROM sessions")).all())

    with open_reader(tmp_path / "h.db") as history:
        # The context has a connection of this process, which the other one must not use.
        with history.database.reading(), InParallel(history.database, sessions) as answer:
            process, found = answer.value()
        assert process != here
        assert found == 0
        for work in (fails, dies):
            with InParallel(history.database, work) as again:
                assert [again.value(), again.value()] == [here, here]


def ended(pid: int) -> bool:
    """Whether a process has ended; one that nobody waits for here may stay as a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


def told_in(file: Path) -> int:
    """Wait for the process id that another process writes into a file."""
    deadline = time.monotonic() + 20
    while not (file.is_file() and file.read_text().endswith("\n")):
        assert time.monotonic() < deadline, "it has not begun"
        time.sleep(0.01)
    return int(file.read_text())


def test_the_other_process_ends_with_the_context(tmp_path: Path) -> None:
    def idle() -> None:
        (tmp_path / "pid").write_text(f"{os.getpid()}\n")
        time.sleep(60)

    open_store(tmp_path / "h.db").close()
    with open_reader(tmp_path / "h.db") as history, InParallel(history.database, idle):
        pid = told_in(tmp_path / "pid")
    assert ended(pid)


IDLE = """
import os, sys, time
from pathlib import Path
from history.open import open_reader
from report.writing.parallel import InParallel
def idle():
    Path(sys.argv[2]).write_text(f"{os.getpid()}\\n")
    time.sleep(60)
with open_reader(sys.argv[1]) as history, InParallel(history.database, idle) as answer:
    answer.value()
"""


def test_the_other_process_ends_with_this_one_when_it_is_killed(tmp_path: Path) -> None:
    open_store(tmp_path / "h.db").close()
    words = [sys.executable, "-c", IDLE, str(tmp_path / "h.db"), str(tmp_path / "pid")]
    with subprocess.Popen(words, cwd=ROOT) as parent:
        pid = told_in(tmp_path / "pid")
        parent.kill()
    deadline = time.monotonic() + 20
    while not ended(pid):
        assert time.monotonic() < deadline, "it still runs"
        time.sleep(0.02)
