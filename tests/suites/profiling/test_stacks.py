"""Folded stacks: roles, windows of time, quality, and a real capture of perf."""

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suites.profiling.folding import Samples, Window, descendants, fold, frame_of, without_arguments
from suites.profiling.perf import FREQUENCY, MIN_FREQUENCY, PerfError, frequency, in_a_sentence
from suites.profiling.stacks import OTHER, StepProfile, merged, of_role
from tests.suites.golden import GOLDEN, require_golden

names = st.text(st.characters(categories=("L", "N"), include_characters="_:.~"), min_size=1, max_size=12)
frames = st.lists(names, min_size=1, max_size=8)

ALWAYS = ((0.0, 1e9),)


def profile(stacks: dict[str, int], queries: float = 1000, lost: int = 0) -> StepProfile:
    return StepProfile("cpu-clock", 1000, queries, lost, stacks)


def sample(thread: int, stack: list[str], moment: str = "10.5", process: str = "7") -> bytes:
    """One sample as perf prints it, the innermost function first."""
    lines = [f"\t  401136 {name} (/bin/postgres)" for name in reversed(stack)]
    return "\n".join([f"my comm  {process}/{thread}   {moment}: cpu-clock:I: ", *lines, "", ""]).encode()


def folded(
    text: bytes, roles: dict[int, str] | None = None, windows: tuple[Window, ...] = ALWAYS
) -> dict[str, int]:
    return dict(fold(Samples(text, {}, 0), {7}, roles or {}, windows))


@pytest.mark.deep("simulates many rounds, or waits for real processes")
@given(st.lists(st.tuples(st.integers(1, 4), frames), max_size=30))
def test_every_sample_goes_to_the_role_of_its_thread(taken: list[tuple[int, list[str]]]) -> None:
    roles = {1: "client backend", 2: "checkpointer", 3: "client backend"}
    stacks = folded(b"".join(sample(thread, inner) for thread, inner in taken), roles)
    assert sum(stacks.values()) == len(taken)
    for thread, inner in taken:
        assert ";".join([roles.get(thread, OTHER), *inner]) in stacks


def test_only_samples_within_a_window_count() -> None:
    moments = ("9.999999", "10.000000", "10.5", "11.000000", "20.1")
    text = b"".join(sample(7, ["main", f"at {moment}"], moment) for moment in moments)
    kept = folded(text, windows=((10.0, 11.0), (20.0, 21.0)))
    assert kept == {f"other;main;at {moment}": 1 for moment in ("10.000000", "10.5", "20.1")}
    assert folded(text, windows=()) == {}


NAMELESS = [
    b":-1    -1/-1    ",
    b"  -1/-1    ",
    b" 7/7      ",
    b"7/7      ",
    b"a\nb 7/7      ",
    b"x   -1/7    ",
]


@pytest.mark.parametrize("nameless", NAMELESS)
@pytest.mark.parametrize("first", [True, False])
def test_a_process_that_is_gone_does_not_cost_the_profile(nameless: bytes, first: bool) -> None:
    lines = b"%s10.5: cpu-clock:I: \n\t  401136 main (/bin/postgres)\n\n"
    whole, gone = lines % b"a name 7/7      ", lines % nameless
    text = gone + whole if first else whole + gone
    assert folded(text, {7: "client backend"}) == {"client backend;main": 1}


def test_a_header_has_a_process_an_event_and_maybe_a_period() -> None:
    for header in (
        b"postgres 7/7 10.5: cpu-clock:I: ",
        b":7 7/7 10.5: 250000 cycles: ",
        b"io worker 7/8  10.5:  1 x:",
    ):
        assert folded(header + b"\n\t 401136 main (/bin/postgres)\n\n") == {"other;main": 1}
    assert folded(sample(7, ["main"]) + b"postgres 7/7 10.5:\n\t 401136 main (/b)\n\n") == {"other;main": 1}


def test_an_output_without_any_sample_is_refused() -> None:
    """Another version of perf may print something else; an empty profile would not say so."""
    with pytest.raises(PerfError, match="no sample in what perf printed can be read") as caught:
        folded(b"\nTIME EVENT SYMBOL\n10.5 cpu-clock main\n\n")
    assert caught.value.where == "TIME EVENT SYMBOL"
    assert folded(b"\n") == {}


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("327b54 ExecInitNode (/opt/bin/postgres)", "ExecInitNode"),
        ("327b54 heap_update+0x1f (/opt/bin/postgres)", "heap_update"),
        ("4e3c2f [unknown] (/opt/bin/postgres)", "[postgres]"),
        ("0 [unknown] ([unknown])", "[unknown]"),
        ("ffffffff815d dup_mmap ([kernel.kallsyms])", "dup_mmap_[k]"),
        ("7d8 tcp_sendmsg (/lib/modules/6.1/vmlinux)", "tcp_sendmsg_[k]"),
        ("4 row_upd_step(que_thr_t*) (/bin/mysqld)", "row_upd_step"),
        ("4 Guard::operator->() const (/bin/mysqld)", "Guard::operator->"),
        ("4 std::map<int, void (*)(int)>::find(int const&) (/b)", "std::map<int, void (*)(int)>::find"),
        ("4 (anonymous namespace)::f(int) (/bin/mysqld)", "(anonymous namespace)::f"),
        ("4 a;b (/bin/mysqld)", "a:b"),
        ("4 (postgres) (/bin/postgres)", ""),
        ("no stack", ""),
    ],
)
def test_a_function_is_named_without_arguments_and_offset(line: str, name: str) -> None:
    assert frame_of(f"\t  {line}".encode()) == name


