"""Workflows: nothing of a pull request reaches a box, no input a shell; no job has more than it needs."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from build.errors import TidemarkError
from build.home import ROOT, Home
from runners.nightly.inputs import Inputs, TryInputs, box_for, box_for_try
from runners.nightly.plan import load_plan
from tests.programs import ACTIONLINT, required
from tests.workflows.acting import Checkout
from tests.workflows.reading import (
    FOLDER,
    HOSTED,
    NAMES,
    PASSED_ON,
    PASSES_ON,
    PULLS,
    ROUTES,
    SHA,
    WORKFLOWS,
    Workflow,
    boxes_reached,
    called,
    is_for_one_box,
    is_secret,
    may_reach_boxes,
    several_boxes_awaited,
    strings,
)

PLAN = load_plan(ROOT / "runners/nightly.toml")


def test_there_are_workflows() -> None:
    assert set(NAMES) == {
        "bisect.yml",
        "box.yml",
        "ci.yml",
        "nightly.yml",
        "pull-request.yml",
        "try.yml",
    }


@pytest.mark.parametrize("name", NAMES)
def test_boxes_run_on_a_schedule_or_when_somebody_asks(name: str) -> None:
    """So neither on pull_request, nor by workflow_call or workflow_run behind one."""
    if boxes_reached(WORKFLOWS[name], WORKFLOWS):
        assert may_reach_boxes(WORKFLOWS[name])


def test_the_workflows_that_measure_do_reach_boxes() -> None:
    reaching = {name for name in NAMES if boxes_reached(WORKFLOWS[name], WORKFLOWS)}
    assert reaching == {"bisect.yml", "box.yml", "nightly.yml", "pull-request.yml", "try.yml"}


@pytest.mark.parametrize(
    "job",
    [
        {"runs-on": ["self-hosted", "tidemark-box1"]},
        {"runs-on": {"group": "boxes"}},
        {"runs-on": "${{ inputs.box }}"},
        {"uses": "./.github/workflows/nightly.yml"},
        {"uses": "./.github/workflows/box.yml"},
        {"uses": "somebody/else/.github/workflows/x.yml@main"},
    ],
    ids=str,
)
@pytest.mark.parametrize("event", ["pull_request", "pull_request_target", "workflow_run"])
@pytest.mark.parametrize("others", [[], ["workflow_call"], ["schedule"]], ids=str)
def test_a_pull_request_that_reaches_a_box_is_seen(event: str, others: list[str], job: Workflow) -> None:
    workflow = {True: dict.fromkeys([event, *others]), "jobs": {"x": job}}
    assert boxes_reached(workflow, WORKFLOWS) == ["x"]
    assert not may_reach_boxes(workflow)


@pytest.mark.parametrize("name", NAMES)
def test_no_job_waits_for_more_than_one_box(name: str) -> None:
    assert several_boxes_awaited(WORKFLOWS[name]) == []


@pytest.mark.parametrize("needs", ["measure", ["plan", "measure"]], ids=str)
def test_a_job_that_waits_for_all_boxes_is_seen(needs: object) -> None:
    measure = {"strategy": {"matrix": {"box": "${{ fromJSON(needs.plan.outputs.boxes) }}"}}}
    workflow = {"jobs": {"plan": {}, "measure": measure, "report": {"needs": needs}}}
    assert several_boxes_awaited(workflow) == ["report"]


@pytest.mark.parametrize("name", NAMES)
def test_least_rights_pinned_actions_and_limits(name: str) -> None:
    workflow = WORKFLOWS[name]
    assert workflow["permissions"] == {}
    for job in workflow["jobs"].values():
        assert set(job["permissions"]) <= {"actions", "contents", "issues"}
        assert job["permissions"].get("contents", "read") == "read"
        assert job["permissions"].get("actions", "read") == "read"
        if "uses" in job:
            assert called(job) in WORKFLOWS
            assert "secrets" not in job
            continue
        assert job["timeout-minutes"] <= 1440
        for step in job["steps"]:
            if "uses" in step:
                assert SHA.fullmatch(step["uses"])
                if step["uses"].startswith("actions/checkout@"):
                    assert step["with"]["persist-credentials"] is False


@pytest.mark.parametrize("name", NAMES)
def test_inputs_reach_programs_through_the_environment_alone(name: str) -> None:
    given = is_for_one_box(WORKFLOWS[name])
    for path, text in strings(WORKFLOWS[name]):
        if "run" in path:
            assert "${{" not in text, path
        if given and path[-1] == "runs-on" and text == "${{ inputs.label }}":
            continue
        if given and path[-2:] == ("concurrency", "group") and text == "nightly-${{ inputs.name }}":
            continue
        if re.search(r"\b(inputs|github\.event|github\.head_ref)\b", text) and "${{" in text:
            assert path[-2] == "env", path
        if "runs-on" in path:
            assert text in {*HOSTED, "self-hosted", *ROUTES, "${{ matrix.system }}"}, path


def test_a_workflow_for_one_box_is_called_with_a_box_of_the_plan() -> None:
    given = [
        job["with"]
        for workflow in WORKFLOWS.values()
        for job in workflow["jobs"].values()
        if is_for_one_box(WORKFLOWS.get(called(job), {True: "push"}))
    ]
    assert given == [PASSED_ON]


@pytest.mark.parametrize("name", [name for name in NAMES if name != PULLS])
def test_only_a_report_on_a_hosted_runner_may_write_issues_and_has_the_token(name: str) -> None:
    """On a box, code under test runs as the user of the runner, and could wait for a later job's token."""
    workflow = WORKFLOWS[name]
    on_boxes = boxes_reached(workflow, WORKFLOWS)
    for job_name, job in workflow["jobs"].items():
        writes = job["permissions"].get("issues") == "write"
        has_token = any(is_secret(text) for _, text in strings(job))
        tells = job_name == "report" and job_name not in on_boxes
        assert (writes, has_token) == (tells, tells)
        for path, text in strings(job):
            assert not is_secret(text) or path == ("steps", "env", "GITHUB_TOKEN")
    around = {key: value for key, value in workflow.items() if key != "jobs"}
    assert not any(is_secret(text) for _, text in strings(around))


