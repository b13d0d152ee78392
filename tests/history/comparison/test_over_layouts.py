"""A session with layouts in the history: its verdicts, what people read of them, and what it is not."""

import json
import random
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select

from build.version import parse_version
from history.comparison.compare import compare
from history.comparison.result import Comparison
from history.comparison.verdict import Verdict
from history.open import open_store
from history.rendering.json_text import render_json
from history.rendering.notes import notes
from history.store.records import LAYOUT_SEEDS, LAYOUTS, SessionStatus
from history.store.resume import find_interrupted
from history.store.schema import nights
from history.store.writer import Store
from tests.history.handmade import a_build, run_record, session_start

BASE, CONTENDER = "postgres@17.11", "postgres@18.6"
LAID_OUT = {LAYOUTS: {"count": 3, "linker": "LLD 14.0.6"}, LAYOUT_SEEDS: {BASE: [1, 2, 3]}}
ROUNDS = 12
NAMES = tuple(map(parse_version, (BASE, CONTENDER)))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(tmp_path / "history.db")


def compared(store: Store, options: Mapping[str, Any]) -> Comparison:
    """Record ten steps in which layouts are 9, 3 and 6 % slower by luck, and compare them."""
    rng, luck = random.Random("layouts"), (0.91, 0.97, 0.94)
    session = store.start_session(replace(session_start(repetitions=ROUNDS), options=options))
    for position, number in product(range(1, 11), range(1, ROUNDS + 1)):
        contender = 1000 * luck[(number - 1) % 3] * rng.gauss(1, 0.004)
        for version, qps in ((BASE, 1000.0), (CONTENDER, contender)):
            step = f"step-{position}"
            run = run_record(
                {"qps": qps},
                version=version,
                step=step,
                step_position=position,
                repetition=number,
                position=number,
            )
            store.record_run(session, run)
    store.finish_session(session, SessionStatus.FINISHED)
    return compare(store, NAMES[0], NAMES[1:])


def verdicts(comparison: Comparison) -> set[Verdict | None]:
    return {step.judged.verdict for step in comparison.contenders[0].steps}


@pytest.mark.deep("hundreds of simulated sessions")
def test_three_lucky_layouts_are_no_regression(store: Store, tmp_path: Path) -> None:
    comparison = compared(store, LAID_OUT)
    assert verdicts(comparison) == {Verdict.INCONCLUSIVE}
    assert verdicts(compared(open_store(tmp_path / "other.db"), {})) == {Verdict.REGRESSION}


def test_people_read_how_many_layouts_it_rests_on(store: Store) -> None:
    comparison = compared(store, LAID_OUT)
    said = "\n".join(notes(comparison, comparison.contenders[0]))
    assert "12 rounds in 3 layouts a side" in said
    assert "98 % confidence together, by metric, for other layouts too" in said
    assert "calibrate" not in said, "a calibration says nothing of layouts"
    assert json.loads(render_json(comparison))["contenders"][0]["session"]["layouts"] == 3


def test_rounds_of_two_layouts_have_no_verdict(store: Store) -> None:
    start = replace(session_start(repetitions=3), options=LAID_OUT)
    session = store.start_session(start)
    for number in (1, 2, 4, 5):
        for version in (BASE, CONTENDER):
            store.record_run(session, run_record(version=version, repetition=number, position=number))
    store.finish_session(session, SessionStatus.FINISHED)
    (step,) = compare(store, NAMES[0], NAMES[1:]).contenders[0].steps
    assert step.judged.verdict is None
    assert step.judged.reason == "rounds of 2 layouts: a verdict needs 3"


@pytest.mark.deep("hundreds of simulated sessions")
def test_it_is_not_a_night(store: Store, tmp_path: Path) -> None:
    counts = []
    for options, history in ((LAID_OUT, store), ({}, open_store(tmp_path / "other.db"))):
        compared(history, options)
        with history.database.reading() as connection:
            counts.append(connection.execute(select(func.count()).select_from(nights)).scalar())
    assert counts == [0, 2]


@pytest.mark.parametrize(("count", "is_resumed"), [(3, True), (4, False), (None, False)])
def test_only_a_request_of_as_many_layouts_resumes_it(
    store: Store, count: int | None, is_resumed: bool
) -> None:
    session = store.start_session(replace(session_start("first"), options=LAID_OUT))
    store.finish_session(session, SessionStatus.INTERRUPTED)
    options = {LAYOUTS: {"count": count, "linker": "LLD 14.0.6"}, LAYOUT_SEEDS: {BASE: [7, 8, 9]}}
    again = replace(session_start("again"), options=options if count else {})
    with store.database.reading() as connection:
        found = find_interrupted(connection, again, [a_build()], datetime(2000, 1, 1, tzinfo=UTC))
    assert (found is not None) == is_resumed
