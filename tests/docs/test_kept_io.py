"""The page of declared memory and disk, and the history of its sessions."""

from collections.abc import Iterator

import pytest

from benchmarks.io.recorded_blocks import SIDES, drawn_figures, finished_sessions, recorded_steps
from benchmarks.io.throttled import CONDITIONS, CONTENDER, DISK, Steadiness, steadiness
from history.comparison.compare import compare
from history.comparison.options import CompareOptions
from history.open import open_reader
from history.store.reader import Reader
from tests.docs.result_tables import RESULTS, ratio_text, tables

PAGE = "io"


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
    for conditions, session in zip(CONDITIONS, sessions(kept, equal=False), strict=True):
        (step,) = steadiness(kept, *session).values()
        disk = str(DISK) if conditions.disk else "the whole disk"
        found.append({"disk": disk, "machine": "busy" if conditions.is_busy else "quiet"} | row_of(step))
    assert list(tables(PAGE, "disk")) == found


def test_equal_builds(kept: Reader) -> None:
    shown = [tuple(row.values()) for row in tables(PAGE, "session")]
    found = []
    for _, uid in sessions(kept, equal=True):
        (contender,) = compare(kept, SIDES[0], SIDES[1:], CompareOptions(session=uid)).contenders
        steps = {step.step: ratio_text(step.judged) for step in contender.steps}
        found.append((uid, *steps.values()))
    assert shown == found


def test_sessions_drawn_from_equal_builds_have_no_verdict(kept: Reader) -> None:
    recorded = [
        step for session, _ in sessions(kept, equal=True) for step in recorded_steps(kept, session, SIDES)
    ]
    blocks, verdicts = drawn_figures(recorded)
    text = (RESULTS / f"{PAGE}.md").read_text(encoding="utf-8")
    assert f"{verdicts.note.removeprefix('of ')} sessions drawn from their {blocks.value:.0f} blocks" in text
    assert verdicts.value == 0
