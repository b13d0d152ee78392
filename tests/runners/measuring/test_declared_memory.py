"""A declared memory in a session: what is refused, and that it is part of what results are of."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from build.home import Home
from build.version import parse_version
from history.open import open_store
from history.series.night import configuration_name
from history.store.records import StepNoise
from runners.measuring import memory_limits
from runners.measuring.memory_limits import require_memory
from runners.measuring.request import Request
from runners.nightly.plan import Task
from runners.nightly.work import environment_of, request_of
from suites.control_groups.limits import LimitError, parse_memory
from suites.definition import load_suite
from suites.sizing import Hardware, sizes
from tests.history.handmade import MACHINE, run_record, session_start

GIB = 2**30
SUITE = load_suite("write-heavy")


def request(memory: str, *versions: str) -> Request:
    suite = SUITE.with_memory(parse_memory(memory))
    return Request(tuple(map(parse_version, versions)), suite, "short", suite.steps, 3)


def refused(asked: Request, folder: Path, machine: Hardware) -> LimitError:
    needed = sizes(asked.suite, asked.profile, machine, asked.steps)
    with pytest.raises(LimitError) as caught:
        require_memory(asked, needed, machine, Home(folder))
    assert caught.value.where
    return caught.value


@pytest.mark.parametrize(
    ("memory", "version", "what", "least"),
    [
        ("300M", "postgres@18.6", "it has 128M of buffers, and needs 256M beside them", "384M"),
        ("600M", "mysql@9.7.2", "it has 128M of buffers, and needs 512M beside them", "640M"),
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

    def make(name: str, memory: int) -> Made:
        made.append(f"{name.rpartition('-')[0]} {memory}")
        return Made()

    monkeypatch.setattr(memory_limits, "make_group", make)
    monkeypatch.setattr(memory_limits, "require_page_cache", lambda *_: None)
    asked, machine = request("384M", "postgres@18.6"), Hardware(2, 8 * GIB)
    needed = sizes(asked.suite, asked.profile, machine)
    require_memory(asked, needed, machine, Home(tmp_path))
    assert made == [f"tidemark-tried {384 * 2**20}", "removed"]
    require_memory(asked, replace(needed, memory_bytes=None), machine, Home(tmp_path))
    assert len(made) == 2, "nothing is required of a session without"


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
        for memory in ({}, {"memory": "1024M"})
    ]
    plain, limited = (environment_of(request_of(task, versions), "box") for task in tasks)
    assert limited.configuration == f"{plain.configuration} memory=1G"


def test_the_configuration_of_a_session_names_it() -> None:
    row = {"profile": "short", "durability": "relaxed", "options": json.dumps({"seconds": 5, "memory": "1G"})}
    assert configuration_name(row) == "short relaxed 5s memory=1G"


def test_a_calibration_is_of_its_memory(tmp_path: Path) -> None:
    with open_store(tmp_path / "history.db") as store:
        for uid, memory in (("limited", "1G"), ("plain", "")):
            options = {"threads": 8, **({"memory": memory} if memory else {})}
            session = store.start_session(replace(session_start(uid), options=options))
            rate = 100.0 if memory else 900.0
            store.record_run(session, run_record({"qps": rate, "tps": rate}))
            store.record_noise(session, [StepNoise("insert", "qps", rate, 9.0, 10)])
        known: dict[str, float | None] = {"1G": 100.0, "": 900.0, "2G": None}
        for memory, calibrated in known.items():
            asked = replace(session_start("new"), options={"memory": memory} if memory else {})
            noise = store.noise(asked, "qps").get("insert")
            assert (noise and noise.sd) == calibrated
            place = (MACHINE, "write-heavy", "short", "relaxed", memory, "insert")
            assert store.calibrated_throughput(*place) == calibrated
