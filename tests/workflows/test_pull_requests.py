"""Pull requests: no secret where their code runs, and the workflow as it is, with gh and a stand-in."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from build.home import Home
from tests.plain_repository import PlainRepository
from tests.programs import required_tool
from tests.runners.alerting.github import REPOSITORY, TOKEN
from tests.runners.job_outputs import read_outputs
from tests.runners.small_plan import LABEL, small_plan
from tests.workflows.acting import Acted, Checkout
from tests.workflows.hub import NUMBER, Hub, running
from tests.workflows.reading import (
    PASSES_ON,
    PULLS,
    WORKFLOWS,
    boxes_reached,
    events,
    is_secret,
    strings,
)

PULL = f"{REPOSITORY}#{NUMBER}"
FIRST, SECOND = "1" * 40, "2" * 40
RUN_ID = 70


def test_no_secret_is_where_the_code_of_a_pull_request_runs() -> None:
    """Only steps of hosted jobs have it, in an environment for one branch; they run nothing of ours."""
    workflow = WORKFLOWS[PULLS]
    with_secret = [
        name for name, job in workflow["jobs"].items() if any(is_secret(text) for _, text in strings(job))
    ]
    assert with_secret == ["check", "report"]
    assert boxes_reached(workflow, WORKFLOWS) == ["measure"]
    for name, job in workflow["jobs"].items():
        assert {*job["permissions"].items()} <= {("contents", "read")}
        assert job.get("environment") == ("pull-requests" if name in with_secret else None)
        for path, text in strings(job):
            assert not is_secret(text) or path == ("steps", "env", "GH_TOKEN")
        for step in job["steps"]:
            assert {*step.get("with", {})} <= {"persist-credentials", "path", "if-no-files-found", "archive"}
            if any(is_secret(text) for _, text in strings(step)):
                assert "uses" not in step
                assert "./" not in step["run"]
    around = {key: value for key, value in workflow.items() if key != "jobs"}
    assert not any(is_secret(text) for _, text in strings(around))


def test_what_passes_the_label_on_runs_and_reads_nothing_of_a_pull_request() -> None:
    text = PASSES_ON.read_text(encoding="utf-8")
    workflow = yaml.safe_load(text)
    assert events(workflow) == {"pull_request_target"}
    ((job,),) = [tuple(workflow["jobs"].values())]
    assert (job["permissions"], workflow["permissions"]) == ({}, {})
    (step,) = job["steps"]
    assert "uses" not in step
    assert "${{" not in step["run"]
    expressions = set(re.findall(r"\$\{\{ (.*?) \}\}", str(step["env"])))
    named = {"github.repository", "github.event.pull_request.number", "github.event.pull_request.head.sha"}
    assert expressions == {*named, "secrets.TIDEMARK_TOKEN"}


# --- steps, with gh


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    with running(tmp_path / "gh") as hub:
        yield hub
        assert hub.violations == []


@dataclass
class Done:
    """What a step came to."""

    code: int
    said: str
    outputs: dict[str, str]


class Steps:
    """The steps of the workflow that ask GitHub, run by bash as its runner does."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._gh = folder, required_tool("gh")

    def carry_out(self, job: str, environment: dict[str, str]) -> Done:
        (step,) = [
            step for step in WORKFLOWS[PULLS]["jobs"][job]["steps"] if "GH_TOKEN" in step.get("env", {})
        ]
        script, outputs = self._folder / "step.sh", self._folder / "outputs"
        script.write_text(step["run"])
        outputs.unlink(missing_ok=True)
        around = {
            "PATH": f"{Path(self._gh).parent}:/usr/bin:/bin",
            "GH_CONFIG_DIR": str(self._folder / "gh"),
            "GH_TOKEN": TOKEN,
            "GITHUB_OUTPUT": str(outputs),
            "HOME": str(self._folder),
            "RUN": "https://github.com/example/tidemark/actions/runs/70",
        }
        done = subprocess.run(
            ["bash", "-e", str(script)],
            env={**around, **environment},
            capture_output=True,
            text=True,
            check=False,
        )
        assert TOKEN not in done.stdout + done.stderr
        return Done(done.returncode, done.stdout + done.stderr, read_outputs(outputs))

    def check(self, commit: str, pull: str = PULL) -> Done:
        return self.carry_out("check", {"PULL": pull, "COMMIT": commit, "BOX": "here"})

    def report(self, code: str, answer: str, run: int = RUN_ID) -> Done:
        around = {"REPOSITORY": REPOSITORY, "NUMBER": str(NUMBER), "COMMIT": FIRST, "RUN_ID": str(run)}
        return self.carry_out("report", {**around, "CODE": code, "ANSWER": answer, "LC_ALL": "C.UTF-8"})


@pytest.fixture
def steps(tmp_path: Path, hub: Hub) -> Steps:
    hub.push(FIRST, 0)
    return Steps(tmp_path)


