"""What is said of a busy machine before anything is measured."""

from runners.occupancy.busy import busy
from suites.accounting.disturbance import Disturbance


def test_a_busy_machine_is_told_with_what_can_be_done() -> None:
    told = busy(Disturbance(0.5, 0.0, 1.4, 0, ("cc1", "python")), "accept it (--keep-disturbed)")
    assert told.startswith("this machine is busy: other processes used 1.40 cores (limit 0.10): most")
    assert told.endswith("Wait until ./tidemark check finds no load; or accept it (--keep-disturbed)")
    assert busy(Disturbance(0.5, 0.0, 0.05, 0, ()), "") == ""
