"""Roles and pace of the shared Lua modules: a real sysbench whose statements only sleep. No server."""

import re
import time
from dataclasses import replace
from pathlib import Path

import pytest

from suites.definition import load_suite
from suites.generators.load import Load, Share
from suites.generators.programs import lines_of
from suites.generators.sysbench import Sysbench
from suites.generators.transcript import SysbenchTranscript
from suites.keys.step import Step
from suites.slices import Schedule
from tests.suites.ingest.test_background import ADDRESSES, step_of
from tests.suites.servers import small

SUITE = load_suite("insert-benchmark")

FAKE = """
local ffi = require("ffi")
ffi.cdef [[int usleep(unsigned int microseconds);]]
local statement = {
   bind_create = function() return {set = function() end} end,
   bind_param = function() end,
   execute = function() ffi.C.usleep(DELETE_US) end,
}
local connection = {
   driver = {},
   query = function(self, text) ffi.C.usleep(text:match("^INSERT") and INSERT_US or 100) end,
   query_row = function() return "1", "10000" end,
   prepare = function() return statement end,
   disconnect = function() end,
}
sysbench.sql.driver = function()
   return {connect = function() return connection end, name = function() return "mysql" end}
end
"""


def work(folder: Path, step: Step, insert_us: int, delete_us: int, events: int | None = None) -> Load:
    """Run a step of the suite's own script, on a driver whose inserts and other statements take so long."""
    fake = FAKE.replace("INSERT_US", str(insert_us)).replace("DELETE_US", str(delete_us))
    script = (SUITE.folder / str(SUITE.script)).read_text()
    (folder / str(SUITE.script)).write_text(fake + script)
    sizes = small(threads=1)
    sizes = replace(sizes, data=replace(sizes.data, rows_by_table={"purchases": sizes.data.rows}))
    generator = Sysbench(SUITE.model_copy(update={"folder": folder}), sizes)
    share = Share(Schedule(0.3, (0,) * 5, warming=1), 1, events)
    argv = generator.arguments_of_turns(ADDRESSES[0], step, share, 0, time.monotonic() + 0.6)
    transcript = SysbenchTranscript(step.queries)
    for _, line in lines_of(argv, 30, generator.environment):
        transcript.read(line)
        # Only a real driver counts.
        if match := re.search(r"total number of events: +([0-9]+)", line):
            transcript.read(f"transactions: {match[1]}")
            transcript.read(f"queries: {match[1]}")
    return transcript.load()


@pytest.mark.parametrize(("insert_us", "delete_us"), [(200, 3000), (3000, 200), (500, 500)])
def test_deletes_keep_pace_with_inserts_whichever_is_faster(
    tmp_path: Path, insert_us: int, delete_us: int
) -> None:
    load = work(tmp_path, step_of("l-i1"), insert_us, delete_us)
    kinds = load.kinds
    assert 1 <= load.background["delete"].most_apart <= 8
    assert kinds["insert"].committed == kinds["delete"].committed > 50
    assert load.transactions == kinds["insert"].transactions, "the deletes are no transactions of the step"
    slower = max(insert_us, delete_us) / 1e6
    assert load.transactions / load.seconds <= 1 / slower


def test_fixed_work_is_bounded_and_followed(tmp_path: Path) -> None:
    load = work(tmp_path, step_of("l-i1"), 100, 100, events=200)
    assert 0 < load.transactions <= 160, "a fifth of the slices are warm-up"
    assert load.transactions < load.kinds["delete"].committed == load.kinds["insert"].committed <= 200


def test_writers_come_at_equal_distances(tmp_path: Path) -> None:
    began = time.monotonic()
    load = work(tmp_path, step_of("qp1000").at(2), 1000, 1000)
    assert load.background.keys() == {"insert", "delete"}
    # Four slices of 0.3 s less their gap, 20 a second for each of two clients.
    for kind, tally in load.background.items():
        assert tally.done == pytest.approx(2 * 20 * 4 * 0.28, abs=5), kind
        assert tally.done <= tally.due <= tally.done + 3, kind
        assert tally.late_seconds < time.monotonic() - began
    seconds = load.kinds["point"].longest_ms
    assert len(seconds) == 2
    assert all(0 < second <= load.kinds["point"].latency_ms["max"] for second in seconds)


def test_a_rate_that_cannot_be_held_is_seen(tmp_path: Path) -> None:
    step = step_of("qr100").model_copy(update={"background": {"insert": 1000.0, "delete": 1000.0}})
    load = work(tmp_path, step, 10_000, 1000)
    assert load.background["insert"].done < 0.5 * load.background["insert"].due
