"""A /proc and a /sys of files that a test writes."""

from pathlib import Path

from suites.accounting.disturbance import DisturbanceWatch
from suites.accounting.proc import KERNEL_THREAD

US = 100
"""The process of Tidemark."""


class FakeMachine:
    """Files below a folder, `proc` and `sys`; times in ticks, a hundred to a second."""

    def __init__(self, folder: Path) -> None:
        self.proc, self.sys = folder / "proc", folder / "sys"
        self.now = 100.0
        self.proc.mkdir(parents=True)
        self.sys.mkdir()
        self.cpu()
        self.process(1, "init", parent=0)

    def clock(self) -> float:
        return self.now

    def cpu(self, busy: int = 0, steal: int = 0) -> None:
        self.write("proc/stat", f"cpu  {busy} 0 0 9 9 0 0 {steal} 0 0\ncpu0 1 2 3 4 5 6 7 8 9 10\nbtime 1\n")

    def process(
        self,
        pid: int,
        name: str,
        *,
        parent: int = 1,
        own: int = 0,
        waited: int = 0,
        started: int = 7,
        kernel: bool = False,
    ) -> None:
        flags = KERNEL_THREAD if kernel else 4194560
        times = f"{own - own // 2} {own // 2} {waited} 0"
        self.write(
            f"proc/{pid}/stat",
            f"{pid} ({name}) S {parent} 1 1 0 -1 {flags} 1 1 1 1 {times} 20 0 1 0 {started} 0 0",
        )

    def ends(self, pid: int) -> None:
        (self.proc / str(pid) / "stat").unlink()

    def control_groups(self, own: str) -> None:
        """Mount control groups below sys/fs/cgroup; `own` is the path of ours."""
        self.write("proc/self/mountinfo", "30 25 0:28 / /sys/fs/cgroup rw,relatime - cgroup2 cgroup2 rw\n")
        self.write("proc/self/cgroup", f"0::{own}\n")

    def write(self, name: str, text: str) -> None:
        path = self.proc.parent / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def watch(machine: FakeMachine, *ours: int) -> DisturbanceWatch:
    """Begin a window of ten seconds; `ours` are the processes at the roots of our trees."""
    found = DisturbanceWatch(lambda: ours or (US,), machine.proc, machine.sys, machine.clock)
    found.begin()
    machine.now += 10
    return found
