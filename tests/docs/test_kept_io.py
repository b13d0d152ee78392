"""The page of declared memory and disk, and the history of its sessions."""

import random
from collections.abc import Iterator

import pytest

from history.comparison.compare import compare
from history.comparison.options import CompareOptions
from history.open import open_reader
from history.store.reader import Reader
from tests.docs.recorded_blocks import (
    BLOCKS,
    CONTENDER,
    DRAWN,
    SIDES,
    Block,
    RecordedStep,
    Steadiness,
    drawn_verdicts,
    finished_sessions,
    recorded_steps,
    steadiness,
)
from tests.docs.result_tables import RESULTS, ratio_text, tables

PAGE = "io"
CONDITIONS = (("500iops", "quiet"), ("the whole disk", "quiet"), ("500iops", "busy"))
"""The disk and the machine of each session that compares two versions."""


@pytest.fixture(scope="module")
def kept() -> Iterator[Reader]:
    with open_reader(RESULTS / f"{PAGE}.db.gz") as reader:
        yield reader


def sessions(kept: Reader, *, equal: bool) -> list[tuple[int, str]]:
    """The ids and names of the sessions of one build, or of those with a throttled disk and beside them."""
    found = finished_sessions(kept)
    return [
        session
        for session in found
        if (str(CONTENDER) in {run.version for run in kept.runs(session[0])}) is not equal
    ]


def row_of(found: Steadiness) -> dict[str, str]:
    return {
        "17.11, queries/s": f"{found.base:,.0f}",
        "its noise, %": f"{100 * found.base_noise:.1f}",
        "noise of the ratio, %": f"{100 * found.pair_noise:.1f}",
        "18.6 over 17.11": f"{found.ratio:.3f}",
    }


def test_noise_with_and_without_a_declared_disk(kept: Reader) -> None:
    found = []
    for (disk, machine), session in zip(CONDITIONS, sessions(kept, equal=False), strict=True):
        (step,) = steadiness(kept, *session).values()
        found.append({"disk": disk, "machine": machine} | row_of(step))
    assert list(tables(PAGE, "disk")) == found


def test_equal_builds(kept: Reader) -> None:
    shown = [tuple(row.values()) for row in tables(PAGE, "session")]
    found = []
    for _, uid in sessions(kept, equal=True):
        (contender,) = compare(kept, SIDES[0], SIDES[1:], CompareOptions(session=uid)).contenders
        steps = {step.step: ratio_text(step.judged) for step in contender.steps}
        found.append((uid, *steps.values()))
    assert shown == found


@pytest.mark.deep("figures of the documents are computed again from whole kept histories")
def test_sessions_drawn_from_equal_builds_have_no_verdict(kept: Reader) -> None:
    recorded = [
        step for session, _ in sessions(kept, equal=True) for step in recorded_steps(kept, session, SIDES)
    ]
    blocks = sum(len(step.blocks) for step in recorded)
    text = (RESULTS / f"{PAGE}.md").read_text(encoding="utf-8")
    assert f"{DRAWN} sessions drawn from their {blocks} blocks" in text
    assert drawn_verdicts(recorded) == []


@pytest.mark.deep("figures of the documents are computed again from whole kept histories")
@pytest.mark.parametrize(("factor", "found"), [(1.0, range(1)), (1.2, range(DRAWN, DRAWN + 1))])
def test_every_verdict_on_drawn_blocks_is_counted(factor: float, found: range) -> None:
    noise = random.Random(7)
    blocks = [
        Block([side * noise.lognormvariate(0, 0.02) for side in (1000, 1000 * factor)], [False, False])
        for _ in range(BLOCKS)
    ]
    blocks[4] = Block([1000, 100], [False, True])
    recorded = [RecordedStep(step, blocks) for step in ("update-index", "insert")]
    assert len(drawn_verdicts(recorded)) in found
