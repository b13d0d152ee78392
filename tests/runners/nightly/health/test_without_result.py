"""Versions without a result: what the machine prevented is open, night after night, and said."""

from pathlib import Path

import pytest

from history.open import open_store
from history.series.task_states import TaskOutcome
from history.store.records import SessionStatus
from runners.nightly.night_result import NightResult
from runners.nightly.report import comparisons
from runners.nightly.summary import summary
from tests.history.conftest import rows
from tests.history.handmade import NIGHT
from tests.runners.nightly.pretended import BASE, BRANCH, Lab

pytestmark = pytest.mark.deep("months of simulated nights")

RELEASE = "postgres@18.6"


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    return Lab(tmp_path, monkeypatch)


def tracked(lab: Lab) -> dict[str, object]:
    """What a night tracks: a release and a branch."""
    both = {"base": BASE, "releases": ["18.6"], "branches": ["master"], "git": str(lab.source)}
    return {"engines": {"postgres": both}}


def told(lab: Lab, night: NightResult) -> str:
    with open_store(lab.home.history) as store:
        return summary(night, None, comparisons(night, store), NIGHT)


def measured(lab: Lab) -> set[str]:
    """The versions that took part in a round since this was asked last."""
    found = {name for names, *_ in lab.measured for name in names}
    lab.measured.clear()
    return found


def in_history(lab: Lab, query: str) -> list[tuple[object, ...]]:
    with open_store(lab.home.history) as store:
        return rows(store, query)


def test_a_night_without_network_drops_no_release(lab: Lab) -> None:
    tip = lab.commit()
    lab.unavailable.add(RELEASE)
    night = lab.night(**tracked(lab))
    assert measured(lab) == {BASE, tip}
    assert night.outcome == (
        "1 of 2 versions measured;"
        " not measured: postgres@18.6, write-heavy smoke: could not be fetched or built"
    )
    assert night.has_failed
    assert "could not be fetched or built: no source has it: the network is unreachable" in told(lab, night)
    again = lab.night(**tracked(lab))
    assert "could not be fetched or built since 2026-03-02" in again.outcome
    assert measured(lab) == set()
    lab.unavailable.clear()
    assert lab.night(**tracked(lab)).outcome == "1 of 1 version measured"
    assert measured(lab) == {BASE, RELEASE}
    assert lab.night(**tracked(lab)).outcome == "nothing is new"


def test_a_tip_that_does_not_compile_is_said_each_night_and_no_session(lab: Lab) -> None:
    tip = lab.commit()
    lab.unbuildable.add(tip)
    lab.night()
    night = lab.night()
    commit = tip.rpartition(":")[2]
    assert night.outcome.startswith(
        f"0 of 1 version measured; not measured: postgres@master ({commit}), write-heavy smoke:"
        " does not compile: server.c:7: error: nobody knows it (log: "
    )
    assert night.outcome.endswith(" since 2026-03-02")
    assert night.has_failed
    assert in_history(lab, "SELECT count(*) FROM sessions") == [(0,)]
    lab.commit()
    assert lab.night().outcome == "1 of 1 version measured"


def test_a_night_whose_base_cannot_be_had_measures_nothing_in_vain(lab: Lab) -> None:
    lab.commit()
    lab.unavailable.add(BASE)
    night = lab.night()
    (missing,) = night.missing
    assert (missing.outcome, measured(lab)) == (TaskOutcome.UNAVAILABLE, set())
    assert missing.reason.startswith(f"its base {BASE}: no source has it")
    lab.unavailable.clear()
    assert lab.night().outcome == "1 of 1 version measured"


@pytest.mark.parametrize("how", ["unloadable", "dying"])
def test_a_server_that_fails_beside_a_base_that_does_not_is_not_tried_again(lab: Lab, how: str) -> None:
    tip = lab.commit()
    getattr(lab, how)[tip] = "TRAP: failed Assert"
    night = lab.night()
    (missing,) = night.missing
    assert missing.outcome is TaskOutcome.FAILED
    assert "TRAP: failed Assert" in told(lab, night)
    measured(lab)
    again = lab.night()
    assert "fails while it is measured since 2026-03-02" in again.outcome
    assert (again.has_failed, measured(lab)) == (True, set())
    lab.commit()
    assert lab.night().outcome == "1 of 1 version measured"


