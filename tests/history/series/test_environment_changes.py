"""What else changed between two nights, and when that is no reason to look away."""

import json
from collections.abc import Mapping
from dataclasses import replace

import pytest

from history.series.environment_changes import markers
from history.series.inventory import InventoryFilter
from history.series.matrix import SeriesMatrix, read_matrix
from history.series.timeline import read_timeline
from history.store.records import Environment, Machine, SessionStart
from history.store.writer import Store
from tests.history.handmade import MACHINE, record_steps, session_start

BASE, NEW = "postgres@17.11", "postgres@REL_18_STABLE"
PLACE = Environment("db1", "write-heavy", "short relaxed")


def night(store: Store, start: SessionStart, base: str = BASE, base_qps: float = 1000.0) -> None:
    rates = {"insert": {base: [base_qps], NEW: [900.0]}}
    record_steps(store, replace(start, options={"versions": [base, NEW]}), rates)


def matrix(store: Store, base: str = "postgres@17", last: int = 100) -> SeriesMatrix:
    with store.database.reading() as connection:
        return read_matrix(connection, PLACE, NEW, base, ("qps", "server_cpu_us_per_op"), last)


def found(store: Store, base: str = "postgres@17") -> Mapping[int, str]:
    its_matrix = matrix(store, base)
    with store.database.reading() as connection:
        return {position: str(marker) for position, marker in markers(connection, its_matrix).items()}


def another(**changed: object) -> Machine:
    return replace(MACHINE, fingerprint=f"{changed}", **changed)  # type: ignore[arg-type]


def test_equal_nights_have_no_marker(store: Store) -> None:
    for uid in ("one", "two"):
        night(store, session_start(uid))
    assert found(store) == {}


def test_machine_suite_and_tools(store: Store) -> None:
    night(store, session_start("one"))
    night(store, replace(session_start("two"), machine=another(kernel="6.8.0-60")))
    night(store, replace(session_start("three"), machine=another(kernel="6.8.0-60"), suite_digest="cd" * 32))
    night(
        store,
        replace(
            session_start("four"),
            machine=another(kernel="6.8.0-60", details={"settings": {"governor": "powersave"}}),
            suite_digest="cd" * 32,
            tools={"generator": "sysbench 1.1"},
        ),
    )
    night(
        store,
        replace(
            session_start("five"),
            machine=another(kernel="6.8.0-60", details={"settings": {"governor": "powersave"}}),
            suite_digest="cd" * 32,
            tools={"generator": "sysbench 1.2"},
        ),
    )
    assert found(store) == {
        1: "the machine changed: kernel 6.8.0-55 -> 6.8.0-60",
        2: "the suite changed",
        3: "the machine changed: governor unknown -> powersave",
        4: "generator changed: sysbench 1.1 -> sysbench 1.2",
    }


def work(data: str, **steps: str) -> str:
    return json.dumps({"data": data, "steps": steps})


def test_a_step_that_does_something_else_is_marked_in_its_series(store: Store) -> None:
    night(store, session_start("one"))  # by the files, as before
    night(store, replace(session_start("two"), suite_digest=work("1", insert="1", delete="1")))
    night(store, replace(session_start("three"), suite_digest=work("1", insert="1", delete="2")))
    night(store, replace(session_start("four"), suite_digest=work("1", insert="2", update="1")))
    night(store, replace(session_start("five"), suite_digest=work("2", insert="3", update="1")))
    assert found(store) == {
        2: "what delete does changed",
        3: "what insert does changed",
        4: "the suite changed",
    }
    with store.database.reading() as connection:
        timeline = read_timeline(connection, InventoryFilter(step="insert", metric="qps"))
    assert [entry.changes for entry in timeline.entries] == [(), (), (), ("suite",), ("suite",)]