@pytest.mark.parametrize("who", ["ann", "root"])
def test_the_label_of_who_may_write_has_the_head_tried_once(steps: Steps, hub: Hub, who: str) -> None:
    for _ in range(70):  # more than a page of events
        hub.set_label("visitor", 1, name="other")
        hub.set_label("visitor", 1, "unlabeled", name="other")
    hub.set_label("visitor", 2)
    hub.set_label(who, 5)
    done = steps.check(FIRST)
    assert (done.code, done.outputs) == (
        0,
        {"repository": REPOSITORY, "number": str(NUMBER), "against": "master"},
    ), done.said
    ((commit, status),) = hub.statuses
    assert (commit, status["state"], status["context"]) == (FIRST, "pending", "tidemark")
    assert f"asked for by {who}" in status["description"]
    assert hub.labels == set()
    again = steps.check(FIRST)
    assert (again.code, again.outputs, len(hub.statuses)) == (1, {}, 1)
    assert "the label tidemark-try is not set" in again.said


@pytest.mark.parametrize(
    ("who", "kind", "why"),
    [
        ("visitor", "User", "visitor may not write"),
        ("stranger", "User", "stranger may not write"),
        ("ann", "Bot", "not set by a person"),
    ],
)
def test_the_label_of_others_does_nothing_and_is_not_answered(
    steps: Steps, hub: Hub, who: str, kind: str, why: str
) -> None:
    hub.set_label("ann", 3)
    hub.set_label("ann", 4, "unlabeled")
    hub.set_label(who, 5, kind=kind)
    done = steps.check(FIRST)
    assert (done.code, done.outputs, hub.statuses, hub.ours()) == (1, {}, [], [])
    assert why in done.said


@pytest.mark.parametrize("minute", [5, 6])
def test_a_commit_pushed_with_or_after_the_label_is_refused_and_that_is_told(
    steps: Steps, hub: Hub, minute: int
) -> None:
    """Also where the event of the label had it already, and where it had been pushed before."""
    hub.push(SECOND, minute)
    hub.set_label("ann", 5)
    done = steps.check(SECOND)
    assert (done.code, done.outputs) == (1, {})
    ((commit, status),) = hub.statuses
    assert (commit, status["state"]) == (SECOND, "error")
    assert "pushed after the label" in status["description"]


def test_another_head_than_in_the_event_is_refused(steps: Steps, hub: Hub) -> None:
    hub.set_label("ann", 5)
    hub.push(SECOND, 6)
    done = steps.check(FIRST)
    assert (done.code, done.outputs, hub.labels) == (1, {}, set())
    assert "no longer this commit" in hub.statuses[0][1]["description"]


@pytest.mark.parametrize("hidden", ["hides_activity", "fork", "state"])
def test_what_cannot_be_seen_or_is_closed_is_refused(steps: Steps, hub: Hub, hidden: str) -> None:
    hub.set_label("ann", 5)
    if hidden == "hides_activity":
        hub.hides_activity = True
    else:
        setattr(hub.pulls[NUMBER], hidden, {"fork": None, "state": "closed"}[hidden])
    done = steps.check(FIRST)
    assert (done.code, done.outputs) == (1, {})
    assert hub.statuses[0][1]["state"] == "error"


def test_words_that_name_nothing_are_refused_before_github_is_asked(
    steps: Steps, hub: Hub, tmp_path: Path
) -> None:
    mark = tmp_path / "mark"
    hostile = f'$(touch {mark})" ; touch {mark}; "`touch {mark}`'
    for commit, pull in (
        (hostile, PULL),
        (FIRST, hostile),
        (FIRST[:12], PULL),
        (FIRST, "a/b/c#1"),
        (FIRST, "a/b#0"),
    ):
        assert steps.check(commit, pull).code == 1
    assert (hub.requests, mark.exists()) == ([], False)


WORSE = "**Worse: `insert` is 5 % slower.**\n\n| a | b |\n|---|---|\n| ${x} | `$(y)` |"


def test_the_answer_renews_our_comment_and_gives_the_commit_its_check(steps: Steps, hub: Hub) -> None:
    hub.say("stranger", "<!-- tidemark-try run=9999 -->\nmine", 1)
    assert steps.report("1", WORSE).code == 0
    assert steps.report("0", "**Nothing is worse.**\n\n**Not this**", RUN_ID + 1).code == 0
    assert steps.report("", "", RUN_ID + 2).code == 0
    assert [(status["state"], status["description"]) for _, status in hub.statuses] == [
        ("failure", "Worse: `insert` is 5 % slower."),
        ("success", "Nothing is worse."),
        ("error", "was not measured; the run says why"),
    ]
    (ours,) = hub.ours()
    assert f"Tidemark could not try {FIRST}." in ours
    assert steps.report("1", WORSE, RUN_ID).code == 0  # an older run, which ends later
    assert hub.ours() == [ours]
    assert steps.report("1", WORSE + "\n" + "x" * 70_000, RUN_ID + 3).code == 0
    (ours,) = hub.ours()
    assert WORSE in ours
    assert len(ours) < 65_536
    assert "(cut)" in ours


