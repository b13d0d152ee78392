"""Reasons of disturbed rounds, summed up."""

import re

from hypothesis import given
from hypothesis import strategies as st

from history.comparison.warnings import (
    Disturbed,
    by_reason,
    disturbed_rounds,
    ranges,
    remeasured_rounds,
    steps_and_rounds,
    warnings_of_runs,
)
from history.store.records import DroppedRound, Run, RunStatus

STEAL = "the host withheld {} % of the CPU time that was wanted (limit 2.0 %)"
OTHERS = "other processes used {} % of a core (limit 10.0 %): most of it {}"


@given(st.sets(st.integers(1, 60)))
def test_numbers_say_each_round_once(rounds: set[int]) -> None:
    said: list[int] = []
    for part in re.findall(r"[\d-]+", ranges(rounds)):
        first, _, last = part.partition("-")
        said += range(int(first), int(last or first) + 1)
    assert said == sorted(rounds)
    assert ranges([3, 1, 2, 7, 8]) == "1-3, 7, 8"


def test_figures_become_ranges_and_culprits_are_left_out() -> None:
    reasons = [OTHERS.format(share, who) for share, who in ((34.0, "cron (812)"), (9.5, "apt (7), dpkg (8)"))]
    found = by_reason(Disturbed("insert", number, reason) for number, reason in enumerate(reasons, start=1))
    assert list(found) == ["other processes used 9.5 to 34.0 % of a core"]


def test_reasons_of_one_kind_are_together_in_the_order_they_came() -> None:
    texts = [STEAL.format(5), "processors were throttled: cpu 3 grew too hot", STEAL.format(5)]
    found = by_reason(Disturbed("insert", number, text) for number, text in enumerate(texts, start=1))
    assert [(reason, steps_and_rounds(rounds)) for reason, rounds in found.items()] == [
        ("the host withheld 5 % of the CPU time that was wanted", "insert 1, 3"),
        ("processors were throttled", "insert 2"),
    ]


def test_both_versions_of_a_round_are_one_disturbance_and_a_round_dropped_twice_is_two() -> None:
    warnings = ("disturbed: " + STEAL.format(5), "the reset took too long")
    runs = [
        Run(0, version, "", "insert", 1, 4, 0, RunStatus.FINISHED, None, {}, warnings)
        for version in ("postgres@17.11", "postgres@18.6")
    ]
    assert disturbed_rounds(runs) == [Disturbed("insert", 4, STEAL.format(5))]
    dropped = DroppedRound("insert", 4, f"{STEAL.format(5)}; {OTHERS.format(50, 'cron')}", {})
    assert len(remeasured_rounds([dropped, dropped])) == 4


def test_the_output_of_a_program_in_an_old_warning_is_not_repeated() -> None:
    text = (
        "no profile: inferno cannot fold the samples\n  to do: thread 'main' panicked at perf.rs:192\n0: main"
    )
    run = Run(0, "postgres@18.6", "", "insert", 1, 4, 0, RunStatus.FINISHED, None, {}, (text,))
    assert list(warnings_of_runs([run])) == [
        "postgres@18.6, insert 4: no profile: inferno cannot fold the samples"
    ]
