"""Long mode: blocks on servers that stay up, and when a step has enough of them."""

import pytest

from history.store.records import RunStatus
from runners.measuring.durations.deadline import Deadline
from runners.measuring.request import Request
from runners.measuring.sequential_verdicts import SequentialVerdicts
from suites.keys.profile import Mode
from suites.turns.warmth import Warmth
from tests.runners.measuring.journal import Journal
from tests.runners.measuring.test_rounds import NEW, OLD, STEPS, SUITE, carry_out


@pytest.mark.parametrize(("seconds", "blocks"), [(2.0, 1), (30.0, 3), (100.0, 10)])
def test_long_mode_keeps_the_servers_up_and_gives_both_as_many_ends_of_blocks(
    journal: Journal, seconds: float, blocks: int
) -> None:
    carry_out(journal, (OLD, NEW), 1, mode=Mode.LONG, seconds=seconds)
    slices = round(seconds / blocks / SUITE.profile("smoke").slice_seconds)
    for share in journal.shares:
        turns = [share.schedule.order[place : place + 4] for place in range(0, 2 * slices, 4)]
        assert {*turns} <= {(0, 1, 1, 0), (1, 0, 0, 1)}
    for step in range(len(STEPS)):
        orders = [share.schedule.order for share in journal.shares[step * blocks : (step + 1) * blocks]]
        for first, second in zip(orders[::2], orders[1::2], strict=False):
            assert second == tuple(1 - server for server in first), "both are at the ends as often"
    assert journal.rounds_of("18.6", "delete") == [(i, RunStatus.FINISHED) for i in range(1, blocks + 1)]
    assert not [line for line in journal.lines if line.startswith(("restore", "keep"))]
    # After the loading there is one reset of each version after each step, not after each block.
    assert journal.lines.count("reset 18.6") == 1 + len(STEPS)
    deletes = journal.shares[blocks:]
    assert [share.done_before for share in deletes] == [
        place * (share.transactions or 0) for place, share in enumerate(deletes)
    ]


def blocks_with_a_reset(journal: Journal) -> list[tuple[str, int]]:
    """Version and step, with the number of the block, of all runs that have the seconds of a reset."""
    return [
        (f"{record.build.release} {record.step}", record.repetition)
        for record in journal.records
        if record.measurement is not None and "reset_seconds" in record.measurement.values
    ]


def test_a_number_of_blocks_is_asked_for_as_rounds_are(journal: Journal) -> None:
    carry_out(journal, (OLD, NEW), 1, mode=Mode.LONG, seconds=100.0, blocks=4)
    assert [len(journal.rounds_of("18.6", step.name)) for step in STEPS] == [4, 4]
    assert {number for _, number in blocks_with_a_reset(journal)} == {4}


def test_a_server_that_dies_in_long_mode_is_out_of_the_session(journal: Journal) -> None:
    journal.dies_in = {"18.6 update-index": 1}
    (failure,) = carry_out(journal, (OLD, NEW), 1, mode=Mode.LONG, seconds=30.0)
    assert "18.6 update-index (block 1)" in failure
    assert {status for _, status in journal.rounds_of("18.6", "delete")} == {RunStatus.FAILED}
    assert {status for _, status in journal.rounds_of("17.11", "delete")} == {RunStatus.FINISHED}


def test_long_mode_ends_a_step_that_is_decided_and_resets_its_servers_then(journal: Journal) -> None:
    journal.speed = {"18.6": 0.7}
    carry_out(journal, (OLD, NEW), 3, mode=Mode.LONG, seconds=100.0, until_decided=True)
    for step in STEPS:
        assert journal.rounds_of("18.6", step.name) == [(i, RunStatus.FINISHED) for i in (1, 2, 3)]
    resets = [place for place, line in enumerate(journal.lines) if line == "reset 18.6"][1:]
    runs = [place for place, line in enumerate(journal.lines) if line.startswith("run")]
    assert [sum(run < reset for run in runs) for reset in resets] == [3, 6]
    assert {number for _, number in blocks_with_a_reset(journal)} == {3}
    assert len(blocks_with_a_reset(journal)) == len(STEPS) * 2