def test_a_group_is_never_shared_by_jobs_that_wait_for_a_box() -> None:
    """One that waits is cancelled by the next."""
    assert WORKFLOWS["bisect.yml"]["concurrency"]["group"] == "bisect-${{ github.run_id }}"
    assert WORKFLOWS["try.yml"]["concurrency"]["group"] == "try-${{ github.run_id }}"
    assert WORKFLOWS[PULLS]["concurrency"]["group"] == "pull-request-${{ github.run_id }}"
    assert WORKFLOWS["nightly.yml"]["concurrency"]["group"] == "nightly-${{ github.run_id }}"
    assert WORKFLOWS["box.yml"]["jobs"]["measure"]["concurrency"]["group"] == "nightly-${{ inputs.name }}"


def test_actionlint_knows_the_labels_of_the_plan() -> None:
    declared = yaml.safe_load((ROOT / ".github/actionlint.yaml").read_text())["self-hosted-runner"]["labels"]
    assert set(declared) - HOSTED == {box.label for box in PLAN.boxes.values()}


def test_actions_are_pinned_beside_their_version() -> None:
    """One hash for each action in all workflows, with the version behind it, which Dependabot renews."""
    used: dict[str, set[str]] = {}
    for path in FOLDER.glob("*.yml"):
        for line in path.read_text(encoding="utf-8").splitlines():
            if "uses: " in line and "./" not in line:
                action, _, pinned = line.partition("uses: ")[2].partition("@")
                assert re.fullmatch(r"[0-9a-f]{40} # v\d+\.\d+\.\d+", pinned), line
                used.setdefault(action, set()).add(pinned)
    assert {action: len(pins) for action, pins in used.items()} == dict.fromkeys(used, 1)
    (kept,) = yaml.safe_load((ROOT / ".github/dependabot.yml").read_text())["updates"]
    assert (kept["package-ecosystem"], kept["directory"]) == ("github-actions", "/")


def test_actionlint_has_no_findings() -> None:
    files = [*FOLDER.glob("*.yml"), PASSES_ON]
    _passes([str(required(ACTIONLINT)), *map(str, files)])


def test_zizmor_has_no_findings() -> None:
    zizmor = Path(sys.prefix) / "bin/zizmor"
    _passes([str(zizmor), "--offline", "--persona=auditor", ".github", str(PASSES_ON)])


def _passes(command: list[str]) -> None:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


# --- hostile inputs

FINE = {
    "engine": "postgres",
    "good": "REL_17_0",
    "bad": "REL_18_0",
    "suite": "write-heavy",
    "step": "update-index",
    "profile": "short",
}