def test_a_variant_that_is_defined_anew_is_tried_again(lab: Lab) -> None:
    variant = f"{RELEASE}#mem"
    both = {"base": BASE, "releases": ["18.6#mem"]}

    def night(setting: str) -> NightResult:
        defined = {"mem": {"settings": {"work_mem": setting}}}
        return lab.night(engines={"postgres": both}, variants=defined)

    lab.unloadable[variant] = "FATAL: invalid value"
    assert night("8XB").missing[0].outcome is TaskOutcome.FAILED
    lab.unloadable.clear()
    assert night("8XB").missing[0].outcome is TaskOutcome.FAILED
    assert night("8MB").outcome == "1 of 1 version measured"


@pytest.mark.parametrize("how", ["unloadable", "dying"])
@pytest.mark.parametrize(
    "why",
    [
        "initdb failed: could not write: No space left on device",
        "killed by SIGKILL; the end of its log:",
        'could not bind address "/x/.s.PGSQL.5432": Address already in use',
    ],
)
def test_what_the_machine_did_to_a_server_is_measured_the_next_night(lab: Lab, how: str, why: str) -> None:
    tip = lab.commit()
    getattr(lab, how)[tip] = why
    night = lab.night()
    (missing,) = night.missing
    assert (missing.outcome, night.has_failed) == (TaskOutcome.STOPPED, True)
    getattr(lab, how).clear()
    measured(lab)
    assert lab.night().outcome == "1 of 1 version measured"
    assert measured(lab) == {BASE, tip}


def test_what_keeps_the_base_from_running_too_is_no_failure_of_the_version(lab: Lab) -> None:
    tip = lab.commit()
    lab.unloadable |= dict.fromkeys((BASE, tip), "the suite's script has a mistake")
    (missing,) = lab.night().missing
    assert missing.outcome is TaskOutcome.STOPPED
    assert in_history(lab, "SELECT status FROM sessions") == [(SessionStatus.INTERRUPTED,)]
    for table in ("nights", "gaps", "runs"):
        assert in_history(lab, f"SELECT count(*) FROM {table}") == [(0,)]
    lab.unloadable.clear()
    assert lab.again().outcome == "1 of 1 version measured"
    assert in_history(lab, "SELECT status FROM sessions") == [(SessionStatus.FINISHED,)]
    assert lab.again().outcome == "nothing is new"


def test_a_box_that_is_too_small_for_one_step_is_measured_no_more_than_three_times(lab: Lab) -> None:
    tip = lab.commit()

    def killed(count: int) -> None:
        lab.dying = {tip: "killed by SIGKILL"} if count % 3 == 2 else {}

    lab.before_round = killed
    found = [lab.night(confirm=False) for _ in range(4)]
    assert [night.has_failed for night in found] == [True, True, True, False]
    assert found[0].missing[0].reason.startswith("not all of its steps were measured: killed by SIGKILL")
    assert found[3].outcome == "nothing is new"


def test_a_night_in_which_every_round_was_disturbed_has_failed(lab: Lab) -> None:
    lab.commit()
    lab.disturbed = "another process used 80 % of a core"
    night = lab.night()
    assert night.outcome.startswith("1 of 1 version measured; doubtful: postgres@master (")
    assert ": every round was disturbed: another process used 80 %" in told(lab, night)
    assert night.outcome.endswith(": every round was disturbed")
    assert night.has_failed
    lab.commit()
    task = {"suite": "write-heavy", "profile": "smoke", "rounds": 2, "keep_disturbed": True, "perf": False}
    assert not lab.night(tasks=[task | {"steps": ["insert"]}]).has_failed


def test_headings_are_branches(lab: Lab) -> None:
    tip = lab.commit()
    text = told(lab, lab.night())
    commit = tip.rpartition(":")[2]
    assert f"### {BRANCH} ({commit}) against {BASE}, write-heavy smoke" in text
    assert f"**{BRANCH} ({commit}) against {BASE}: qps (queries/s): " in text
    assert f"{tip} against" not in text
