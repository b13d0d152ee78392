"""Reading what the kernel counts: every name and number that may stand there."""

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suites.accounting.proc import (
    KERNEL_THREAD,
    MachineTicks,
    machine_ticks,
    private_bytes,
    process_ticks,
    processes,
    storage_bytes,
    with_children,
)

ticks = st.integers(0, 10**12)
names = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1, max_size=15)


@given(st.lists(ticks, min_size=10, max_size=10), st.sampled_from(["intr 1 2", "ctxt 9", "cpu0 1 2 3 4"]))
def test_the_totals_of_the_machine(numbers: list[int], after: str) -> None:
    user, nice, system, _, _, irq, softirq, steal = numbers[:8]
    found = machine_ticks(f"cpu  {' '.join(map(str, numbers))}\n{after}\n")
    assert found == MachineTicks(user + nice + system + irq + softirq, steal)


def test_an_old_kernel_has_no_steal() -> None:
    assert machine_ticks("cpu  1 2 4 8\n") == MachineTicks(7, 0)
    assert machine_ticks("cpu  1 2 4 8 16 32 64\n") == MachineTicks(103, 0)


@pytest.mark.parametrize("text", ["", "cpu0 1 2 3 4 5 6 7 8\n", "cpu  1 2\n", "cpu  a b c d\n"])
def test_no_totals(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 # int() raises it too
        machine_ticks(text)


@given(names, st.integers(1, 2**22), st.lists(ticks, min_size=5, max_size=5), st.booleans())
def test_a_process_whatever_its_name(name: str, pid: int, numbers: list[int], kernel: bool) -> None:
    user, system, child_user, child_system, started = numbers
    flags = KERNEL_THREAD | 64 if kernel else 64
    found = process_ticks(
        f"{pid} ({name}) R 12 1 1 0 -1 {flags} 1 1 1 1 {user} {system} {child_user} {child_system}"
        f" 20 0 1 0 {started} 55 66\n"
    )
    assert (found.pid, found.name, found.parent, found.is_kernel) == (pid, name, 12, kernel)
    assert (found.own, found.waited) == (user + system, child_user + child_system)
    assert found.key == (pid, started)


@given(st.text(max_size=80))
def test_anything_else_is_no_process(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 # int() raises it too
        process_ticks(text)


def test_processes_of_this_machine() -> None:
    found = processes(Path("/proc"))
    assert found[os.getpid()].parent == os.getppid()
    assert found[os.getpid()].own > 0
    assert all(process.pid == pid for pid, process in found.items())


def test_nothing_to_read(tmp_path: Path) -> None:
    (tmp_path / "12").mkdir()
    (tmp_path / "self").mkdir()
    assert processes(tmp_path) == {}
    assert processes(tmp_path / "missing") == {}


@pytest.mark.parametrize("word", ["-5", "9" * 5000, "99999999999999999999", "²", "1_0"])
def test_what_the_kernel_never_prints_is_no_count(word: str) -> None:
    with pytest.raises(ValueError, match="no count"):
        machine_ticks(f"cpu  1 2 {word} 4 5 6 7 8\n")
    with pytest.raises(ValueError, match="no "):
        process_ticks(f"{word} (x) R 12 1 1 0 -1 64 1 1 1 1 1 2 3 4 20 0 1 0 5 55 66\n")


def test_a_server_and_its_storage_are_read_as_psutil_does() -> None:
    asked = "import subprocess, time; subprocess.Popen(['sleep', '60']); print(1, flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", asked], stdout=subprocess.PIPE) as root:
        assert root.stdout is not None
        root.stdout.readline()
        process = psutil.Process(root.pid)
        children = process.children(recursive=True)
        assert with_children(root.pid) == [root.pid, *(child.pid for child in children)]
        assert len(children) == 1
        io = process.io_counters()
        assert storage_bytes(root.pid) == (io.read_bytes, io.write_bytes)
        memory = process.memory_info()
        assert private_bytes(root.pid) == memory.rss - memory.shared > 1_000_000
        for ended in (*children, process):
            ended.kill()
    assert (with_children(root.pid), storage_bytes(root.pid)) == ([root.pid], (0, 0))
    assert private_bytes(root.pid) is None
