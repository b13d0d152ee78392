"""What moves most series of a box, or its base, is a note and no change; a commit is a change."""

import math
from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from benchmarks.simulation.boxes.shared_causes import COMMITS, NO_COMMITS, moves
from benchmarks.simulation.boxes.teams import Team, judged, quiet_team
from history.changes.boxes.shared_steps import MOVED, Cause, SharedStep
from history.changes.detector import DetectionReport
from history.rendering.changes import box_note_lines
from history.series.series import Night
from history.stats.shared_steps import CAP, all_moved, is_as_others, step_sizes
from history.store.records import Environment
from tests.history.watched import night

SIGMA = 0.01


def last_report(
    folder: Path, cause: Callable[[Team], None], looks: tuple[int, ...] = (40,), seed: int = 3
) -> DetectionReport:
    team = quiet_team((9970, seed))
    cause(team)
    return judged(folder / "history.db", team, looks)[-1]


def shared(report: DetectionReport) -> list[SharedStep]:
    return [note for note in report.notes if isinstance(note, SharedStep)]


@pytest.mark.deep("records and judges months of nights")
@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("box -3 %", "most series of 2 branches moved together"),
        ("base -3 %", "the base postgres@16 moved, and most series against it"),
        ("kernel", "most series of 2 branches moved together"),
        ("kernel without a marker", "most series of 2 branches moved together"),
    ],
)
def test_what_moves_a_box_or_its_base_is_one_note(name: str, what: str, tmp_path: Path) -> None:
    report = last_report(tmp_path, NO_COMMITS[name], looks=(20,))
    assert report.open == ()
    assert report.explained
    (note,) = shared(report)
    assert (note.environment.box, note.what) == ("box0", what)
    assert note.moved > 0.7 * note.series
    assert all(str(note) in (change.reason or "") for change in report.explained)


def test_a_marker_explains_what_is_dated_beside_it_with_one_branch_too(tmp_path: Path) -> None:
    report = last_report(tmp_path, NO_COMMITS["kernel, one branch"], looks=(60,), seed=4)
    assert report.open == ()
    assert "the machine changed" in (report.explained[0].reason or "")


@pytest.mark.deep("records and judges months of nights")
@pytest.mark.parametrize("seed", [1, 2, 6])
def test_a_kernel_that_moves_each_series_by_an_amount_of_its_own_leaves_nothing(
    seed: int, tmp_path: Path
) -> None:
    report = last_report(tmp_path, NO_COMMITS["kernel by N(0, 2 %)"], looks=(60,), seed=seed)
    assert report.open == ()
    assert report.explained


def test_a_marker_that_moved_nothing_explains_no_step_of_its_night(tmp_path: Path) -> None:
    report = last_report(tmp_path, COMMITS["a step by 4 % beside a marker that moved nothing"], looks=(60,))
    (change,) = report.open
    assert [member.key.step for member in change.members] == ["step-03"]


@pytest.mark.deep("records and judges months of nights")
def test_the_next_nights_know_it(tmp_path: Path) -> None:
    report = last_report(tmp_path, NO_COMMITS["box -3 %"], looks=(20, 60))
    assert (report.open, report.new, report.explained) == ((), (), ())


def test_a_season_of_a_box_is_no_step(tmp_path: Path) -> None:
    assert last_report(tmp_path, NO_COMMITS["season of 3 %"], seed=1).open == ()


def test_noise_of_a_box_that_has_grown_is_no_step(tmp_path: Path) -> None:
    report = last_report(tmp_path, NO_COMMITS["two weeks of twice the noise"], looks=(10,), seed=0)
    assert report.open == ()
    assert not shared(report)
    (change,) = report.explained
    assert change.reason == "box box0: the noise of qps had grown in all series"


@pytest.mark.deep("records and judges months of nights")
def test_a_step_in_noise_that_has_grown_is_a_change_once_it_has_lasted(tmp_path: Path) -> None:
    def both(team: Team) -> None:
        NO_COMMITS["two weeks of twice the noise"](team)
        team.logs[0, 1, 3, team.at :] -= 0.06

    (change,) = last_report(tmp_path, both, looks=(5, 40), seed=3).open
    assert {member.key.step for member in change.members} == {"step-03"}


@pytest.mark.deep("records and judges months of nights")
def test_a_commit_that_slows_every_step_of_its_branch_is_a_change(tmp_path: Path) -> None:
    report = last_report(tmp_path, COMMITS["a commit slows every step by 5 %"])
    assert not shared(report)
    assert not report.explained
    members = [member for change in report.open for member in change.members]
    assert {member.key.branch for member in members} == {"postgres@18"}
    assert {member.key.environment.box for member in members} == {"box0", "box1"}
    assert len({member.key.step for member in members}) == 10


