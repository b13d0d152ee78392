"""A declared memory or disk in a session: what is refused, and that it is part of what results are of."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from build.home import Home
from build.progress import Silent
from build.version import parse_version
from history.comparison.beside.domain import RECLAIM
from history.open import open_store
from history.series.night import configuration_name
from history.store.records import StepNoise
from runners.measuring import declared_limits
from runners.measuring.declared_limits import note_reclaim, note_unequal_caches, require_declared
from runners.measuring.request import Request
from runners.measuring.session_description import reclaim_options
from runners.nightly.plan import Task
from runners.nightly.work import environment_of, request_of
from suites.control_groups.declared import Declared, LimitError, parse_memory
from suites.control_groups.group import GroupLimit
from suites.definition import load_suite
from suites.sizing import Hardware, sizes
from tests.history.handmade import MACHINE, run_record, session_start
from tests.runners.fitness.fake_kernel import FakeKernel

GIB = 2**30
SUITE = load_suite("write-heavy")


def request(memory: str, *versions: str) -> Request:
    suite = SUITE.with_declared(parse_memory(memory), None)
    return Request(tuple(map(parse_version, versions)), suite, "short", suite.steps, 3)


def refused(asked: Request, folder: Path, machine: Hardware) -> LimitError:
    needed = sizes(asked.suite, asked.profile, machine, asked.steps)
    with pytest.raises(LimitError) as caught:
        require_declared(asked, needed, machine, Home(folder))
    assert caught.value.where
    return caught.value


@pytest.mark.parametrize(
    ("memory", "version", "what", "least"),
    [
        ("300M", "postgres@18.6", "it has 128M of buffers, and needs 256M beside them", "384M"),
        ("600M", "mysql@9.7.2", "it has 128M of buffers, and needs 576M beside them", "720M"),
    ],
)
def test_too_little_for_a_server_names_the_least(
    tmp_path: Path, memory: str, version: str, what: str, least: str
) -> None:
    error = refused(request(memory, "mariadb@11.8.6", version), tmp_path, Hardware(2, 8 * GIB))
    assert error.what.endswith(what)
    assert error.hint == f"give it {least} at least"


def test_the_least_is_accepted_and_tried_on_an_empty_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []

    class Made:
        def remove(self) -> None:
            made.append("removed")

    def make(name: str, limits: Sequence[GroupLimit]) -> Made:
        made.append(f"{name.rpartition('-')[0]} {' and '.join(map(str, limits))}")
        return Made()

    monkeypatch.setattr(declared_limits, "make_group", make)
    monkeypatch.setattr(declared_limits, "require_page_cache", lambda *_: None)
    asked, machine = request("384M", "postgres@18.6"), Hardware(2, 8 * GIB)
    needed = sizes(asked.suite, asked.profile, machine)
    require_declared(asked, needed, machine, Home(tmp_path))
    assert made == ["tidemark-tried 384M of memory", "removed"]
    require_declared(asked, replace(needed, memory_bytes=None), machine, Home(tmp_path))
    assert len(made) == 2, "nothing is required of a session without"


@pytest.mark.parametrize(
    ("profile", "memory", "versions", "told"),
    [
        ("long", None, ("postgres@18.6", "mysql@9.7.2"), True),
        ("long", None, ("mariadb@11.8.6", "mysql@9.7.2"), False),
        ("short", None, ("postgres@18.6", "mysql@9.7.2"), False),
        ("long", GIB, ("postgres@18.6", "mysql@9.7.2"), False),
    ],
)
def test_engines_that_do_not_have_the_same_memory_are_told(
    monkeypatch: pytest.MonkeyPatch, profile: str, memory: int | None, versions: tuple[str, ...], told: bool
) -> None:
    """Where data do not fit into buffers, and no memory is declared that each of them would have."""
    suite = SUITE.with_declared(memory, None)
    asked = Request(tuple(map(parse_version, versions)), suite, profile, suite.steps, 3)
    notes: list[str] = []
    shown = Silent()
    monkeypatch.setattr(shown, "note", notes.append)
    note_unequal_caches(asked, sizes(suite, asked.profile, Hardware(2, 8 * GIB), asked.steps), shown)
    text = (
        "not the same memory: each has 2G of buffers, beside which the page cache holds data of postgres@18.6"
        " and none of mysql@9.7.2; --memory gives each as much"
    )
    assert notes == ([text] if told else [])


@pytest.mark.parametrize(
    ("profile", "state", "versions", "told"),
    [
        ("long", "on", ("postgres@18.6", "mysql@9.7.2"), True),
        ("long", "off", ("postgres@18.6", "mysql@9.7.2"), False),
        ("long", "on", ("mariadb@11.8.6", "mysql@9.7.2"), False),
        ("short", "on", ("postgres@18.6",), False),
    ],
)
def test_a_kernel_that_drops_cached_data_is_told(
    monkeypatch: pytest.MonkeyPatch,
    kernel: FakeKernel,
    profile: str,
    state: str,
    versions: tuple[str, ...],
    told: bool,
) -> None:
    """Where some server has data in the page cache alone."""
    kdamond = "/sys/kernel/mm/damon/admin/kdamonds/0"
    kernel.put(f"{kdamond}/state", f"{state}\n")
    kernel.put(f"{kdamond}/contexts/0/schemes/0/action", "pageout\n")
    asked = Request(tuple(map(parse_version, versions)), SUITE, profile, SUITE.steps, 3)
    needed = sizes(SUITE, asked.profile, Hardware(2, 8 * GIB), asked.steps)
    notes: list[str] = []
    shown = Silent()
    monkeypatch.setattr(shown, "note", notes.append)
    note_reclaim(asked, needed, kernel, shown)
    text = (
        "the kernel takes back memory that was not used for a while (pageout by kdamond 0), so that servers "
        f"may cache less than they could; to turn it off: echo off > {kdamond}/state"
    )
    assert notes == ([text] if told else [])
    assert reclaim_options(asked, needed, kernel) == ({RECLAIM: "pageout by kdamond 0"} if told else {})


def test_more_than_the_machine_has_names_the_most(tmp_path: Path) -> None:
    error = refused(request("7G", "postgres@18.6"), tmp_path, Hardware(2, 8 * GIB))
    assert error.what == "7G of memory are more than this machine has for a server: it has 8G"
    assert error.hint.startswith("give it 6553M at most")


def test_data_in_memory_cannot_be_limited() -> None:
    error = refused(request("1G", "postgres@18.6"), Path("/dev/shm/none"), Hardware(2, 8 * GIB))
    assert error.what == "memory of servers cannot be limited on a tmpfs, whose files are memory themselves"


def test_a_task_of_a_plan_has_a_series_of_its_own() -> None:
    versions = (parse_version("postgres@18.6"), parse_version("postgres@17.11"))
    tasks = [
        Task.model_validate({"suite": "write-heavy", "profile": "smoke", **memory})
        for memory in ({}, {"memory": "1024M"}, {"disk": "1GB/s,500iops"})
    ]
    plain, limited, slow = (environment_of(request_of(task, versions), "box") for task in tasks)
    assert limited.configuration == f"{plain.configuration} memory=1G"
    assert slow.configuration == f"{plain.configuration} disk=500iops,1000MB/s"


def test_the_configuration_of_a_session_names_it() -> None:
    options = json.dumps({"seconds": 5, "memory": "1G", "disk": "9MB/s"})
    row = {"profile": "short", "durability": "relaxed", "options": options}
    assert configuration_name(row) == "short relaxed 5s memory=1G disk=9MB/s"


def test_a_calibration_is_of_what_is_declared(tmp_path: Path) -> None:
    rates = {Declared("1G"): 100.0, Declared(): 900.0, Declared(disk="500iops"): 300.0}
    with open_store(tmp_path / "history.db") as store:
        for number, (declared, rate) in enumerate(rates.items()):
            options = {"threads": 8, **declared.options}
            session = store.start_session(replace(session_start(f"n{number}"), options=options))
            store.record_run(session, run_record({"qps": rate, "tps": rate}))
            store.record_noise(session, [StepNoise("insert", "qps", rate, 9.0, 10)])
        for declared in (*rates, Declared("2G"), Declared("1G", "500iops")):
            noise = store.noise(replace(session_start("new"), options=declared.options), "qps").get("insert")
            assert (noise and noise.sd) == rates.get(declared)
            place = (MACHINE, "write-heavy", "short", "relaxed", declared, "insert")
            assert store.calibrated_throughput(*place) == rates.get(declared)
