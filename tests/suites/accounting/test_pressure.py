"""What the kernel says of pressure on memory and disk."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suites.accounting.activity import DISK, MEMORY
from suites.accounting.pressure import pressure_reader, waited

IO = """some avg10=4.63 avg60=5.16 avg300=9.45 total=1719293967
full avg10=0.01 avg60=0.68 avg300=1.36 total=541007470
"""


def test_the_line_of_what_stopped_everything_counts() -> None:
    assert waited(IO) == 541.00747
    assert waited(IO.splitlines()[0]) is None


@given(st.text(max_size=80))
def test_any_text_has_seconds_or_none(text: str) -> None:
    found = waited(text)
    assert found is None or found >= 0


class Machine:
    """A machine whose kernel counts pressure, and its clock."""

    def __init__(self, proc: Path) -> None:
        self.proc, self.now = proc, 100.0
        (proc / "pressure").mkdir()
        self.write("io", 5.0)
        self.write("memory", 7.0)

    def write(self, name: str, seconds: float) -> None:
        total = f"{seconds * 1e6:.0f}"
        lines = (f"{which} avg10=0.00 avg60=0.00 avg300=0.00 total={total}\n" for which in ("some", "full"))
        (self.proc / "pressure" / name).write_text("".join(lines))


def test_what_everything_waited_for_half_of_the_time_is_told(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    read = pressure_reader(tmp_path, lambda: machine.now)
    for seconds, io, memory, found in ((1, 5.6, 7.4, {DISK}), (2, 5.6, 8.5, {MEMORY}), (1, 5.7, 8.6, set())):
        machine.now += seconds
        machine.write("io", io)
        machine.write("memory", memory)
        assert set(read()) == found
    assert read() == [], "two questions at one moment"


@pytest.mark.parametrize("name", ["io", "memory"])
def test_a_kernel_that_does_not_count_says_nothing(tmp_path: Path, name: str) -> None:
    machine = Machine(tmp_path)
    (tmp_path / "pressure" / name).unlink()
    read = pressure_reader(tmp_path, lambda: machine.now)
    machine.now += 1
    machine.write(name, 10)
    assert read() == []