def test_what_can_be_meant_leads_to_a_box_of_the_plan() -> None:
    assert box_for(PLAN, "box1", Inputs(**FINE)).label == "tidemark-box1"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("engine", "oracle"),
        ("good", "$(touch x)"),
        ("good", "--git=/etc"),
        ("good", ""),
        ("bad", "a..b"),
        ("bad", "x\ny"),
        ("suite", "../elsewhere"),
        ("suite", "./suites/write_heavy"),
        ("suite", "write-heavy; touch x"),
        ("step", "`touch x`"),
        ("step", ""),
        ("profile", "${IFS}"),
    ],
)
def test_what_cannot_be_meant_is_refused(name: str, text: str) -> None:
    with pytest.raises(TidemarkError):
        box_for(PLAN, "box1", Inputs(**{**FINE, name: text}))


@pytest.mark.parametrize("box", ["box2", "", "tidemark-box1", "self-hosted", "$(touch x)"])
def test_a_box_that_is_not_the_plans_is_refused(box: str) -> None:
    with pytest.raises(TidemarkError, match="box"):
        box_for(PLAN, box, Inputs(**FINE))


FINE_TRY: dict[str, Any] = {
    "engine": "postgres",
    "ref": "topic/faster-updates",
    "against": "master",
    "suite": "write-heavy",
    "profile": "smoke",
    "steps": (),
}


def test_a_try_that_can_be_meant_leads_to_a_box_of_the_plan() -> None:
    assert box_for_try(PLAN, "box1", TryInputs(**FINE_TRY)).label == "tidemark-box1"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("engine", "oracle"),
        ("ref", ""),
        ("ref", "$(touch x)"),
        ("ref", "--page=/etc/x"),
        ("ref", "runners/commands/planted.patch"),
        ("ref", "postgres@master"),
        ("against", "a..b"),
        ("suite", "../elsewhere"),
        ("profile", "${IFS}"),
    ],
)
def test_a_try_that_cannot_be_meant_is_refused(name: str, text: str) -> None:
    with pytest.raises(TidemarkError):
        box_for_try(PLAN, "box1", TryInputs(**{**FINE_TRY, name: text}))


def hostile(mark: Path) -> str:
    """What makes the file `mark` wherever a shell reads it, within double quotes too."""
    return f'$(touch {mark})" ; touch {mark}; "`touch {mark}`'


def test_inputs_of_a_night_execute_nothing(tmp_path: Path) -> None:
    checkout = Checkout(tmp_path, Home(tmp_path / "home"), _plan(), ("self-hosted", "tidemark-box1"))
    mark = tmp_path / "mark"
    acted = checkout.run("workflow_dispatch", "nightly.yml", inputs={"box": hostile(mark)})
    assert not mark.exists()
    assert (acted.code, acted.jobs) == (1, {"plan": "failure"})
    assert "the plan has no box" in acted.printed


def test_inputs_of_a_bisect_execute_nothing(tmp_path: Path) -> None:
    checkout = Checkout(tmp_path, Home(tmp_path / "home"), _plan(), ("self-hosted", "tidemark-box1"))
    mark = tmp_path / "mark"
    names = ("good", "bad", "suite", "step", "profile", "metric")
    inputs = {
        "engine": "postgres",
        "direction": "worse",
        "box": "box1",
        **dict.fromkeys(names, hostile(mark)),
    }
    acted = checkout.run("workflow_dispatch", "bisect.yml", inputs=inputs)
    assert not mark.exists()
    assert (acted.code, acted.jobs) == (1, {"check": "failure"})
    assert "is neither a release nor a git ref" in acted.printed
    acted = checkout.run(
        "workflow_dispatch",
        "bisect.yml",
        inputs={**FINE, "box": "self-hosted", "metric": "qps", "direction": "worse"},
    )
    assert (acted.code, acted.jobs) == (1, {"check": "failure"})
    assert "the plan has no box 'self-hosted'" in acted.printed


def test_inputs_of_a_try_execute_nothing(tmp_path: Path) -> None:
    checkout = Checkout(tmp_path, Home(tmp_path / "home"), _plan(), ("self-hosted", "tidemark-box1"))
    mark = tmp_path / "mark"
    inputs = {
        "engine": "postgres",
        "box": "box1",
        **dict.fromkeys(("ref", "against", "suite", "profile"), hostile(mark)),
    }
    acted = checkout.run("workflow_dispatch", "try.yml", inputs=inputs)
    assert not mark.exists()
    assert (acted.code, acted.jobs) == (1, {"check": "failure"})
    assert "is neither a release nor a git ref" in acted.printed


def _plan() -> str:
    return (ROOT / "runners/nightly.toml").read_text(encoding="utf-8")
