"""Folded stacks: roles, windows of time, quality, and a real capture of perf."""

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from build.home import locate
from build.inferno import VERSION, find_inferno
from suites.profiling.folding import Samples, by_role, collapse, descendants, fold, within
from suites.profiling.output import in_a_sentence
from suites.profiling.perf import FREQUENCY, MIN_FREQUENCY, PerfError, frequency
from suites.profiling.stacks import OTHER, StepProfile, merged, of_role
from tests.suites.golden import GOLDEN, require_golden

names = st.text(st.characters(categories=("L", "N"), include_characters="_:[]<>.~"), min_size=1, max_size=12)
frames = st.lists(names, max_size=8)


def profile(stacks: dict[str, int], queries: float = 1000, lost: int = 0) -> StepProfile:
    return StepProfile("cpu-clock", 1000, queries, lost, stacks)


@given(st.lists(st.tuples(st.integers(1, 4), frames, st.integers(1, 100)), max_size=30))
def test_every_sample_goes_to_the_role_of_its_thread(samples: list[tuple[int, list[str], int]]) -> None:
    roles = {1: "client backend", 2: "checkpointer", 3: "client backend"}
    text = "".join(
        f"{';'.join([f'my comm-{thread}/{thread}', *inner])} {count}\n" for thread, inner, count in samples
    )
    stacks = by_role(text, roles, {1, 2, 3, 4})
    assert sum(stacks.values()) == sum(count for *_, count in samples)
    for thread, inner, _ in samples:
        assert ";".join([roles.get(thread, OTHER), *inner]) in stacks


@pytest.mark.parametrize("line", ["postgres;main 3", "postgres-1/1;main three", "postgres-1/1;main", ""])
def test_a_line_that_is_no_stack_of_a_thread_is_refused(line: str) -> None:
    with pytest.raises(PerfError, match="not a folded stack"):
        by_role(f"{line}\n", {}, {1})


def test_only_samples_within_a_window_count() -> None:
    sample = b"postgres     7/7      %s: cpu-clock: \n\t  401136 main (/bin/postgres)\n\n"
    text = b"".join(sample % moment for moment in (b"9.999999", b"10.000000", b"10.5", b"11.000000", b"20.1"))
    kept = within(text, [(10.0, 11.0), (20.0, 21.0)])
    assert kept == b"".join(sample % moment for moment in (b"10.000000", b"10.5", b"20.1"))
    assert within(text, []) == b""


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
def test_a_process_that_is_gone_does_not_cost_the_profile(
    nameless: bytes, first: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """inferno panics when it cannot tell the event of the first sample."""
    inferno = find_inferno(locate())
    if inferno is None:
        pytest.skip(f"inferno {VERSION} is not compiled: ./tidemark setup")
    monkeypatch.setenv("TIDEMARK_HOME", str(tmp_path))
    sample = b"%s10.5: cpu-clock:I: \n\t  401136 main (/bin/postgres)\n\n"
    whole, gone = sample % b"a name 7/7      ", sample % nameless
    text = gone + whole if first else whole + gone
    if first and nameless.startswith(b":-1"):
        with pytest.raises(PerfError) as caught:
            collapse(text, inferno)
        assert caught.value.what == (
            "inferno cannot fold the samples: inferno panicked: assertion failed: "
            "self.event_filter.is_some() (more in logs/profiles.log)"
        )
        assert "panicked at" in (tmp_path / "logs/profiles.log").read_text()
    found = fold(Samples(text, {}, 0), inferno, {7}, {7: "client backend"}, [(10.0, 11.0)])
    assert found == {"client backend;main": 1}


def test_a_header_has_a_process_an_event_and_maybe_a_period() -> None:
    for header in (
        b"postgres 7/7 10.5: cpu-clock:I: ",
        b":7 7/7 10.5: 250000 cycles: ",
        b"io worker 7/8  10.5:  1 x:",
    ):
        text = header + b"\n\t 401136 main (/bin/postgres)\n\n"
        assert within(text, [(10.0, 11.0)]) == text
    assert within(b"postgres 7/7 10.5:\n\t 401136 main (/bin/postgres)\n\n", [(10.0, 11.0)]) == b""


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
    text = "postgres-7/7;main;work 3\npostgres-8/8;main;work 4\nsysbench-9/9;main 5\n?-?/?;main 6\n"
    with pytest.raises(PerfError, match="not a folded stack"):
        by_role(text, {}, {7})
    text = text.replace("?-?/?", "perf-?/10")
    assert by_role(text, {7: "client backend", 8: "walwriter"}, {7, 8}) == {
        "client backend;main;work": 3,
        "walwriter;main;work": 4,
    }


def test_fewer_samples_are_taken_of_many_cores() -> None:
    assert frequency(2 * 5) == FREQUENCY
    assert frequency(48 * 20) == pytest.approx(200_000 // 960)
    assert frequency(48 * 7200) == MIN_FREQUENCY


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
    assert broken.warnings() == ["30% of the stacks have fewer than 3 frames"]
    nameless = profile({"role;main;[unknown];[libc.so.6]": 300, "role;main;a;b": 700}).quality
    assert nameless.warnings() == ["20% of the frames have no name"]
    behind_a_call_that_never_returns = profile({"role;main;[postgres];PostgresMain;exec": 1000}).quality
    assert behind_a_call_that_never_returns.unknown == 0
    assert profile(good, lost=100).quality.warnings() == ["9% of the samples were lost"]


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
    inferno = find_inferno(locate())
    if inferno is None:
        pytest.skip(f"inferno {VERSION} is not compiled: ./tidemark setup")
    text = gzip.decompress((GOLDEN / "perf-script.txt.gz").read_bytes())
    roles = {
        int(thread): role for thread, role in json.loads((GOLDEN / "perf-roles.json").read_text()).items()
    }
    stacks = by_role(collapse(text, inferno), roles, roles.keys())
    require_golden("perf-folded.txt", "".join(f"{stack} {n}\n" for stack, n in sorted(stacks.items())))
    assert {stack.split(";")[0] for stack in stacks} >= {"client backend"}


@pytest.mark.parametrize("line", ["postgres-1/1;main ²", f"postgres-1/1;main {'9' * 5000}"])
def test_a_count_in_other_digits_or_in_thousands_is_refused(line: str) -> None:
    with pytest.raises(PerfError, match="not a folded stack"):
        by_role(f"{line}\n", {}, {1})
