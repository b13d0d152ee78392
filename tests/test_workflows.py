"""Workflows: nothing of a pull request reaches a box, no input a shell; no job has more than it needs."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from build.home import ROOT
from runners.nightly.plan import load_plan

WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))

HOSTED = {"ubuntu-latest"}

SHA = re.compile(r"[\w./-]+@[0-9a-f]{40}")


def read(path: Path) -> dict[Any, Any]:
    found = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


def events(workflow: dict[Any, Any]) -> set[str]:
    on = workflow[True]  # YAML 1.1 takes the word `on` for a truth value
    return {on} if isinstance(on, str) else set(on)


def boxes_reached(workflow: dict[Any, Any]) -> list[str]:
    """Jobs that may run elsewhere than on a hosted runner."""
    return [name for name, job in workflow["jobs"].items() if str(job["runs-on"]) not in HOSTED]


def test_there_are_workflows() -> None:
    assert {path.name for path in WORKFLOWS} >= {"ci.yml", "nightly.yml"}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_boxes_run_on_a_schedule_or_when_somebody_asks(path: Path) -> None:
    workflow = read(path)
    if boxes_reached(workflow):
        assert events(workflow) <= {"schedule", "workflow_dispatch"}


def test_a_pull_request_that_reaches_a_box_is_seen() -> None:
    workflow = {True: ["pull_request"], "jobs": {"x": {"runs-on": ["self-hosted", "tidemark-box1"]}}}
    assert boxes_reached(workflow) == ["x"]
    assert not events(workflow) <= {"schedule", "workflow_dispatch"}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_least_rights_pinned_actions_limits_and_no_input_in_a_shell(path: Path) -> None:
    workflow = read(path)
    assert workflow["permissions"] == {}
    for job in workflow["jobs"].values():
        assert set(job["permissions"]) <= {"contents", "issues"}
        assert job["permissions"]["contents"] == "read"
        assert job["timeout-minutes"] <= 1440
        for step in job["steps"]:
            if "uses" in step:
                assert SHA.fullmatch(step["uses"])
                assert step["with"]["persist-credentials"] is False
            assert "${{" not in step.get("run", "")


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_only_the_last_job_may_write_issues_and_has_the_token(path: Path) -> None:
    for name, job in read(path)["jobs"].items():
        writes = job["permissions"].get("issues") == "write"
        has_token = any("GITHUB_TOKEN" in step.get("env", {}) for step in job["steps"])
        assert writes == has_token == (name == "report")


def test_actionlint_knows_the_labels_of_the_plan() -> None:
    declared = read(ROOT / ".github/actionlint.yaml")["self-hosted-runner"]["labels"]
    assert declared == [box.label for box in load_plan(ROOT / "runners/nightly.toml").boxes.values()]


@pytest.mark.parametrize(
    "command", [["actionlint"], ["zizmor", "--offline", "--persona=auditor", ".github"]], ids=lambda c: c[0]
)
def test_linters_have_no_findings(command: list[str]) -> None:
    program = shutil.which(command[0]) or shutil.which(command[0], path=str(ROOT / ".venv/bin"))
    if program is None:
        pytest.skip(f"{command[0]} is not installed")
    done = subprocess.run([program, *command[1:]], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
