"""Sessions that go on where an interrupted one ended: what is measured, and what is shown of it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from build.progress import ProgressTask, Silent
from history.store.records import Run, RunStatus
from history.store.resume import Recorded, recorded
from runners.measuring.failures.policy import MAX_FAILURES
from suites.keys.profile import Mode
from tests.runners.measuring.journal import Journal
from tests.runners.measuring.test_rounds import NEW, OLD, STEPS, carry_out


def as_recorded(journal: Journal) -> Recorded:
    """What the history would hold of the journal's records."""
    return recorded(
        [
            Run(
                position,
                str(record.build.version),
                record.build.key,
                record.step,
                record.step_position,
                record.repetition,
                record.position,
                record.status,
                record.failure,
                record.measurement.values if record.measurement else {},
            )
            for position, record in enumerate(journal.records)
        ]
    )


@pytest.mark.parametrize("mode", [Mode.ROUNDS, Mode.LONG])
@pytest.mark.parametrize("records", [1, 2, 3, 5, 11])
def test_an_interrupted_session_goes_on_and_measures_nothing_twice(
    journal: Journal, records: int, mode: Mode
) -> None:
    options: dict[str, Any] = {"mode": mode, "seconds": 30.0}
    journal.dies_in = {"18.6 update-index": 1}

    class Interrupting(list[str]):
        def append(self, line: str) -> None:
            super().append(line)
            if len(journal.records) >= records:
                raise KeyboardInterrupt

    whole = journal.lines
    journal.lines = Interrupting()
    with pytest.raises(KeyboardInterrupt):
        carry_out(journal, (OLD, NEW), 3, **options)
    journal.lines = whole
    carry_out(journal, (OLD, NEW), 3, recorded=as_recorded(journal), **options)
    found = [(record.build.release, record.step, record.repetition) for record in journal.records]
    rounds = 3 if mode is Mode.ROUNDS else max(record.repetition for record in journal.records)
    assert sorted(found) == sorted(
        (release, step.name, number)
        for release in ("17.11", "18.6")
        for step in STEPS
        for number in range(1, rounds + 1)
    )
    positions = [record.position for record in journal.records]
    assert len(set(positions)) == len(positions)


class Shown(Silent):
    """Remembers what is shown of a session."""

    def __init__(self) -> None:
        super().__init__()
        self.unit, self.labels, self.counts = "", list[str](), list[tuple[float, float | None]]()

    @contextmanager
    def task(self, label: str, total: float | None = None, unit: str = "") -> Iterator[ProgressTask]:
        self.unit = unit
        yield self

    def update(self, done: float, total: float | None = None) -> None:
        self.counts.append((done, total))

    def rename(self, label: str) -> None:
        self.labels.append(label)

    def detail(self, text: str) -> None:
        pass


@pytest.mark.parametrize(
    ("mode", "unit", "counts"),
    [(Mode.ROUNDS, "rounds of steps", [(4, 6), (6, 6)]), (Mode.LONG, "blocks of steps", [(5, 6), (6, 6)])],
)
def test_what_was_recorded_before_is_not_shown_as_if_it_were_measured_now(
    journal: Journal, mode: Mode, unit: str, counts: list[tuple[float, float]]
) -> None:
    """The time left would be estimated by it, and be seconds."""
    options: dict[str, Any] = {"mode": mode, "seconds": 30.0}
    carry_out(journal, (OLD, NEW), 3, blocks=3, **options)
    first, second = (step.name for step in STEPS)
    journal.records[:] = [
        record for record in journal.records if record.step == first or record.repetition == 1
    ]
    shown = Shown()
    carry_out(journal, (OLD, NEW), 3, blocks=3, recorded=as_recorded(journal), progress=shown, **options)
    assert shown.unit == unit
    assert shown.counts == counts
    measured = [label for label in shown.labels if first in label or second in label]
    assert len(measured) == 2 + (mode is Mode.LONG), "a reset, in long mode"
    assert not [label for label in measured if first in label]


def test_a_version_that_was_left_out_of_a_step_stays_out(journal: Journal) -> None:
    journal.dies_in = {"18.6 update-index": 99}
    carry_out(journal, (OLD, NEW), 2)
    died = 99 - journal.dies_in["18.6 update-index"]
    carry_out(journal, (OLD, NEW), 3, recorded=as_recorded(journal))
    assert 99 - journal.dies_in["18.6 update-index"] == died == MAX_FAILURES
    assert journal.rounds_of("18.6", "update-index") == [(number, RunStatus.FAILED) for number in (1, 2, 3)]


def test_what_was_decided_before_needs_no_more_rounds(journal: Journal) -> None:
    journal.speed = {"18.6": 900.0}
    carry_out(journal, (OLD, NEW), 3, until_decided=True)
    runs = len([line for line in journal.lines if line.startswith("run")])
    carry_out(journal, (OLD, NEW), 3, until_decided=True, recorded=as_recorded(journal))
    assert len([line for line in journal.lines if line.startswith("run")]) == runs
