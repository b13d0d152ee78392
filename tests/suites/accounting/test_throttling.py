"""How often processors were throttled, on machines of files."""

import pytest

from suites.accounting.disturbance import DisturbanceLimits
from suites.accounting.throttling import Throttling
from tests.suites.fake_proc import FakeMachine, watch


def test_heat(machine: FakeMachine) -> None:
    for cpu in (0, 1):
        machine.write(f"sys/devices/system/cpu/cpu{cpu}/thermal_throttle/core_throttle_count", "5\n")
    watching = watch(machine)
    machine.write("sys/devices/system/cpu/cpu1/thermal_throttle/core_throttle_count", "8\n")
    found = watching.end()
    assert found.throttled == 3
    assert found.reasons(DisturbanceLimits()) == ("processors were throttled: by heat 3 times",)


def test_a_processor_that_is_switched_on_or_off(machine: FakeMachine) -> None:
    """Its count since boot is no throttling of the window, and takes none away."""
    counts = [f"sys/devices/system/cpu/cpu{cpu}/thermal_throttle/core_throttle_count" for cpu in range(3)]
    for name, count in zip(counts, ("5", "7", "5"), strict=True):
        machine.write(name, f"{count}\n")
    (machine.proc.parent / counts[2]).write_text("")
    watching = watch(machine)
    machine.write(counts[0], "8\n")
    (machine.proc.parent / counts[1]).unlink()
    machine.write(counts[2], "5\n")
    assert watching.end().throttled == 3


@pytest.mark.parametrize(
    ("group", "file"),
    [
        ("/ci/job", "sys/fs/cgroup/ci/job/cpu.stat"),
        ("/ci/job", "sys/fs/cgroup/ci/cpu.stat"),
        ("/", "sys/fs/cgroup/cpu.stat"),
    ],
)
def test_a_quota_on_our_group_or_above(machine: FakeMachine, group: str, file: str) -> None:
    machine.control_groups(group)
    machine.write("sys/fs/cgroup/elsewhere/cpu.stat", "nr_throttled 9\n")
    machine.write(file, "usage_usec 1\nnr_throttled 4\nthrottled_usec 200000\n")
    watching = watch(machine)
    machine.write(file, "usage_usec 1\nnr_throttled 11\nthrottled_usec 1700000\n")
    found = watching.end()
    assert found.throttling == Throttling(0, 7, 1.5)
    (reason,) = found.reasons(DisturbanceLimits())
    assert reason.endswith("by the CPU quota of our control group in 7 periods, 1.50 s")


def test_a_machine_that_counts_no_throttling(machine: FakeMachine) -> None:
    assert watch(machine).end().throttled == 0
