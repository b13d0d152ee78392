"""The file of metrics: when a night, a report and the watch write it, and that a night survives it."""

import shutil
from datetime import timedelta
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from history.open import open_store
from history.store.records import SessionStatus
from runners.cli import main
from runners.installing import record
from runners.installing.record import Record
from runners.measuring.session import SessionOutcome
from runners.monitoring.facts import facts_with_history
from runners.monitoring.prometheus import MetricsFile, prometheus_text
from runners.nightly import night as night_module
from runners.nightly.heartbeat import Heart
from tests.history.handmade import MACHINE, NIGHT
from tests.runners.nightly.pretended import BRANCH, Lab
from tests.runners.small_plan import small_plan

pytestmark = pytest.mark.deep("a whole command in a process of its own")

NAME = "metrics/tidemark.prom"

Values = dict[tuple[str, tuple[str, ...]], float]
"""Name and values of the labels beside the box -> value."""


def values_in(text: str) -> Values:
    return {
        (sample.name, tuple(value for name, value in sample.labels.items() if name != "box")): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TIDEMARK_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    monkeypatch.setattr(record, "load", lambda machine: Record())
    monkeypatch.setattr(night_module, "run_session", lambda *_: SessionOutcome(uid="x"))
    path = tmp_path / "plan.toml"
    path.write_text(small_plan(["insert"], f'[metrics]\nfile = "{NAME}"'))
    return path


def test_a_night_a_report_and_the_watch_write_it(plan: Path, tmp_path: Path) -> None:
    path = tmp_path / "home" / NAME
    for words in (["nightly", "--measure"], ["nightly", "--report"], ["runner", "watch"], ["nightly"]):
        path.unlink(missing_ok=True)
        assert main([*words, "--plan", str(plan)]) == 0
        found = values_in(path.read_text())
        assert found["tidemark_state", ("ended",)] == 1
        assert found["tidemark_tasks", ("measured",)] == 1
        assert path.stat().st_mode & 0o777 == 0o644  # the collector is another user
        assert [other.name for other in path.parent.iterdir()] == [path.name]


@pytest.mark.usefixtures("plan")
def test_a_file_that_cannot_be_written_is_a_problem_and_no_end(
    plan: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home/metrics").write_text("a file in place of a folder")
    assert main(["nightly", "--plan", str(plan)]) == 2
    said = capsys.readouterr().out
    assert "Box here: 1 of 1 version measured" in said
    assert f"- the metrics could not be written: {tmp_path}/home/{NAME}: " in said.replace("\\", "")
    assert main(["runner", "watch", "--plan", str(plan)]) == 2
    assert "the metrics could not be written" in capsys.readouterr().err


def test_the_plan_refuses_a_name_that_nobody_collects(plan: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan.write_text(plan.read_text().replace(".prom", ".txt"))
    assert main(["nightly", "--plan", str(plan), "--boxes"]) == 2
    assert "metrics.file: 'metrics/tidemark.txt' does not end in .prom" in capsys.readouterr().err


def test_what_the_history_knows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lab = Lab(tmp_path, monkeypatch)
    lab.commit()
    lab.night()
    plan = lab.plan(box={"hostname": MACHINE.hostname})
    later = NIGHT + timedelta(days=1, hours=6)
    facts = facts_with_history(plan, "db1", lab.home, later)
    found = values_in(prometheus_text(facts))
    assert found["tidemark_sessions", (SessionStatus.FINISHED,)] == 1
    assert found["tidemark_recent_rounds", ()] == 3 * 4  # steps and rounds of the plan
    assert found["tidemark_recent_disturbed_rounds_ratio", ()] == 0
    assert found["tidemark_recent_failed_runs", ()] == 0
    place = ("write-heavy", "smoke", "smoke relaxed 3s", BRANCH)
    labels = dict(zip(("suite", "profile", "configuration", "tracked"), place, strict=True))
    names = tuple(labels[name] for name in sorted(labels))
    assert found["tidemark_result_timestamp_seconds", names] == (NIGHT + timedelta(days=1)).timestamp()
    assert found["tidemark_open_changes", ("worse", "alerted")] == 0
    old = values_in(prometheus_text(facts_with_history(plan, "db1", lab.home, later + timedelta(days=30))))
    assert old["tidemark_recent_rounds", ()] == 0
    assert ("tidemark_recent_disturbed_rounds_ratio", ()) not in old
    lab.disturbed = "another program used the CPU"
    lab.commit()
    lab.night()
    disturbed = values_in(prometheus_text(facts_with_history(plan, "db1", lab.home, later)))
    assert 0 < disturbed["tidemark_recent_disturbed_rounds_ratio", ()] < 1


def test_between_steps_only_what_is_cheap_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = Lab(tmp_path, monkeypatch)
    lab.commit()
    lab.night()
    metrics = MetricsFile(lab.plan(metrics={"file": NAME}), "db1", lab.home)
    path = lab.home.path / NAME
    heart = Heart(lab.home.heartbeat, "db1", lab.progress, on_activity=metrics.renew)
    assert not path.exists()  # nothing is known before the first whole reading
    with open_store(lab.home.history) as store:
        metrics.write(store)
    before = values_in(path.read_text())
    for history in lab.home.path.glob("history.db*"):
        history.unlink()
    with heart.task("round 1: insert"):
        during = values_in(path.read_text())
    beat = "tidemark_heartbeat_timestamp_seconds", ()
    assert during[beat] > before[beat]
    assert during["tidemark_sessions", ("finished",)] == before["tidemark_sessions", ("finished",)] == 1
    shutil.rmtree(path.parent)
    path.parent.write_text("a file in place of a folder")
    heart.note("goes on")
    with heart.task("round 1: delete"):
        assert metrics.problem
