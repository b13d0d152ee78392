"""What looks changed tonight: rare when nothing is, and held against the right night."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks.simulation.vectorised import IMPROVEMENT, REGRESSION, run_suites
from history.changes import repository
from history.changes.confirmation import CONFIDENCE, METRIC_CONFIDENCE, ConfirmationRequest
from history.changes.confirmation.anomaly_score import (
    BranchLogRatios,
    RoundNoise,
    ScoredSeries,
    tonight_probabilities,
)
from history.changes.confirmation.suspects import FALSE_SUSPECTS_A_NIGHT, ScreenedNight, find_suspects
from history.series.matrix import SeriesMatrix
from history.series.series import Night
from history.stats.repeated_intervals import Design
from history.store.records import Environment, SessionStatus
from tests.history.commits import BASE, BRANCH, Commits, commit
from tests.history.handmade import NIGHT, run_record, session_start
from tests.history.watched import dated, night

PLACE = Environment("db1", "write-heavy", "short relaxed")
SLOW = {"insert": 0.93}
SERIES = 40
"""Of a box, in simulated nights."""


@pytest.fixture
def commits(tmp_path: Path) -> Iterator[Commits]:
    with dated(tmp_path / "history.db", Commits) as commits:
        yield commits


def tonight(commits: Commits) -> ScreenedNight | None:
    with commits.store.database.reading() as connection:
        return find_suspects(connection, PLACE, BRANCH, repository.load(connection), 0.02)


def suspected(commits: Commits) -> set[str]:
    found = tonight(commits)
    assert found is not None
    return {suspect.step for suspect in found.suspects}


@pytest.mark.deep("records and judges months of nights")
@pytest.mark.parametrize("quiet", [1, 2, 3, 8, 50])
def test_a_slow_down_is_suspected_after_however_many_nights(commits: Commits, quiet: int) -> None:
    commits.more(quiet)
    commits.more(1, {"insert": 0.9})
    found = tonight(commits)
    assert found is not None
    assert {suspect.step for suspect in found.suspects} == {"insert"}
    assert {suspect.before.version for suspect in found.suspects} == {commit(quiet)}
    assert {suspect.metric for suspect in found.suspects} == {"qps", "server_cpu_us_per_op"}
    assert found.night.version == commit(quiet + 1)


def test_an_improvement_is_too(commits: Commits) -> None:
    commits.more(4)
    commits.more(1, {"insert": 1.08})
    assert suspected(commits) == {"insert"}


def test_one_that_is_lost_is_suspected_of_a_slow_down(commits: Commits) -> None:
    faster = {"insert": 1.08}
    commits.more(4)
    commits.more(1, faster)
    commits.confirm(faster)
    commits.judge()
    commits.more(2, faster)
    commits.more(1)
    found = tonight(commits)
    assert found is not None
    assert found.returned == ()
    assert ("insert", commit(7)) in {(suspect.step, suspect.before.version) for suspect in found.suspects}


def test_what_is_less_than_half_of_what_matters_is_not(commits: Commits) -> None:
    commits.random.lognormvariate = lambda mu, sigma: 1.0  # type: ignore[method-assign]
    commits.more(4)
    commits.more(1, {"insert": 0.992, "delete": 0.985})
    assert suspected(commits) == {"delete"}


def written(commits: Commits, nights: int, base: float, factor: float) -> None:
    """So many nights in which a branch writes `factor` times the KiB per query of its base."""
    for _ in range(nights):
        commits.count += 1
        new = commit(commits.count)
        options = {"versions": [BASE, new], "branches": {new: BRANCH}}
        session = commits.store.start_session(
            replace(session_start(f"night-{commits.count}"), options=options)
        )
        for version, kib in ((BASE, base), (new, base * factor)):
            for number in (1, 2, 3):
                values = {
                    name: value * commits.random.lognormvariate(0, 0.01)
                    for name, value in (("qps", 1000.0), ("server_written_kb_per_op", kib))
                }
                commits.store.record_run(session, run_record(values, version=version, repetition=number))
        commits.store.finish_session(session, SessionStatus.FINISHED)


@pytest.mark.deep("records and judges months of nights")
@pytest.mark.parametrize(("base", "is_news"), [(0.01, False), (10.0, True)])
def test_three_times_next_to_nothing_is_neither_asked_nor_told(
    commits: Commits, base: float, is_news: bool
) -> None:
    written(commits, 45, base, 1.0)
    written(commits, 1, base, 3.0)
    found = tonight(commits)
    assert found is not None
    assert bool(found.suspects) is is_news
    written(commits, 8, base, 3.0)
    assert bool(commits.judge().open) is is_news


def test_one_night_or_one_commit_is_nothing_to_hold_against(commits: Commits) -> None:
    assert tonight(commits) is None
    commits.more(1)
    assert tonight(commits) is None
    commits.more(1, SLOW, version=commit(1))
    assert tonight(commits) is None


def test_a_commit_that_was_measured_again_is_held_against_the_one_before_it(commits: Commits) -> None:
    commits.more(3)
    commits.more(1, {"insert": 0.9})
    commits.more(1, {"insert": 0.9}, version=commit(4))
    found = tonight(commits)
    assert found is not None
    assert {(suspect.step, suspect.before.version) for suspect in found.suspects} == {("insert", commit(3))}
    assert [night.version for night in found.of_version] == [commit(4), commit(4)]


def test_a_night_that_nothing_confirmed_is_passed_over(commits: Commits) -> None:
    commits.more(6)
    commits.more(2, {"insert": 0.9})
    found = tonight(commits)
    assert found is not None
    assert {suspect.before.version for suspect in found.suspects} == {commit(6)}


@pytest.mark.deep("records and judges months of nights")
def test_a_step_too_small_for_one_night_is_suspected_within_a_week(commits: Commits) -> None:
    """Two standard deviations, on a box with so many series that one night would have to be at four."""
    with commits.store.database.writing() as connection:
        connection.exec_driver_sql(
            "INSERT INTO series (box, suite, configuration, branch, step, metric, step_position)"
            " WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)"
            " SELECT 'db1', 'other', 'short', 'x', i, 'qps', i FROM n"
        )
    commits.more(150)
    nights = 0
    while "insert" not in suspected(commits):
        commits.more(1, {"insert": 0.984})
        nights += 1
        assert nights <= 9
    found = tonight(commits)
    assert found is not None
    assert {suspect.before.started_at <= night(150) for suspect in found.suspects} == {True}
    commits.confirm()  # as fast as before: the same nights are no reason to measure it again
    commits.more(1, {"insert": 0.984})
    assert "insert" not in suspected(commits)


def test_after_a_change_the_new_level_counts(commits: Commits) -> None:
    commits.more(3)
    commits.more(1, {"insert": 0.9})
    commits.confirm({"insert": 0.9})
    commits.judge()
    assert suspected(commits) == {"insert"}  # the same night is looked at in the same way as before
    commits.more(1, {"insert": 0.9})
    assert suspected(commits) == set()
    commits.more(1, {"insert": 0.8})
    assert suspected(commits) == {"insert"}


def test_what_a_confirmed_change_left_undecided_is_not_asked_again(commits: Commits) -> None:
    """A cost that moved with its step, and whose interval was too wide in the rounds of that night."""
    commits.more(3)
    commits.more(1, {"insert": 0.9})
    commits.confirm({"insert": 0.9})
    with commits.store.database.writing() as connection:
        connection.exec_driver_sql(
            "DELETE FROM confirmations WHERE series_id IN (SELECT id FROM series WHERE metric <> 'qps')"
        )
    (change,) = commits.judge().new
    assert {member.key.metric for member in change.members} == {"qps"}
    commits.more(1, {"insert": 0.9})
    assert suspected(commits) == set()
    # One that only nights speak for has had no rounds that could have decided the cost.
    raised = replace(change, members=tuple(replace(member, confirmed=None) for member in change.members))
    with commits.store.database.reading() as connection:
        found = find_suspects(connection, PLACE, BRANCH, [raised], 0.02)
    assert found is not None
    assert {suspect.metric for suspect in found.suspects} == {"server_cpu_us_per_op"}
    commits.more(1, {"insert": 0.9, "delete": 0.9})
    assert suspected(commits) == {"delete"}
    commits.more(1, {"insert": 0.8})
    assert suspected(commits) == {"insert"}


def test_steps_of_a_group_are_looked_at_together(commits: Commits) -> None:
    panel = matrix(np.random.default_rng(8).standard_normal((8, 31)) * 0.005)
    panel.ratios[[0, 2, 4], -1] = 0.99  # throughput of three steps, two standard deviations
    groups = {"step 0": "updates", "step 1": "updates", "step 2": "updates", "step 3": "alone"}
    line = BranchLogRatios(panel, (), groups)
    assert line.rows[8:] == [ScoredSeries("qps", ("step 0", "step 1", "step 2"), (0, 2, 4))]
    found = tonight_probabilities(line, Rounds(panel, np.random.default_rng(1), 0.01))
    assert found[8] < min(found[[0, 2, 4]]) / 2
    commits.more(12)
    commits.more(1, {"update-one": 0.968, "update-index": 0.968})
    assert suspected(commits) == {"update-one", "update-index"}


def test_a_change_that_looks_gone_is_held_against_the_night_before_it(commits: Commits) -> None:
    commits.more(3)
    commits.more(1, SLOW)
    commits.confirm(SLOW)
    (change,) = commits.judge().new
    commits.more(1, SLOW)
    still = tonight(commits)
    assert still is not None
    assert still.returned == ()
    commits.more(1)
    found = tonight(commits)
    assert found is not None
    (returned,) = found.returned
    assert (returned.change, returned.steps) == (change, ("insert",))
    assert returned.before.version == commit(3)
    assert 0.03 < returned.threshold < 0.04
    assert "insert" not in {suspect.step for suspect in found.suspects}
    commits.confirm(old=3, question=ConfirmationRequest.GONE, change=change.fingerprint, rounds=10)
    commits.judge()
    commits.more(1)
    later = tonight(commits)
    assert later is not None
    assert later.returned == ()


# --- how often by chance


def simulated(kind: str, shape: tuple[int, int], rng: np.random.Generator) -> NDArray[np.float64]:
    noise = rng.standard_normal(shape)
    if kind == "t3":
        noise = rng.standard_t(3, shape) / np.sqrt(3)
    if kind == "AR(1)":
        for place in range(1, shape[1]):
            noise[:, place] = 0.4 * noise[:, place - 1] + np.sqrt(1 - 0.16) * noise[:, place]
    if kind == "common":
        noise = 0.7 * rng.standard_normal((1, shape[1])) + np.sqrt(0.51) * noise
    return noise * 0.01 * np.exp(0.4 * rng.standard_normal((shape[0], 1)))


def matrix(logs: NDArray[np.float64]) -> SeriesMatrix:
    nights = tuple(Night(i, NIGHT + timedelta(days=i), commit(i), 1) for i in range(logs.shape[1]))
    metrics = ("qps", "server_cpu_us_per_op")
    series = tuple((i, f"step {i // 2}", metrics[i % 2]) for i in range(len(logs)))
    return SeriesMatrix(PLACE, BRANCH, "postgres@17", nights, series, np.exp(logs))


class Rounds(RoundNoise):
    """Rounds whose means are the nights' values, as far as there is nothing else in a night."""

    def __init__(
        self, values: SeriesMatrix, rng: np.random.Generator, sd: NDArray[np.float64] | float
    ) -> None:
        self._its, self._rng, self._sd = values, rng, np.broadcast_to(sd, len(values.series))

    def of(self, night: Night, row: ScoredSeries) -> list[float]:
        place = row.series_ids[0]
        noise = self._rng.standard_normal(5) * self._sd[place]
        middle = np.log(self._its.ratios[place, night.session_id])
        return [float(value) for value in middle + noise - noise.mean()]