@pytest.mark.deep("records and judges months of nights")
def test_a_commit_to_every_branch_is_no_box_because_another_box_shows_it(tmp_path: Path) -> None:
    report = last_report(tmp_path, COMMITS["a commit to every branch slows every step by 5 %"])
    assert (shared(report), report.explained) == ([], ())
    members = [member for change in report.open for member in change.members]
    shown = {(member.key.environment.box, member.key.branch) for member in members}
    assert shown == set(product(("box0", "box1"), ("postgres@17", "postgres@18")))
    assert len({member.series_id for member in members}) == 40


@pytest.mark.deep("records and judges months of nights")
def test_boxes_that_moved_in_one_night_in_ways_of_their_own_are_boxes(tmp_path: Path) -> None:
    report = last_report(tmp_path, NO_COMMITS["kernels of both boxes, no marker"], looks=(20,))
    assert report.open == ()
    assert {(note.environment.box, note.cause) for note in shared(report)} == {
        ("box0", Cause.BOX),
        ("box1", Cause.BOX),
    }


@pytest.mark.deep("records and judges months of nights")
def test_boxes_alike_whose_machines_changed_the_same_night_are_boxes(tmp_path: Path) -> None:
    def same_kernel(team: Team) -> None:
        moves(slice(None), slice(1, None), -0.03)(team)
        team.marked = (0, 1)

    report = last_report(tmp_path, same_kernel, looks=(20,))
    assert report.open == ()
    assert {note.cause for note in shared(report)} == {Cause.BOX}


@pytest.mark.deep("records and judges months of nights")
@pytest.mark.parametrize("name", ["a step by 10 % beside a kernel", "a step by 10 % beside box -3 %"])
def test_a_step_of_its_own_beside_it_is_a_change(name: str, tmp_path: Path) -> None:
    report = last_report(tmp_path, COMMITS[name])
    (change,) = report.open
    assert {(member.key.branch, member.key.step) for member in change.members} == {("postgres@17", "step-03")}
    assert {member.key.environment.box for member in change.members} == {"box0", "box1"}


def test_series_that_all_moved_are_told_from_some_that_moved_far() -> None:
    rng = np.random.default_rng(4)
    still, moved = rng.standard_normal(20_000), rng.standard_normal(20_000)
    moved[::5] += 10
    errors = np.ones(20_000)
    assert all_moved(still, errors) == pytest.approx(0.8, abs=0.02)
    assert all_moved(moved, errors) == pytest.approx(0.8 * 0.8 + 0.2 * CAP, abs=0.02)
    assert math.isnan(all_moved(still, np.full(20_000, np.nan)))


def test_steps_are_measured_at_their_night_through_outliers_gaps_and_correlation() -> None:
    logs = SIGMA * np.random.default_rng(1).standard_normal((10, 120))
    logs[:, 80:] -= 3 * SIGMA
    logs[2, 82] += 40 * SIGMA
    logs[3, 70:75] = np.nan
    steps = step_sizes(logs)
    assert np.median(steps.sizes[:, 80]) == pytest.approx(-3 * SIGMA, rel=0.2)
    middle = np.median(steps.distances[:, 20:110], axis=0)
    assert int(middle.argmax()) == 60
    assert middle[20] < MOVED
    assert steps.can_be_at(0, 80, 76, 84)
    assert not steps.can_be_at(0, 70, 76, 84)


def test_one_step_among_others_is_told_from_theirs() -> None:
    one_way = np.array([-0.03, -0.028, -0.032, -0.031, -0.029, math.nan])
    assert is_as_others(-0.033, 0.005, one_way)
    assert not is_as_others(-0.1, 0.005, one_way)
    assert not is_as_others(0.03, 0.005, one_way)
    both_ways = np.array([-0.03, 0.028, -0.022, 0.021, -0.029, 0.025])
    assert is_as_others(-0.03, 0.005, both_ways)
    assert not is_as_others(0.11, 0.005, both_ways)


def test_one_night_is_one_line_whatever_shows_it() -> None:
    where = [Environment(box, "write-heavy", "short") for box in ("db1", "db2")]
    since = [Night(number, night(number), "postgres@18.6", 1) for number in range(3)]
    shown = ("qps", Cause.BOX, "postgres@17")
    seen = [
        SharedStep(where[0], 1, *shown, since[0], ("a", "b"), -0.03, 0.03, 18, 20),
        SharedStep(where[1], 1, *shown, since[1], ("a", "b"), 0.001, 0.025, 17, 20),
    ]
    assert list(box_note_lines(seen)) == [
        f"boxes db1, db2 (write-heavy): most series of 2 branches moved together, since {night(0):%Y-%m-%d}: "
        "db1 18 of 20 of qps by -3.0 % in the median; db2 17 of 20 of qps by 2.5 % up or down in the median; "
        "no issue is opened"
    ]
