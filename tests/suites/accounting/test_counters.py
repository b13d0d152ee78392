"""Counters of the kernel over a process tree: those that every machine has, and what is not there."""

import os
import struct
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from suites.accounting.costs import Meter
from suites.accounting.counters import (
    INSTRUCTIONS,
    TASK_CLOCK,
    CounterError,
    CounterEvent,
    TreeCounter,
    counted_between,
    instructions_of,
)

BURN = """
import os, sys, time

def burn(seconds):
    began = time.process_time()
    while time.process_time() - began < seconds:
        pass

print("ready", flush=True)
sys.stdin.readline()
if os.fork() == 0:
    burn(0.2)
    os._exit(0)
os.wait()
burn(0.3)
print("done", flush=True)
sys.stdin.readline()
"""


def started() -> "subprocess.Popen[str]":
    process = subprocess.Popen(
        [sys.executable, "-c", BURN], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def go_on(process: "subprocess.Popen[str]") -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def counter(pid: int, event: CounterEvent = TASK_CLOCK) -> TreeCounter:
    try:
        return TreeCounter(pid, event)
    except CounterError as error:
        pytest.skip(str(error))


def test_children_that_were_born_and_have_ended_count_too() -> None:
    process = started()
    with counter(process.pid) as counted:
        before = counted.read()
        go_on(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "done\n"
        passed = counted_between(before, counted.read()) / 1e9
    process.communicate("\n")
    # 0.3 s without the child that has ended. No upper limit: the clock runs while a host withholds the CPU.
    assert passed > 0.45


def counters() -> set[str]:
    """The open files of this process that count; others are closed whenever garbage is collected."""
    found = set()
    for path in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):
            if path.readlink() == Path("anon_inode:[perf_event]"):
                found.add(path.name)
    return found


def test_files_are_closed() -> None:
    before = counters()
    with counter(os.getpid()):
        assert len(counters()) > len(before)
    assert counters() == before


def test_an_event_that_no_kernel_has_is_said() -> None:
    with pytest.raises(CounterError, match="does not count this event"):
        TreeCounter(os.getpid(), CounterEvent(1, 9999))


def test_a_process_that_is_gone_counts_nothing() -> None:
    process = subprocess.Popen(["true"])
    process.wait()
    with TreeCounter(process.pid, TASK_CLOCK) as counted:
        assert counted_between([], counted.read()) == 0


def test_instructions_are_counted_where_the_machine_can() -> None:
    with instructions_of([os.getpid(), os.getppid()]) as counters:
        try:
            TreeCounter(os.getpid(), INSTRUCTIONS).close()
        except CounterError:
            assert counters == [None, None]
        else:
            first = counters[0]
            assert first is not None
            before = first.read()
            sum(range(100_000))
            assert counted_between(before, first.read()) > 100_000


@pytest.mark.parametrize(
    ("read", "per_query"),
    [
        ([(0, 0, 0), (600_000, 50, 50)], 600.0),
        ([(0, 0, 0), (600_000, 50, 25)], 1200.0),
        ([(0, 0, 0), (0, 50, 0)], None),
        ([(2**63, 10, 10), (2**63 + 600_000, 60, 60)], 600.0),
        # Scaled totals would be 2,000,000 and then 1,200,000.
        ([(1_000_000, 100, 50), (1_100_000, 120, 110)], 33.3),
    ],
    ids=["alone", "shared half", "never had a turn", "beyond what signed numbers hold", "shared less later"],
)
def test_a_counter_that_is_shared_is_scaled_or_says_nothing(
    monkeypatch: pytest.MonkeyPatch, read: list[tuple[int, int, int]], per_query: float | None
) -> None:
    """The kernel's answer: the value, and the time for which it was wanted and for which it counted."""
    answers = [struct.pack("=QQQ", *numbers) for numbers in read]
    process = started()
    with counter(process.pid) as counted, monkeypatch.context() as patched:
        patched.setattr(os, "read", lambda *_: answers.pop(0))
        meter = Meter(process.pid, instructions=counted)
        meter.begin(os.getpid())
        meter.end(os.getpid())
        values = meter.per_query(1000.0)
    process.communicate("\n")
    assert values.get("server_instructions_per_op") == (
        None if per_query is None else pytest.approx(per_query, rel=0.01)
    )


def test_a_meter_divides_them_by_the_queries() -> None:
    """Nanoseconds of CPU time stand for instructions, which not every machine counts."""
    process = started()
    with counter(process.pid) as counted, counter(process.pid) as beside:
        meter = Meter(process.pid, instructions=counted)
        meter.begin(os.getpid())
        before = beside.read()
        go_on(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "done\n"
        passed = counted_between(before, beside.read())
        meter.end(os.getpid())
        values = meter.per_query(1000.0)
    process.communicate("\n")
    assert values["server_instructions_per_op"] == pytest.approx(passed / 1000, rel=0.1)
    assert "client_instructions_per_op" not in values