@given(st.text("ab:<>(){}[]-;,* ", max_size=30))
def test_only_arguments_are_cut_off(name: str) -> None:
    assert name.startswith(without_arguments(name))


def test_the_output_of_another_program_is_one_printable_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIDEMARK_HOME", str(tmp_path))
    assert in_a_sentence("perf", "") == "perf said nothing"
    assert in_a_sentence("perf", "\n  no\x1bway \n") == "no?way"
    assert not (tmp_path / "logs").exists()
    assert in_a_sentence("perf", f"{'x' * 300}\nmore") == f"{'x' * 199}… (more in logs/profiles.log)"
    assert "more\n" in (tmp_path / "logs/profiles.log").read_text()
    monkeypatch.setenv("TIDEMARK_HOME", str(tmp_path / "logs/profiles.log"))
    assert in_a_sentence("perf", "one\ntwo") == "one", "a log that cannot be written costs nothing"


def test_descendants_of_a_server_are_its_own() -> None:
    """Such as an autovacuum worker that nobody saw, and a parallel worker of a backend that nobody saw."""
    assert descendants([7, 8], {20: 7, 21: 20, 30: 99, 31: 30}) == {7, 8, 20, 21}


def test_samples_of_others_are_left_out() -> None:
    text = sample(7, ["main", "work"]) + sample(9, ["main"], process="9") + sample(8, ["main", "work"])
    assert folded(text, {7: "client backend", 8: "walwriter"}) == {
        "client backend;main;work": 1,
        "walwriter;main;work": 1,
    }
    born = fold(Samples(sample(30, ["main"], process="30"), {30: 7}, 0), {7}, {}, ALWAYS)
    assert born == {"other;main": 1}


def test_fewer_samples_are_taken_of_many_cores() -> None:
    assert frequency(2 * 5) == FREQUENCY
    assert frequency(48 * 20) == pytest.approx(200_000 // 960)
    assert frequency(48 * 7200) == MIN_FREQUENCY


@pytest.mark.deep("simulates many rounds, or waits for real processes")
@given(
    st.dictionaries(
        frames.map(lambda frames_of: ";".join(["role", *frames_of])), st.integers(1, 1000), min_size=1
    )
)
def test_quality_is_made_of_shares(stacks: dict[str, int]) -> None:
    found = profile(stacks, lost=7).quality
    assert found.samples == sum(stacks.values())
    assert all(0 <= share <= 1 for share in (found.shallow, found.unknown, found.lost))
    deep = {f"{stack};a;b;c": count for stack, count in stacks.items()}
    assert profile(deep).quality.shallow == 0


def test_what_is_doubtful_is_said() -> None:
    good = {"client backend;main;loop;work": 950, "client backend;main;loop": 30, "checkpointer;main;a;b": 20}
    assert profile(good).quality.warnings() == []
    assert profile({"role;main;a;b": 199}).quality.warnings() == ["only 199 samples"]
    broken = profile({"role;leaf": 300, "role;main;a;b": 700}).quality
    assert broken.warnings() == ["30 % of the stacks have fewer than 3 frames"]
    nameless = profile({"role;main;[unknown];[libc.so.6]": 300, "role;main;a;b": 700}).quality
    assert nameless.warnings() == ["20 % of the frames have no name"]
    behind_a_call_that_never_returns = profile({"role;main;[postgres];PostgresMain;exec": 1000}).quality
    assert behind_a_call_that_never_returns.unknown == 0
    assert profile(good, lost=100).quality.warnings() == ["9 % of the samples were lost"]


def test_rounds_merge_and_roles_part() -> None:
    first = profile({"client backend;main;work": 10, "checkpointer;main;write": 2}, queries=100, lost=1)
    two = profile({"client backend;main;work": 5, "client backend;main;idle": 5}, queries=200)
    both = merged([first, two])
    assert (both.samples, both.queries, both.lost) == (22, 300, 1)
    assert both.stacks["client backend;main;work"] == 15
    assert both.microseconds_per_sample == pytest.approx(1e6 / 1000 / 300)
    assert of_role(both, "checkpointer").stacks == {"checkpointer;main;write": 2}
    with pytest.raises(ValueError, match="no profile"):
        merged([])


def test_a_real_capture_folds_as_it_always_did() -> None:
    """What perf printed of an update-index on Postgres 18.6 (tests/suites/record.py)."""
    text = gzip.decompress((GOLDEN / "perf-script.txt.gz").read_bytes())
    roles = {
        int(thread): role for thread, role in json.loads((GOLDEN / "perf-roles.json").read_text()).items()
    }
    stacks = fold(Samples(text, {}, 0), roles.keys(), roles, ALWAYS)
    require_golden("perf-folded.txt", "".join(f"{stack} {n}\n" for stack, n in sorted(stacks.items())))
    assert {stack.split(";")[0] for stack in stacks} >= {"client backend"}
