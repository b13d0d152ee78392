"""What others did to a window: on machines of files, and against a real busy loop."""

import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suites.accounting.disturbance import Disturbance, DisturbanceLimits, DisturbanceWatch
from suites.accounting.proc import TICKS_PER_SECOND
from suites.accounting.throttling import Throttling
from suites.metrics import METRICS
from tests.suites.fake_proc import US, FakeMachine, watch

# --- stolen time


def test_steal_is_a_share_of_what_was_wanted(machine: FakeMachine) -> None:
    machine.cpu(busy=5000, steal=100)
    watching = watch(machine)
    machine.cpu(busy=6500, steal=600)
    assert watching.end().steal_share == pytest.approx(0.25)  # 5 s of the 20 s that were wanted


def test_a_few_ticks_on_an_idle_machine_are_no_share(machine: FakeMachine) -> None:
    watching = watch(machine)
    machine.cpu(busy=10, steal=10)
    assert watching.end().steal_share == pytest.approx(0.01)  # 0.1 s of the 10 s that one core has


def test_counters_that_were_set_back(machine: FakeMachine) -> None:
    machine.cpu(busy=5000, steal=100)
    machine.process(5, "cron", own=900, waited=900)
    watching = watch(machine)
    machine.cpu()
    machine.process(5, "cron", own=2, waited=1)
    found = watching.end()
    assert (found.steal_share, found.others_share) == (0, 0)


# --- others


def test_others_and_the_worst_of_them(machine: FakeMachine) -> None:
    for pid, name in enumerate(["cron", "cc1", "sshd", "cc1", "idle", "mandb"], start=200):
        machine.process(pid, name, own=1000)
    watching = watch(machine)
    for pid, (name, used) in enumerate(
        [("cron", 40), ("cc1", 100), ("sshd", 5), ("cc1", 100), ("idle", 0), ("mandb", 60)], start=200
    ):
        machine.process(pid, name, own=1000 + used)
    found = watching.end()
    assert found.seconds == 10
    assert found.others_share == pytest.approx(0.305)
    assert found.culprits == ("cc1", "mandb", "cron")


def test_others_used_no_more_than_the_machine_was_busy(machine: FakeMachine) -> None:
    """What a process used before the window is not told from what it used in it if a snapshot has missed
    it."""
    machine.cpu(busy=5000)
    machine.process(200, "make")
    watching = watch(machine)
    machine.cpu(busy=5150)
    machine.process(200, "make", waited=900)
    assert watching.end().others_share == pytest.approx(0.15)


def test_what_is_not_worth_a_name_has_none(machine: FakeMachine) -> None:
    machine.process(200, "sshd")
    watching = watch(machine)
    machine.process(200, "sshd", own=9)
    found = watching.end()
    assert found.others_share == pytest.approx(0.009)
    assert found.culprits == ()


def test_our_trees_do_not_count(machine: FakeMachine) -> None:
    machine.process(300, "mysqld")
    watching = watch(machine, US, 300)
    machine.process(US, "tidemark", own=500, waited=800)
    machine.process(101, "sysbench", parent=US, own=900)
    machine.process(102, "worker", parent=101, own=900)
    machine.process(300, "mysqld", own=900)
    found = watching.end()
    assert (found.others_share, found.culprits) == (0, ())


def test_ours_stays_ours_when_its_root_is_gone(machine: FakeMachine) -> None:
    """A backend whose postmaster has ended belongs to init, and is still no stranger."""
    machine.process(101, "postgres", parent=US)
    watching = watch(machine)
    machine.ends(US)
    machine.process(101, "postgres", parent=1, own=500)
    assert watching.end().others_share == 0


def test_the_kernels_threads_do_not_count(machine: FakeMachine) -> None:
    machine.process(2, "kthreadd", parent=0, kernel=True)
    watching = watch(machine)
    machine.process(30, "kswapd0", parent=2, own=500, kernel=True)
    assert watching.end().others_share == 0


def test_pid_2_of_a_container_is_anybody(machine: FakeMachine) -> None:
    watching = watch(machine)
    machine.process(2, "nginx", own=500)
    assert watching.end().culprits == ("nginx",)


def test_born_in_the_window_counts_whole(machine: FakeMachine) -> None:
    watching = watch(machine)
    machine.process(400, "apt", own=120, waited=80)
    found = watching.end()
    assert found.others_share == pytest.approx(0.2)
    assert found.culprits == ("apt",)


def test_a_pid_that_is_used_again_is_another_process(machine: FakeMachine) -> None:
    machine.process(400, "sort", own=5000)
    watching = watch(machine)
    machine.process(400, "apt", own=100, started=9000)
    found = watching.end()
    assert found.others_share == pytest.approx(0.1)
    assert found.culprits == ("apt",)