# --- in act


@pytest.fixture
def source(tmp_path: Path) -> PlainRepository:
    """The git source of the plan; its pull request leads to the only commit of a branch."""
    made = PlainRepository(tmp_path / "source")
    made.commit("src/server.c")
    made.git("update-ref", f"refs/pull/{NUMBER}/head", "HEAD")
    return made


@pytest.fixture
def checkout(tmp_path: Path, source: PlainRepository) -> Checkout:
    followed = f'branches = ["main"]\ngit = "{source.path}"'
    plan = small_plan(["insert"], "", followed=followed)
    return Checkout(tmp_path / "act", Home(tmp_path / "home"), plan, ("self-hosted", LABEL))


def follow(checkout: Checkout, tmp_path: Path, commit: str, pull: str = PULL, box: str = "here") -> Acted:
    required_tool("gh")
    inputs = {"pull": pull, "commit": commit, "box": box, "engine": "postgres"}
    around = {"GH_CONFIG_DIR": str(tmp_path / "gh")}
    acted = checkout.run("workflow_dispatch", PULLS, inputs=inputs, environment=around, token=TOKEN)
    assert TOKEN not in acted.log
    return acted


def test_nothing_of_a_stranger_or_hostile_reaches_a_box(checkout: Checkout, hub: Hub, tmp_path: Path) -> None:
    hub.push(FIRST, 0)
    hub.set_label("stranger", 5)
    acted = follow(checkout, tmp_path, FIRST)
    assert (acted.code, acted.jobs) == (1, {"check": "failure"}), acted.log
    assert hub.requests[-1].endswith("/collaborators/stranger/permission")
    assert (hub.ours(), hub.statuses) == ([], [])
    mark = tmp_path / "mark"
    hostile = f'$(touch {mark})" ; touch {mark}; "`touch {mark}`'
    acted = follow(checkout, tmp_path, hostile, hostile, hostile)
    assert (acted.code, acted.jobs, mark.exists()) == (1, {"check": "failure"}, False), acted.log


def test_a_try_that_ends_without_an_answer_is_told(
    checkout: Checkout, hub: Hub, source: PlainRepository, tmp_path: Path
) -> None:
    """The branch is merged already, so that there is nothing to try: found on the box."""
    commit = source.git("rev-parse", "HEAD").strip()
    hub.push(commit, 0)
    hub.pulls[NUMBER].base = "main"
    hub.set_label("ann", 5)
    acted = follow(checkout, tmp_path, commit)
    assert (acted.code, acted.jobs) == (0, dict.fromkeys(("check", "measure", "report"), "success")), (
        acted.log
    )
    assert "there is nothing to try" in acted.printed
    assert [(sha, status["state"]) for sha, status in hub.statuses] == [
        (commit, "pending"),
        (commit, "error"),
    ]
    (told,) = hub.ours()
    assert f"Tidemark could not try {commit}." in told


PROGRAM = """#!/bin/sh
for word; do printf '%s\\n' "$word"; done >> "$CALLS"
"""


@pytest.mark.parametrize("label", ["tidemark-try", "tidemark"])
def test_a_label_is_passed_on_as_the_number_and_the_name_of_the_head(
    label: str, checkout: Checkout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(PASSES_ON, checkout.tree / ".github/workflows/pass-on.yml")
    (checkout.programs / "gh").write_text(PROGRAM)
    (checkout.programs / "gh").chmod(0o755)
    calls = tmp_path / "calls"
    payload = {
        "action": "labeled",
        "number": NUMBER,
        "label": {"name": label},
        "pull_request": {"number": NUMBER, "head": {"sha": FIRST, "ref": "$(x)"}, "title": "$(x)"},
        "repository": {"full_name": REPOSITORY, "name": "alerts", "owner": {"login": "example"}},
    }
    around = {"CALLS": str(calls), "GITHUB_REPOSITORY": REPOSITORY}
    acted = checkout.run(
        "pull_request_target", "pass-on.yml", payload=payload, environment=around, token=TOKEN
    )
    assert (acted.code, TOKEN in acted.log) == (0, False), acted.log
    if label != "tidemark-try":
        assert (acted.jobs, calls.exists()) == ({}, False)
        return
    assert acted.jobs == {"pass-on": "success"}, acted.log
    words = calls.read_text().splitlines()
    assert words[:5] == ["workflow", "run", PULLS, "--repo", "OWNER/TIDEMARK"]
    named = [word for word in words[5:] if word != "--raw-field"]
    assert named == [f"pull={PULL}", f"commit={FIRST}", "engine=postgres", "box=BOX"]
    assert {*(word.partition("=")[0] for word in named)} <= {
        *WORKFLOWS[PULLS][True]["workflow_dispatch"]["inputs"]
    }
