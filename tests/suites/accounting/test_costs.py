"""Counting what a process tree costs: trees whose cost is known beforehand."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import replace

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suites.accounting.costs import Meter
from suites.accounting.usage import RunningTotal, Usage
from suites.metrics import METRICS

MIB = 1024**2

TREE = """
import os, sys, threading, time

def burn(seconds):
    began = time.process_time()
    while time.process_time() - began < seconds:
        pass

def nap(times):
    for _ in range(times):
        time.sleep(0.0005)

def write(path, size):
    with open(path, "wb") as file:
        file.write(os.urandom(size))

def child(work, *, lives_on=False):
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        work()
        os.write(writing, b"x")
        if lives_on:
            time.sleep(60)
        os._exit(0)
    os.read(reading, 1)
    if not lives_on:
        os.waitpid(pid, 0)

for line in sys.stdin:
    exec(line)
    print("done", flush=True)
"""


class Tree:
    """A process that carries out lines of Python and so makes itself a tree of processes."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", TREE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.does("pass")

    def does(self, line: str) -> None:
        """Returns when the line is carried out."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "done\n"


@contextlib.contextmanager
def _tree() -> Iterator[Tree]:
    tree = Tree()
    try:
        yield tree
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(tree.process.pid, signal.SIGKILL)
        tree.process.communicate()


@pytest.fixture
def server() -> Iterator[Tree]:
    with _tree() as tree:
        yield tree


@pytest.fixture
def client() -> Iterator[Tree]:
    with _tree() as tree:
        yield tree


def costs(server: Tree, client: Tree, work: str, *, on: Tree | None = None) -> dict[str, float]:
    """The costs per query while `work` is done on the server, or `on` another; as if it were one query."""
    meter = Meter(server.process.pid)
    meter.begin(client.process.pid)
    (on or server).does(work)
    meter.end(client.process.pid)
    return dict(meter.per_query(1))


# --- arithmetic

usages = st.builds(Usage, *[st.integers(0, 10**9)] * 5)


@given(usages, usages)
def test_sums_and_differences(usage: Usage, other: Usage) -> None:
    assert usage + other - other == usage
    assert usage + other == other + usage
    assert usage + Usage() == usage


def test_every_field_takes_part() -> None:
    assert Usage(3, 5, 7, 9, 11) - Usage(1, 2, 3, 4, 5) == Usage(2, 3, 4, 5, 6)
    assert Usage(1, 2, 3, 4, 5) + Usage(1, 1, 1, 1, 1) == Usage(2, 3, 4, 5, 6)
    assert replace(Usage(), reads=1) + Usage() == Usage(0, 0, 0, 0, 1)


# --- CPU


@pytest.mark.parametrize(
    "work",
    [
        pytest.param("burn(0.5)", id="the root itself"),
        pytest.param("child(lambda: burn(0.5), lives_on=True)", id="a child that lives on"),
        pytest.param("child(lambda: burn(0.5))", id="a child that ended inside the window"),
        pytest.param(
            "child(lambda: child(lambda: burn(0.5), lives_on=True), lives_on=True)", id="a child of a child"
        ),
    ],
)
def test_cpu_of_the_whole_tree(server: Tree, client: Tree, work: str) -> None:
    spent = costs(server, client, work)
    assert spent["server_cpu_us_per_op"] == pytest.approx(0.5e6, abs=0.1e6)
    assert spent["client_cpu_us_per_op"] < 0.05e6
    assert spent["machine_cpu_us_per_op"] > 0.4e6


def test_children_that_live_and_that_ended_add_up(server: Tree, client: Tree) -> None:
    work = "child(lambda: burn(0.3), lives_on=True); child(lambda: burn(0.3))"
    assert costs(server, client, work)["server_cpu_us_per_op"] == pytest.approx(0.6e6, abs=0.12e6)


def test_what_was_spent_before_does_not_count(server: Tree, client: Tree) -> None:
    server.does("child(lambda: burn(0.3)); child(lambda: burn(0.3), lives_on=True)")
    assert costs(server, client, "pass")["server_cpu_us_per_op"] < 0.05e6


def test_the_load_generator_is_kept_apart(server: Tree, client: Tree) -> None:
    spent = costs(server, client, "burn(0.3)", on=client)
    assert spent["client_cpu_us_per_op"] == pytest.approx(0.3e6, abs=0.06e6)
    assert spent["server_cpu_us_per_op"] < 0.05e6


# --- context switches and I/O


def test_switches_of_all_threads_count(server: Tree, client: Tree) -> None:
    """Every nap is a voluntary switch. The threads live on: those of an ended thread are gone."""
    server.does("gate = threading.Event(); napped = threading.Barrier(3)")
    thread = "threading.Thread(target=lambda: (nap(300), napped.wait(), gate.wait()))"
    spent = costs(server, client, f"[{thread}.start() for _ in range(2)]; napped.wait()")
    server.does("gate.set()")
    assert 600 <= spent["server_cs_per_op"] < 3000
    assert spent["client_cs_per_op"] < 100
    assert spent["machine_cs_per_op"] >= 600


def test_writes_count_when_the_writer_is_gone(server: Tree, client: Tree) -> None:
    with tempfile.NamedTemporaryFile(dir="/var/tmp") as file:
        spent = costs(server, client, f"child(lambda: write({file.name!r}, {4 * MIB}))")
    assert spent["server_written_kb_per_op"] == pytest.approx(4096, abs=64)
    assert spent["client_written_kb_per_op"] == 0


# --- what is reported


def test_every_cost_is_a_known_metric(server: Tree, client: Tree) -> None:
    spent = costs(server, client, "pass")
    assert spent.keys() <= METRICS.keys()
    assert len(spent) == 3 * 4 + 1
    assert "machine_reads_per_op" in spent


def test_costs_are_divided_by_the_queries(server: Tree, client: Tree) -> None:
    meter = Meter(server.process.pid)
    meter.begin(client.process.pid)
    server.does("burn(0.2)")
    meter.end(client.process.pid)
    single, thousand = meter.per_query(1), meter.per_query(1000)
    assert single["server_cpu_us_per_op"] == pytest.approx(1000 * thousand["server_cpu_us_per_op"])


def test_the_last_end_counts(server: Tree, client: Tree) -> None:
    meter = Meter(server.process.pid)
    meter.begin(client.process.pid)
    for _ in range(2):
        server.does("burn(0.2)")
        meter.end(client.process.pid)
    assert meter.per_query(1)["server_cpu_us_per_op"] == pytest.approx(0.4e6, abs=0.08e6)


@pytest.mark.deep("simulates many rounds, or waits for real processes")
def test_the_pieces_of_a_load_add_up_and_what_lies_between_does_not_count(server: Tree, client: Tree) -> None:
    meter = Meter(server.process.pid)
    for _ in range(3):
        meter.begin(client.process.pid)
        server.does("burn(0.1)")
        meter.end(client.process.pid)
        server.does("burn(0.3)")
    spent = meter.per_query(1)
    assert spent["server_cpu_us_per_op"] == pytest.approx(0.3e6, abs=0.07e6)
    assert spent["client_cpu_us_per_op"] < 0.05e6
    assert len(spent) == 3 * 4 + 1


def test_each_piece_may_have_a_load_generator_of_its_own(server: Tree, client: Tree) -> None:
    meter = Meter(server.process.pid)
    for _ in range(2):
        with _tree() as another:
            meter.begin(another.process.pid)
            another.does("burn(0.2)")
            meter.end(another.process.pid)
    assert meter.per_query(1)["client_cpu_us_per_op"] == pytest.approx(0.4e6, abs=0.08e6)


def test_a_piece_that_never_ended_does_not_count(server: Tree, client: Tree) -> None:
    meter = Meter(server.process.pid)
    meter.begin(client.process.pid)
    server.does("burn(0.2)")
    meter.end(client.process.pid)
    server.does("burn(0.2)")
    meter.begin(client.process.pid)
    server.does("burn(0.2)")
    assert meter.per_query(1)["server_cpu_us_per_op"] == pytest.approx(0.2e6, abs=0.04e6)


def test_costs_of_the_machine_are_nobodys_when_servers_share_it(server: Tree, client: Tree) -> None:
    meter = Meter(server.process.pid, shared=True)
    meter.begin(client.process.pid)
    meter.end(client.process.pid)
    assert {name.partition("_")[0] for name in meter.per_query(1)} == {"server", "client"}


def test_a_load_that_nobody_watched_has_no_costs(server: Tree) -> None:
    meter = Meter(server.process.pid)
    assert meter.per_query(10) == {}
    meter.begin(server.process.pid)
    assert meter.per_query(10) == {}
    meter.end(server.process.pid)
    assert meter.per_query(0) == {}
    assert meter.per_query(10)


def test_processes_that_are_gone_have_no_costs() -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    meter = Meter(gone.pid)
    meter.begin(gone.pid)
    meter.end(gone.pid)
    assert {name.partition("_")[0] for name in meter.per_query(1)} == {"machine"}


# --- what ends between two readings

IDLE = "child(lambda: (nap(300), burn(0.5)), lives_on=True)"
REAPED = "[os.kill(pid, 9) for pid in pids]; [os.waitpid(pid, 0) for pid in pids]"


def has_idle_child(tree: Tree) -> None:
    """Give a tree a child that has used CPU time and was switched away from often, and idles."""
    tree.does("pids = []; real = os.fork; os.fork = lambda: (pids.append(real()), pids[-1])[1]")
    tree.does(IDLE)


def test_a_process_that_ended_takes_nothing_with_it(server: Tree, client: Tree) -> None:
    has_idle_child(server)
    spent = costs(server, client, REAPED)
    assert 0 <= spent["server_cs_per_op"] < 100
    assert 0 <= spent["server_cpu_us_per_op"] < 0.1e6


def test_nor_does_a_thread(server: Tree, client: Tree) -> None:
    server.does("gate = threading.Event(); thread = threading.Thread(target=lambda: (nap(300), gate.wait()))")
    server.does("thread.start(); time.sleep(0.5)")
    spent = costs(server, client, "gate.set(); thread.join()")
    assert 0 <= spent["server_cs_per_op"] < 100


def test_what_ends_while_it_is_read_is_counted_once(
    server: Tree, client: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the reading of the root and of its child, the child ends, and the root has waited for it."""
    has_idle_child(server)
    original = psutil.Process.cpu_times
    ended: list[psutil.Process] = []

    def cpu_times(process: psutil.Process) -> object:
        found = original(process)
        if process.pid == server.process.pid and not ended:
            ended.append(process)
            server.does(REAPED)
        return found

    monkeypatch.setattr(psutil.Process, "cpu_times", cpu_times)
    assert costs(server, client, "pass")["server_cpu_us_per_op"] < 0.1e6
    assert ended


def test_a_load_generator_that_ended_has_the_costs_that_were_read_last(server: Tree, client: Tree) -> None:
    meter = Meter(server.process.pid)
    meter.begin(client.process.pid)
    client.does("burn(0.3)")
    meter.end(client.process.pid)
    os.killpg(client.process.pid, signal.SIGKILL)
    client.process.wait()
    meter.end(client.process.pid)
    assert meter.per_query(1)["client_cpu_us_per_op"] == pytest.approx(0.3e6, abs=0.1e6)


@given(st.lists(st.dictionaries(st.integers(0, 3), st.integers(0, 9)), max_size=9))
def test_a_total_of_counters_that_come_and_go_never_falls(readings: list[Mapping[Hashable, int]]) -> None:
    total = RunningTotal()
    sums = [total.with_(reading) for reading in readings]
    assert sums == sorted(sums)
    assert all(whole >= sum(reading.values()) for whole, reading in zip(sums, readings, strict=True))
