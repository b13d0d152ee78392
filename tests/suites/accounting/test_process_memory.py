"""The memory of processes as the kernel says it: what is read, what has gone, what must not be read."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suites.accounting import proc as module
from suites.accounting.proc import (
    MAX_KIB,
    ProcessMemory,
    ProcessMemoryError,
    process_memory,
    require_readable,
    server_memory,
)

ROLLUP = """5616bde1c000-7ffe23abd000 ---p 00000000 00:00 0                          [rollup]
Rss:               18708 kB
Pss:                6215 kB
Pss_Dirty:           112 kB
Pss_Anon:           1112 kB
Pss_File:            103 kB
Pss_Shmem:          5000 kB
"""
STATUS = "Name:\tpostgres\nVmRSS:\t   18708 kB\nRssAnon:\t    1152 kB\nVmPTE:\t     132 kB\nThreads:\t1\n"


def test_what_the_kernel_says_is_read() -> None:
    memory = process_memory(ROLLUP, STATUS)
    assert memory == ProcessMemory(rss=18708, pss=6215, shared=5000, page_tables=132)
    assert memory.own == 6215 - 5000 + 132
    assert (memory + memory).own == 2 * memory.own


@given(st.tuples(*[st.integers(0, MAX_KIB)] * 3).map(sorted), st.integers(0, MAX_KIB))
def test_every_possible_number_is_read(sizes: list[int], tables: int) -> None:
    shared, pss, rss = sizes
    rollup = f"Rss: {rss} kB\nPss: {pss} kB\nPss_Shmem: {shared} kB\n"
    assert process_memory(rollup, f"VmPTE: {tables} kB\n") == ProcessMemory(rss, pss, shared, tables)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("Pss_Shmem", "Shmem", "Pss_Shmem is missing"),
        ("6215 kB", "6215 MB", "Pss is missing"),
        ("6215", "4999", "cannot be: Pss_Shmem 5000, Pss 4999"),
        ("18708", "999999999999999", "Rss cannot be 999999999999999 KiB"),
    ],
)
def test_what_cannot_be_is_refused(old: str, new: str, said: str) -> None:
    with pytest.raises(ProcessMemoryError, match=said):
        process_memory(ROLLUP.replace(old, new), STATUS)


@pytest.fixture
def proc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A /proc with a server of processes 1 to 3."""
    monkeypatch.setattr(module, "tree_of", lambda root: [root, 2, 3])
    for pid in (1, 2, 3):
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "smaps_rollup").write_text(ROLLUP)
        (tmp_path / str(pid) / "status").write_text(STATUS)
    return tmp_path


def test_processes_that_vanish_are_left_out(proc: Path) -> None:
    single = process_memory(ROLLUP, STATUS)
    assert server_memory(1, proc) == single + single + single
    (proc / "2/smaps_rollup").unlink()
    (proc / "3/status").write_text("Name:\tpostgres\nState:\tZ (zombie)\n")
    assert server_memory(1, proc) == single
    (proc / "1/smaps_rollup").write_text("")
    with pytest.raises(ProcessMemoryError, match="the server has ended"):
        server_memory(1, proc)


def test_memory_that_must_not_be_read_says_what_to_do(proc: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(path: Path) -> str:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "read_text", denied)
    with pytest.raises(ProcessMemoryError) as caught:
        server_memory(1, proc)
    assert str(caught.value) == (
        "the memory of process 1 cannot be read: Permission denied\n"
        f"  where: {proc}/1/smaps_rollup\n"
        "  to do: run Tidemark as root, or as the user that runs the servers"
    )


def test_a_kernel_without_the_file_is_told_before_the_start(tmp_path: Path) -> None:
    require_readable()
    with pytest.raises(ProcessMemoryError, match="the kernel has no smaps_rollup"):
        require_readable(tmp_path)
