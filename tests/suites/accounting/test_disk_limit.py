"""When a declared disk counts as at its limit."""

from collections.abc import Collection

import pytest

from suites.accounting.activity import DISK_LIMIT
from suites.accounting.pressure import disk_limit_reader
from suites.control_groups.declared import DiskSpeed, DiskUse
from suites.slices import Schedule

LONG, SHORT = Schedule(10.0, (0, 1)), Schedule(0.1, (0, 1))


class Disk:
    """A disk of 100 requests per second, and its clock."""

    def __init__(self) -> None:
        self.now, self.reads = 50.0, 7

    def use(self) -> DiskUse:
        return DiskUse(DiskSpeed(100), (self.reads, 0), (0, 0))


@pytest.mark.parametrize(
    ("schedule", "reads", "found"),
    [(LONG, 95, [DISK_LIMIT]), (LONG, 60, []), (SHORT, 60, [DISK_LIMIT]), (SHORT, 40, [])],
)
def test_what_is_read_in_the_time_of_a_servers_slices(
    schedule: Schedule, reads: int, found: Collection[str]
) -> None:
    disk = Disk()
    at_limit = disk_limit_reader(disk.use, schedule, lambda: disk.now)
    for _ in range(2):
        disk.now, disk.reads = disk.now + 1, disk.reads + reads
        assert at_limit() == found


def test_too_soon_to_say_holds_what_was_said() -> None:
    disk = Disk()
    at_limit = disk_limit_reader(disk.use, LONG, lambda: disk.now)
    disk.reads += 100  # let through at once
    assert at_limit() == []
    disk.now += 1
    assert at_limit() == [DISK_LIMIT]
    disk.now += 0.1
    assert at_limit() == [DISK_LIMIT]
    disk.now += 0.9
    assert at_limit() == []


def test_without_a_declared_disk_nothing_is_told() -> None:
    disk = Disk()
    at_limit = disk_limit_reader(lambda: None, LONG, lambda: disk.now)
    disk.now += 1
    assert at_limit() == []