def test_came_and_went_counts_through_its_parent(machine: FakeMachine) -> None:
    machine.process(400, "make", own=10, waited=3000)
    watching = watch(machine)
    machine.process(400, "make", own=20, waited=3990)
    found = watching.end()
    assert found.others_share == pytest.approx(1.0)
    assert found.culprits == ("make",)


def test_what_was_used_before_the_window_does_not_come_with_the_end(machine: FakeMachine) -> None:
    machine.process(400, "make")
    machine.process(401, "cc1", parent=400, own=50000)
    watching = watch(machine)
    machine.ends(401)
    machine.process(400, "make", waited=50070)
    found = watching.end()
    assert found.others_share == pytest.approx(0.07)
    assert found.culprits == ("make",)


@pytest.mark.parametrize("above", [1, 0], ids=["below init", "put into a container from outside"])
def test_nor_when_init_had_to_wait_for_it(machine: FakeMachine, above: int) -> None:
    machine.process(400, "sh", parent=above, own=20)
    machine.process(401, "backup", parent=400, own=50000)
    watching = watch(machine)
    machine.ends(400)
    machine.ends(401)
    machine.process(1, "init", parent=0, waited=50050)
    assert watching.end().others_share == pytest.approx(0.03)


def test_an_end_that_nobody_waited_for_takes_nothing_away(machine: FakeMachine) -> None:
    machine.process(400, "cron")
    machine.process(401, "job", parent=400, own=50000)
    watching = watch(machine)
    machine.ends(401)
    machine.process(400, "cron", waited=100)
    assert watching.end().others_share == pytest.approx(0.1)


def test_one_of_ours_that_init_waited_for_is_no_stranger(machine: FakeMachine) -> None:
    """As when a server is killed: its processes are orphans, and end a moment later."""
    machine.process(101, "postmaster", parent=US, own=10)
    machine.process(102, "postgres", parent=101, own=68010)
    watching = watch(machine)
    machine.ends(101)
    machine.ends(102)
    machine.process(US, "tidemark", waited=10)
    machine.process(1, "init", parent=0, waited=68030)
    assert watching.end().others_share == pytest.approx(0.02)


@pytest.mark.parametrize("order", [sorted, lambda names: sorted(names, reverse=True)], ids=["up", "down"])
def test_one_that_ends_while_the_first_snapshot_is_taken(
    machine: FakeMachine, monkeypatch: pytest.MonkeyPatch, order: Callable[[Iterable[str]], list[str]]
) -> None:
    """It is in neither snapshot, or in both itself and its parent, whichever is read first."""
    machine.process(400, "make")
    machine.process(401, "cc1", parent=400, own=68010)
    original, seen = os.open, []

    def opened(path: str, *rest: int) -> int:
        if str(path).endswith(("/400/stat", "/401/stat")):
            seen.append(path)
            if len(seen) == 2:
                machine.ends(401)
                (machine.proc / "401").rmdir()
                machine.process(400, "make", waited=68010)
        return original(path, *rest)

    listed = os.listdir
    monkeypatch.setattr(os, "listdir", lambda path: order(listed(path)))
    monkeypatch.setattr(os, "open", opened)
    found = watch(machine).end()
    assert (found.others_share, found.culprits) == (0, ())


