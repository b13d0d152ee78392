"""Errors, refusals and stalls of a contender, as compare.py tells them and as they set the exit code."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from build.version import parse_version
from history.comparison.compare import compare, exit_code
from history.comparison.findings.rare_events import rare_events
from history.comparison.options import CompareOptions
from history.comparison.pairs import pair_steps
from history.comparison.result import Comparison
from history.metric_words import WORDS
from history.open import open_store
from history.rendering.json_text import render_json
from history.rendering.notes import notes
from history.rendering.tables.costs import costs_legend
from history.store.records import Run, RunStatus, SessionStatus
from runners.trying.answer import TryAnswer, markdown
from runners.trying.sides import Sides
from suites.metrics import EVENTS
from tests.history.handmade import NIGHT, run_record, session_start

BASE, CONTENDER = "postgres@18.5", "postgres@18.6"
WOBBLE = (0.999, 1.0, 1.002, 0.998, 1.001)

Values = Mapping[str, Sequence[float]]


def compared(
    folder: Path, steps: Mapping[str, tuple[Values, Values]], rounds: int = 3, mode: str = "rounds"
) -> Comparison:
    """Compare equally fast builds, whose rounds have the values of their step besides."""
    with open_store(folder / "history.db", clock=lambda: NIGHT) as store:
        start = session_start(repetitions=rounds)
        session = store.start_session(replace(start, options={**start.options, "mode": mode}))
        for position, (step, sides) in enumerate(steps.items(), start=1):
            for version, own in zip((BASE, CONTENDER), sides, strict=True):
                for number, wobble in enumerate(WOBBLE[:rounds]):
                    values = {"qps": 4000 * wobble, "transactions": 39_000.0, "seconds": 10.0}
                    values |= {name: rounds[number] for name, rounds in own.items()}
                    run = run_record(
                        values, version=version, step=step, step_position=position, repetition=number + 1
                    )
                    store.record_run(session, run)
        store.finish_session(session, SessionStatus.FINISHED)
        return compare(store, parse_version(BASE), [parse_version(CONTENDER)], CompareOptions())


def told(comparison: Comparison) -> list[str]:
    (contender,) = comparison.contenders
    steps = [step.step for step in contender.steps]
    return [
        line
        for line in notes(comparison, contender)
        if line.split(":")[0] in steps and (", base " in line or "slowest" in line)
    ]


def test_errors_that_the_base_does_not_have_are_a_regression(tmp_path: Path) -> None:
    none = {"errors": [0, 0, 0], "failed_serialisation": [0, 0, 0], "failed_deadlock": [0, 0, 0]}
    some = {"errors": [120, 102, 144], "failed_serialisation": [120, 102, 144], "failed_deadlock": [0, 0, 0]}
    found = compared(tmp_path, {"transfer": (none, some)})
    assert told(found) == [
        "transfer: 366 of 117,366 transactions failed with a serialisation failure (40001), base 0 of 117,000"
    ]
    assert exit_code(found) == 1


def test_a_try_answers_that_there_are_more_errors(tmp_path: Path) -> None:
    found = compared(tmp_path, {"transfer": ({"errors": [0, 0, 0]}, {"errors": [120, 102, 144]})})
    sides = Sides(parse_version(BASE), parse_version(CONTENDER), "a patch")
    answer = TryAnswer(sides, None, found, 5.0)
    assert answer.exit_code == 1
    assert answer.headline == "Worse: more errors in transfer."
    assert "- transfer: 366 of 117,000 transactions failed or were begun again" in markdown(
        answer, "page.html"
    )


def test_a_try_says_of_each_event_what_there_are_more_of(tmp_path: Path) -> None:
    assert {name for name, words in WORDS.items() if words.event and words.events} == {*EVENTS}
    none = {"errors": [0, 0, 0], "reset_dead_items": [2000, 2040, 2010], "reset_dead_items_left": [0, 0, 0]}
    some = {**none, "errors": [120, 102, 144], "reset_dead_items_left": [2000, 2040, 2010]}
    found = compared(tmp_path, {"transfer": (none, some), "insert": ({"errors": [0, 0, 0]}, some)})
    sides = Sides(parse_version(BASE), parse_version(CONTENDER), "a patch")
    assert TryAnswer(sides, None, found, 5.0).headline == (
        "Worse: more errors in transfer, insert, more dead rows left in indexes in transfer."
    )


def test_history_that_purge_left_is_worse(tmp_path: Path) -> None:
    """A few transactions are always left, of which none counts."""
    base = {"reset_history_left": [0, 0, 0], "reset_history_after": [3, 99, 40]}
    left = {"reset_history_left": [812, 790, 850], "reset_history_after": [812, 790, 850]}
    found = compared(tmp_path, {"transfer": (base, left)})
    assert told(found) == [
        "transfer: 2,452 of 117,000 transactions left old row versions that purge did not remove in time,"
        " base 0 of 117,000"
    ]
    assert exit_code(found) == 1


def test_fewer_errors_than_the_base_are_told_and_are_no_regression(tmp_path: Path) -> None:
    found = compared(tmp_path, {"transfer": ({"errors": [120, 102, 144]}, {"errors": [0, 1, 0]})})
    assert told(found) == [
        "transfer: 1 of 117,000 transactions failed or were begun again, base 366 of 117,000"
    ]
    assert exit_code(found) == 0


@pytest.mark.parametrize(
    ("errors", "is_told"), [([0, 1, 0], False), ([2, 2, 2], False), ([3, 2, 2], True), ([7, 0, 0], True)]
)
def test_few_errors_are_no_line_of_the_first_table(
    tmp_path: Path, errors: Sequence[float], is_told: bool
) -> None:
    found = compared(tmp_path, {"transfer": ({"errors": [0, 0, 0]}, {"errors": errors})})
    line = (
        f"transfer: {sum(errors)} of 117,000 transactions failed or were begun again, base 0 of 117,000: "
        "too few to tell from chance"
    )
    (contender,) = found.contenders
    assert told(found) == [line] * is_told
    assert ("few_errors", not is_told) in {
        (name, bool(value)) for name, value in json.loads(render_json(found))["contenders"][0].items()
    }
    assert (line in costs_legend(contender)) is not is_told
    assert exit_code(found) == 0


def test_more_refusals_are_a_regression(tmp_path: Path) -> None:
    found = compared(
        tmp_path, {"pay": ({"refused_transactions": [30, 31, 33]}, {"refused_transactions": [90, 81, 97]})}
    )
    assert told(found) == [
        "pay: 268 of 117,000 transactions were ended by the application without committing, "
        "base 94 of 117,000"
    ]
    assert exit_code(found) == 1


def stalls(seconds: Sequence[float], shorter: Sequence[float], slowest: float) -> Values:
    """Seconds beyond 200 and 100 ms, and those beyond shorter limits, with the slowest transaction."""
    zero, all_of_them = [0.0] * len(seconds), [10.0] * len(seconds)
    return {
        "seconds_beyond_10_ms": all_of_them,
        "seconds_beyond_20_ms": [min(10.0, a + b) for a, b in zip(seconds, shorter, strict=True)],
        "seconds_beyond_100_ms": seconds,
        "seconds_beyond_200_ms": seconds,
        "seconds_beyond_500_ms": zero,
        "latency_max_ms": [slowest] * len(seconds),
    }


@pytest.mark.parametrize(("mode", "noun"), [("rounds", "round"), ("long", "block")])
def test_a_wait_every_few_seconds_is_a_regression(tmp_path: Path, mode: str, noun: str) -> None:
    """Mean, p99 and throughput do not show 250 ms in two seconds of three rounds."""
    steps = {"update": (stalls([0, 0, 0], [2, 1, 3], 24), stalls([5, 4, 5], [1, 2, 3], 262))}
    found = compared(tmp_path, steps, mode=mode)
    assert told(found) == [
        "update: 14 of 30 seconds had a transaction of more than 200 ms, base 0 of 30; "
        f"the slowest took 262 ms in {noun} 1, base 24 ms in {noun} 1"
    ]
    assert f"paired {noun}s, geometric" in costs_legend(found.contenders[0])[0]
    assert exit_code(found) == 1


def test_stalls_of_both_are_nothing(tmp_path: Path) -> None:
    found = compared(
        tmp_path, {"update": (stalls([5, 4, 6], [2, 1, 3], 224), stalls([5, 4, 5], [1, 2, 3], 262))}
    )
    assert (told(found), exit_code(found)) == ([], 0)


@pytest.mark.deep("equal builds have no finding in hundreds of simulated sessions")
@pytest.mark.parametrize("rounds", [3, 5])
def test_equal_builds_are_clean(rounds: int) -> None:
    """Ten steps with rare errors, common retries and stalls of the machine, in which rates move by 20 %."""
    random, found = np.random.default_rng(11), 0

    def counts(rate: float) -> list[float]:
        return [float(count) for count in random.poisson(rate * random.gamma(25, 1 / 25, size=rounds))]

    def runs(step: int, version: str) -> Iterator[Run]:
        retried, failed, stalled = counts(300.0 * step), counts(0.3 * step), counts(0.5 * step)
        for number in range(rounds):
            values = {
                "transactions": 39_000.0,
                "seconds": 10.0,
                "retried_deadlock": retried[number],
                "retried_serialisation": failed[number],
                "seconds_beyond_50_ms": min(10.0, stalled[number]),
            }
            finished = RunStatus.FINISHED
            yield Run(0, version, "", f"step {step}", step, number + 1, 0, finished, None, values)

    for _ in range(400):
        session = [run for step in range(1, 11) for side in ("old", "new") for run in runs(step, side)]
        found += any(events.is_decided for events in rare_events(pair_steps(session, "old", "new")))
    assert found <= 1
