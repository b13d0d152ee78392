"""Callgrind's files: stacks, calls, marks; and what is damaged."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suites.counting.callgrind import CallgrindError, InstructionProfile, folded, parsed, plain
from suites.counting.counted_pass import counted, part_of

GOLDEN = Path(__file__).resolve().parents[2] / "golden/suites"
WORK = (GOLDEN / "callgrind-4.txt").read_text()
MARK = (GOLDEN / "callgrind-3.txt").read_text()


@pytest.fixture(scope="module")
def work() -> InstructionProfile:
    return parsed(WORK)


def test_stacks_add_up_to_what_callgrind_states(work: InstructionProfile) -> None:
    assert work.instructions == 1760 == sum(work.stacks.values())
    assert work.stacks["work;leaf"] == 330, "apart from the same function below another caller"
    assert work.stacks["work;deep;leaf"] == 60 + 480
    assert {stack.split(";")[0] for stack in work.stacks} == {"main", "mark", "wait_for_client", "work"}


def test_calls_are_those_of_all_callers(work: InstructionProfile) -> None:
    # The program calls work(5), which calls deep(4) and leaf(10) five times; deep calls leaf five times.
    assert work.calls["work"] == 1
    assert work.calls["deep"] == 5 * 5
    assert work.calls["leaf"] == 5 * 5 + 5
    assert work.inclusive["wait_for_client"] == 406


def test_what_waits_is_not_counted(work: InstructionProfile) -> None:
    assert counted(work, ("wait_for_client", "not there")) == 1760 - 406
    assert counted(parsed(MARK), ()) < 30, "a mark alone, which is subtracted from the work"


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda text: text[: text.index("fn=(600)")], "cut off or damaged"),
        (lambda text: text.replace("0 480", "0 48x"), "cannot be parsed"),
        (lambda text: text.replace("cfn=(599)\ncalls=20", "cfn=(7)\ncalls=20"), "cannot be parsed: '7'"),
        (lambda text: text.replace("events: Ir", "events: Ir Dr"), "only Ir"),
        (lambda text: text.replace("# callgrind format", ""), "not one of callgrind"),
        (lambda text: text.replace("0 330", "0 " + "3" * 40), "cannot be parsed"),
    ],
)
def test_a_damaged_file_is_refused(damage, says: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(CallgrindError, match=says):
        parsed(damage(WORK), "counts.1.4")


@given(st.integers(0, len(WORK)), st.text(max_size=8))
def test_no_damage_is_more_than_an_error(place: int, what: str) -> None:
    try:
        profile = parsed(WORK[:place] + what + WORK[place + len(what) :])
    except CallgrindError:
        return
    assert profile.instructions == sum(profile.stacks.values()) >= 0


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("memcpy@@GLIBC_2.14", "memcpy"),
        ("heap_update.constprop.0", "heap_update"),
        ("ExecScan.part.0.isra.2", "ExecScan"),
        ("0x00000000001e78c0", "[unknown]"),
        ("Item_func::fix_fields(THD*, Item**)", "Item_func::fix_fields(THD*, Item**)"),
    ],
)
def test_the_compiler_s_copies_have_the_name_of_the_function(name: str, expected: str) -> None:
    assert plain(name) == expected


def test_a_stack_begins_where_the_program_s_own_code_does() -> None:
    name = "heap_update'ExecutorRun'PostgresMain'main'(below main)'0x000000000001ab70"
    assert folded(name) == "PostgresMain;ExecutorRun;heap_update"
    assert folded("(below main)'0x1") == "(below main)", "the frame itself, where there is no other"


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("counts.4711.3", 3),
        ("counts.4711.4-02", 4),
        ("counts.4711", None),
        ("counts.4711.x", None),
        ("valgrind.3", None),
    ],
)
def test_the_number_of_a_part_is_in_its_name(name: str, part: int | None) -> None:
    assert part_of(name) == part