def test_one_that_ends_while_the_last_snapshot_is_taken(
    machine: FakeMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.process(400, "make")
    machine.process(401, "cc1", parent=400, own=68010)
    watching = watch(machine)
    original, listed = os.open, os.listdir
    ended: list[str] = []

    def opened(path: str, *rest: int) -> int:
        if str(path).endswith("/400/stat") and not ended:
            ended.append(path)
            machine.ends(401)
            (machine.proc / "401").rmdir()
            machine.process(400, "make", waited=68020)
        return original(path, *rest)

    monkeypatch.setattr(os, "listdir", lambda path: sorted(listed(path), reverse=True))
    monkeypatch.setattr(os, "open", opened)
    assert watching.end().others_share == pytest.approx(0.01)


def test_nobody_can_have_used_more_than_there_was(machine: FakeMachine) -> None:
    """As of a process that the first snapshot has missed altogether."""
    machine.process(400, "make", started=9)
    watching = watch(machine)
    machine.process(400, "make", waited=68010, started=9)
    machine.process(401, "missed", own=500, started=8)
    found = watching.end()
    assert (found.others_share, found.culprits) == (0, ())


@pytest.mark.deep("simulates many rounds, or waits for real processes")
@given(
    begin=st.dictionaries(st.integers(2, 9), st.tuples(st.integers(0, 99), st.integers(0, 99)), max_size=8),
    end=st.dictionaries(st.integers(2, 9), st.tuples(st.integers(0, 99), st.integers(0, 99)), max_size=8),
)
def test_others_are_never_less_than_nothing(
    begin: dict[int, tuple[int, int]],
    end: dict[int, tuple[int, int]],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    machine = FakeMachine(tmp_path_factory.mktemp("machine") / "it")
    for pid, (own, waited) in begin.items():
        machine.process(pid, f"p{pid}", parent=pid - 1, own=own, waited=waited)
    watching = watch(machine)
    for pid in begin.keys() - end.keys():
        machine.ends(pid)
    for pid, (own, waited) in end.items():
        machine.process(pid, f"p{pid}", parent=pid - 1, own=own, waited=waited)
    found = watching.end()
    assert 0 <= found.others_share <= min(sum(map(sum, end.values())) / 1000 + 1e-9, os.cpu_count() or 1)
    assert 0 <= found.steal_share <= 1


# --- what is said


def test_the_reasons_have_figures_and_names() -> None:
    found = Disturbance(10, 0.031, 1.25, 4, ("cc1", "cron"), Throttling(heat=4))
    assert found.reasons(DisturbanceLimits()) == (
        "the host withheld 3.1 % of the CPU time that was wanted (limit 2.0 %)",
        "other processes used 1.25 cores (limit 0.10): most of it cc1, cron",
        "processors were throttled: by heat 4 times",
    )
    assert found.reasons(DisturbanceLimits(1, 2, 4)) == ()


def test_the_limit_itself_is_allowed() -> None:
    limits = DisturbanceLimits()
    assert Disturbance(10, limits.steal_share, limits.others_share, 0, ()).reasons(limits) == ()


def test_the_metrics_are_known() -> None:
    found = Disturbance(10, 0.25, 0.5, 0, ())
    assert found.metrics() == {"machine_steal_share": 0.25, "others_cpu_share": 0.5}
    assert found.metrics().keys() <= METRICS.keys()


def test_a_window_that_never_began(machine: FakeMachine) -> None:
    with pytest.raises(ValueError, match="without begin"):
        DisturbanceWatch(lambda: (), machine.proc, machine.sys).end()


# --- the real machine

BURN = "import time\nwhile time.process_time() < 30: pass"
BURNED, PATIENCE = 0.3, 120.0
"""The seconds of CPU time that each loop has to get, and by when, on however busy a machine."""


def test_a_stranger_is_named_and_our_own_burning_is_not(tmp_path: Path) -> None:
    """Both loops are the kernel's own; what else runs on this machine is left out, so that it has no part."""
    loops = [subprocess.Popen([sys.executable, "-c", BURN]) for _ in range(2)]
    theirs, mine = loops
    try:
        for name in ("stat", str(theirs.pid), str(mine.pid)):
            (tmp_path / name).symlink_to(f"/proc/{name}")
        name = Path(f"/proc/{theirs.pid}/comm").read_text().strip()
        strangers = DisturbanceWatch(lambda: (mine.pid,), tmp_path)
        nobody = DisturbanceWatch(lambda: (os.getpid(),), tmp_path)  # of which both loops are children
        nobody.begin()
        outer = _cpu(theirs.pid)
        strangers.begin()
        inner = _cpu(theirs.pid)
        until, wanted = time.monotonic() + PATIENCE, [_cpu(loop.pid) + BURNED for loop in loops]
        while any(_cpu(loop.pid) < least for loop, least in zip(loops, wanted, strict=True)):
            assert time.monotonic() < until, "the loops get no CPU time"
            time.sleep(0.05)
        inner = _cpu(theirs.pid) - inner
        found = strangers.end()
        outer = _cpu(theirs.pid) - outer
        calm = nobody.end()
    finally:
        for loop in loops:
            loop.send_signal(signal.SIGKILL)
            loop.wait()
    assert found.culprits == (name,)
    assert inner - 0.011 <= found.others_share * found.seconds <= outer + 0.011, "within a tick"
    assert calm.others_share == 0
    assert calm.culprits == ()
    assert any(name in reason for reason in found.reasons(DisturbanceLimits(others_share=0.0)))


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND


def test_a_snapshot_of_300_processes_takes_little_more_than_reading_them() -> None:
    """In CPU time, by turns with plain reading: the machine itself is at times half as fast."""
    sleepers = [subprocess.Popen(["sleep", "60"]) for _ in range(300)]
    try:
        watching = DisturbanceWatch(lambda: (os.getpid(),))
        ratios = []
        for _ in range(9):
            began = time.process_time()
            for process in Path("/proc").iterdir():
                if process.name.isdigit():
                    with suppress(OSError):  # it has ended since
                        (process / "stat").read_bytes()
            read = time.process_time()
            watching.begin()
            ratios.append((time.process_time() - read) / (read - began))
    finally:
        for sleeper in sleepers:
            sleeper.kill()
            sleeper.wait()
    assert statistics.median(ratios) < 1.6  # 1.0 to 1.1; one more file of each process would be twice