def test_the_reset_after_a_step_that_runs_out_of_time_is_recorded(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SequentialVerdicts, "open_steps", lambda self, steps, number: list(steps))
    monkeypatch.setattr(Deadline, "allows", lambda self, number: number <= 4)
    carry_out(journal, (OLD, NEW), 3, mode=Mode.LONG, seconds=100.0, until_decided=True)
    assert blocks_with_a_reset(journal) == [
        (f"{built.release} {step.name}", 4) for step in STEPS for built in (OLD, NEW)
    ]
    assert [len(journal.rounds_of("18.6", step.name)) for step in STEPS] == [4, 4]


def test_long_mode_measures_an_open_step_for_its_seconds_at_most(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SequentialVerdicts, "open_steps", lambda self, steps, number: list(steps))
    carry_out(journal, (OLD, NEW), 3, mode=Mode.LONG, seconds=100.0, until_decided=True)
    assert [len(journal.rounds_of("18.6", step.name)) for step in STEPS] == [10, 10]
    assert journal.lines.count("reset 18.6") == 1 + len(STEPS)


def test_long_mode_waits_for_no_verdict_on_a_server_that_died(journal: Journal) -> None:
    journal.dies_in = {"18.6 update-index": 1}
    carry_out(journal, (OLD, NEW), 3, mode=Mode.LONG, seconds=100.0, until_decided=True)
    assert [len(journal.rounds_of("17.11", step.name)) for step in STEPS] == [3, 3]
    assert journal.lines.count("reset 17.11") == 1 + len(STEPS)


def test_steps_of_long_mode_share_the_budget() -> None:
    request = Request(
        (OLD.version, NEW.version),
        SUITE,
        "io",
        STEPS,
        5,
        until_decided=True,
        budget_seconds=100.0,
        has_deadline=True,
    )
    now = [0.0]
    deadline = Deadline(request, 0.0, lambda: now[0])
    deadline.share_among(2)
    assert deadline.left_seconds == 50
    now[0] = 60.0
    assert not deadline.allows(1)
    deadline.share_among(1)
    assert deadline.left_seconds == 40
    assert deadline.allows(1)


def test_servers_warm_up_before_the_first_block_of_a_step_with_work_of_their_own(journal: Journal) -> None:
    smoke = SUITE.profile("smoke").model_copy(update={"warm_limit_seconds": 0.1})
    suite = SUITE.model_copy(update={"profiles": {**SUITE.profiles, "smoke": smoke}})
    carry_out(journal, (OLD, NEW), 1, suite=suite, mode=Mode.LONG, seconds=20.0)
    rounds = [share.round for share in journal.shares]
    assert rounds == [200_000, 200_001, 1, 2] * len(STEPS)
    *_, first, second, block, last = journal.shares
    assert first.schedule.order == (0, 1)
    done = [share.done_before for share in (first, second, block, last)]
    work = [share.transactions or 0 for share in (first, second, block, last)]
    assert done == [0, work[0], block.transactions, 2 * (block.transactions or 0)]
    assert work[0] + work[1] <= work[2] == work[3]
    lacking = tuple(
        f"the cache of postgres@{release} is not full (0M of 1M)" for release in ("17.11", "18.6")
    )
    assert journal.warmth == {step.name: Warmth(0.1, checkpoint=True, lacking=lacking) for step in STEPS}


def test_a_server_that_dies_while_it_warms_up_leaves_the_session(journal: Journal) -> None:
    smoke = SUITE.profile("smoke").model_copy(update={"warm_limit_seconds": 0.1})
    suite = SUITE.model_copy(update={"profiles": {**SUITE.profiles, "smoke": smoke}})
    journal.dies_in = {"18.6 update-index": 1}
    carry_out(journal, (OLD, NEW), 1, suite=suite, mode=Mode.LONG, seconds=20.0)
    assert {status for _, status in journal.rounds_of("18.6", "update-index")} == {RunStatus.FAILED}
    assert journal.rounds_of("17.11", "delete") == [(i, RunStatus.FINISHED) for i in (1, 2)]