@pytest.mark.deep("records and judges months of nights")
@pytest.mark.parametrize(
    ("kind", "nights", "most"),
    [
        ("gaussian", 4, 1.5),
        ("gaussian", 12, 1.5),
        ("gaussian", 120, 1.5),
        ("AR(1)", 8, 2.0),
        ("AR(1)", 120, 1.5),
        ("common", 8, 2.5),  # all series err together: fewer nights with more of them
        ("t3", 8, 5.0),
        ("t3", 120, 4.0),
    ],
)
def test_quiet_nights_are_rarely_suspected(kind: str, nights: int, most: float) -> None:
    rng = np.random.default_rng([26, nights])
    rows, repeated = (6000, 1) if nights > 45 else (SERIES, 100)
    hits = 0
    for _ in range(repeated):
        panel = matrix(simulated(kind, (rows, nights + 1), rng))
        found = tonight_probabilities(BranchLogRatios(panel, (), {}), Rounds(panel, rng, 0.01))
        hits += int(np.sum(found <= FALSE_SUSPECTS_A_NIGHT / SERIES))
    a_night = hits * SERIES / (rows * repeated)
    assert 0 < a_night <= most * FALSE_SUSPECTS_A_NIGHT


@pytest.mark.deep("records and judges months of nights")
def test_with_one_night_before_the_rounds_say_the_noise() -> None:
    rng = np.random.default_rng(26)
    hits = 0
    for _ in range(100):
        sd = 0.02 * np.exp(0.3 * rng.standard_normal(SERIES))
        panel = matrix(rng.standard_normal((SERIES, 2)) * sd[:, None] / np.sqrt(5))
        found = tonight_probabilities(BranchLogRatios(panel, (), {}), Rounds(panel, rng, sd))
        hits += int(np.sum(found <= FALSE_SUSPECTS_A_NIGHT / SERIES))
    assert 0 < hits / 100 <= 1.5 * FALSE_SUSPECTS_A_NIGHT


@pytest.mark.deep("records and judges months of nights")
def test_both_stages_together_are_wrong_once_in_years() -> None:
    """A night has false suspects as often as they are expected, at most; its session errs by the rest."""
    assert 365 * FALSE_SUSPECTS_A_NIGHT * (1 - CONFIDENCE) < 0.12
    rng = np.random.default_rng(26)
    suites = 12_000
    quiet = run_suites(0.02 * rng.standard_normal((suites, 1, 20)), Design(1, 3, 20, METRIC_CONFIDENCE), 0.02)
    wrong = int(np.isin(quiet.verdict, (REGRESSION, IMPROVEMENT)).sum())
    assert wrong <= 6  # (1 - METRIC_CONFIDENCE) * suites = 1.5 at most are expected
    slow = 0.02 * rng.standard_normal((1000, 3, 20)) + np.log(0.95)
    seen = run_suites(slow, Design(3, 3, 20, METRIC_CONFIDENCE), 0.02)
    assert (seen.verdict == REGRESSION).mean() > 0.99