def test_of_another_processor_nothing_else_is_told(store: Store) -> None:
    """Its mitigations and its memory follow from it, and fill a page."""
    night(store, session_start("one"))
    other = another(cpu_model="Xeon", cores=8, details={"settings": {"mitigations": "a, b, c"}})
    night(store, replace(session_start("two"), machine=other))
    assert found(store) == {1: f"the machine changed: cpu model {MACHINE.cpu_model} -> Xeon"}


def test_memory_that_differs_by_what_a_kernel_keeps_is_the_same_machine(store: Store) -> None:
    night(store, session_start("one"))
    night(store, replace(session_start("two"), machine=another(memory_bytes=MACHINE.memory_bytes + 4096)))
    night(store, replace(session_start("three"), machine=another(memory_bytes=2 * MACHINE.memory_bytes)))
    sizes = f"{MACHINE.memory_bytes + 4096} -> {2 * MACHINE.memory_bytes}"
    assert found(store) == {2: f"the machine changed: memory bytes {sizes}"}


def test_another_base_release_is_a_marker(store: Store) -> None:
    night(store, session_start("one"), base="postgres@17.10")
    night(store, session_start("two"))
    assert found(store) == {1: "the base changed: postgres@17.10 -> postgres@17.11"}


def test_another_build_of_a_base_is_one_only_when_it_is_a_release(store: Store) -> None:
    branch = "postgres@REL_17_STABLE"
    for uid in ("one", "two"):
        night(store, session_start(uid))
        night(store, session_start(f"branch {uid}"), base=branch)
    with store.database.writing() as connection:
        connection.exec_driver_sql(
            "INSERT INTO builds (key, engine, release, source_kind, source_digest, compiler, manifest)"
            " VALUES ('another', 'postgres', '17', 'git', 'git:a:b', 'gcc', '{}')"
        )
        connection.exec_driver_sql(
            "UPDATE nights SET build_id = (SELECT id FROM builds WHERE key = 'another')"
            " WHERE is_base = 1 AND session_id > 2"
        )
    assert list(found(store).values()) == ["the base postgres@17.11 is another build"]
    assert found(store, branch) == {}


def test_another_definition_of_a_variant_is_a_marker(store: Store) -> None:
    variant = f"{NEW}#mem"
    for uid, memory in (("one", "4MB"), ("two", "4MB"), ("three", "8MB")):
        definition = {"mem": {"settings": {"work_mem": memory}}}
        options = {"versions": [BASE, NEW, variant], "variants": definition}
        rates = {"insert": {BASE: [1000.0], NEW: [900.0], variant: [900.0]}}
        record_steps(store, replace(session_start(uid), options=options), rates)
    with store.database.reading() as connection:
        its_matrix = read_matrix(connection, PLACE, variant, "postgres@17", ("qps",), 100)
        changed = markers(connection, its_matrix)
    assert {position: str(marker) for position, marker in changed.items()} == {
        2: "the variant changed: work_mem = 4MB -> work_mem = 8MB"
    }
    assert found(store) == {}


def test_nights_without_the_base_are_passed_over(store: Store) -> None:
    night(store, session_start("one"))
    record_steps(store, session_start("two"), {"insert": {NEW: [900.0]}})
    night(store, replace(session_start("three"), suite_digest="cd" * 32))
    assert found(store) == {2: "the suite changed"}


def test_a_panel_has_ratios_and_gaps(store: Store) -> None:
    night(store, session_start("one"))
    night(store, session_start("two"), base_qps=0.0)  # which is a failed run
    night(store, session_start("three"), base_qps=1800.0)
    panel = matrix(store)
    rows = {metric: number for number, (_, _, metric) in enumerate(panel.series)}
    qps = panel.ratios[rows["qps"]]
    assert [round(float(ratio), 9) for ratio in qps if ratio == ratio] == [0.9, 0.5]
    assert qps[1] != qps[1]
    assert panel.ratios[rows["server_cpu_us_per_op"]][2] == pytest.approx(2.0)
    assert [measured_night.session_id for measured_night in panel.nights] == [1, 2, 3]
    assert [measured_night.session_id for measured_night in matrix(store, last=2).nights] == [2, 3]
