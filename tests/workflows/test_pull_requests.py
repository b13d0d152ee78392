"""Pull requests: no secret where their code runs, and the workflow as it is, run in act."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from build.home import Home
from tests.plain_repository import PlainRepository
from tests.runners.alerting.github import REPOSITORY, TOKEN, running
from tests.runners.pull_requests.hub import NUMBER, Hub
from tests.runners.small_plan import LABEL, small_plan
from tests.workflows.acting import Acted, Checkout
from tests.workflows.reading import PASSES_ON, PULLS, WORKFLOWS, boxes_reached, events, is_secret, strings

PULL = f"{REPOSITORY}#{NUMBER}"


def test_no_secret_is_where_the_code_of_a_pull_request_runs() -> None:
    """Only hosted jobs have it, by an environment for the default branch; they start nothing else."""
    workflow = WORKFLOWS[PULLS]
    with_secret = [
        name for name, job in workflow["jobs"].items() if any(is_secret(text) for _, text in strings(job))
    ]
    assert with_secret == ["word", "report"]
    assert boxes_reached(workflow, WORKFLOWS) == ["measure"]
    for name, job in workflow["jobs"].items():
        assert job["permissions"] == {"contents": "read"}
        assert job.get("environment") == ("pull-requests" if name in with_secret else None)
        for path, text in strings(job):
            assert not is_secret(text) or path == ("steps", "env", "GITHUB_TOKEN")
        for step in job["steps"]:
            assert {*step.get("with", {})} <= {"persist-credentials", "path", "if-no-files-found", "archive"}
            if name in with_secret and "run" in step:
                assert step["run"].partition("./tidemark ")[2].startswith("runner pull-request ")
    around = {key: value for key, value in workflow.items() if key != "jobs"}
    assert not any(is_secret(text) for _, text in strings(around))


def test_what_passes_the_word_on_runs_and_reads_nothing_of_a_pull_request() -> None:
    text = PASSES_ON.read_text(encoding="utf-8")
    workflow = yaml.safe_load(text)
    assert events(workflow) == {"issue_comment", "pull_request_target"}
    ((job,),) = [tuple(workflow["jobs"].values())]
    assert (job["permissions"], workflow["permissions"]) == ({}, {})
    (step,) = job["steps"]
    assert "uses" not in step
    assert "${{" not in step["run"]
    expressions = set(re.findall(r"\$\{\{ (.*?) \}\}", str(step["env"])))
    named = {"github.repository", "github.event.comment.id", "github.event.pull_request.head.sha"}
    number = "github.event.issue.number || github.event.pull_request.number"
    assert expressions == {*named, number, "secrets.TIDEMARK_TOKEN"}


# --- in act


@pytest.fixture
def hub() -> Iterator[Hub]:
    with running(Hub) as hub:
        yield hub
        assert hub.violations == []


@pytest.fixture
def source(tmp_path: Path) -> PlainRepository:
    """The git source of the plan; its pull request leads to the only commit of a branch."""
    made = PlainRepository(tmp_path / "source")
    made.commit("src/server.c")
    made.git("update-ref", f"refs/pull/{NUMBER}/head", "HEAD")
    return made


@pytest.fixture
def checkout(tmp_path: Path, source: PlainRepository) -> Checkout:
    followed = f'branches = ["main"]\ngit = "{source.path}"\npull_requests = "{REPOSITORY}"'
    plan = small_plan(["insert"], "", followed=followed)
    return Checkout(tmp_path / "act", Home(tmp_path / "home"), plan, ("self-hosted", LABEL))


def follow(checkout: Checkout, hub: Hub, comment: int | str, pull: str = PULL, labelled: str = "") -> Acted:
    around = {"GITHUB_API_URL": hub.url}
    inputs = {"pull": pull, "comment": str(comment), "labelled": labelled}
    acted = checkout.run("workflow_dispatch", PULLS, inputs=inputs, environment=around, token=TOKEN)
    assert TOKEN not in acted.log
    return acted


def test_nothing_of_a_stranger_or_after_the_word_reaches_a_box(
    checkout: Checkout, hub: Hub, tmp_path: Path
) -> None:
    hub.push("1" * 40, 0)
    acted = follow(checkout, hub, hub.say("stranger", "/tidemark try", 5))
    assert (acted.code, acted.jobs) == (1, {"word": "failure"}), acted.log
    assert "stranger may not write" in acted.printed
    word = hub.say("ann", "/tidemark try", 5)
    hub.push("2" * 40, 6)
    acted = follow(checkout, hub, word)
    assert (acted.code, acted.jobs) == (1, {"word": "failure"}), acted.log
    assert "the head was pushed after the word" in hub.ours()[0]
    mark = tmp_path / "mark"
    hostile = f'$(touch {mark})" ; touch {mark}; "`touch {mark}`'
    acted = follow(checkout, hub, hostile, hostile, hostile)
    assert (acted.code, acted.jobs, mark.exists()) == (1, {"word": "failure"}, False), acted.log
    hub.set_label("ann", 5)
    acted = follow(checkout, hub, "", labelled="2" * 40)
    assert (acted.code, acted.jobs, hub.labels) == (1, {"word": "failure"}, set()), acted.log
    assert "the head was pushed after the word" in hub.ours()[0]
    assert hub.statuses == []


def test_a_try_that_ends_without_an_answer_is_told(
    checkout: Checkout, hub: Hub, source: PlainRepository
) -> None:
    """The branch is merged already, so that there is nothing to try: found on the box."""
    commit = source.git("rev-parse", "HEAD").strip()
    hub.push(commit, 0)
    hub.pulls[NUMBER].base = "main"
    acted = follow(checkout, hub, hub.say("ann", "/tidemark try", 5))
    assert (acted.code, acted.jobs) == (0, dict.fromkeys(("word", "measure", "report"), "success")), acted.log
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


HEAD = "3" * 40


def commented(association: str) -> tuple[str, dict[str, object]]:
    comment = {"id": 12, "body": "/tidemark try $(x)", "author_association": association}
    return "issue_comment", {
        "action": "created",
        "issue": {"number": NUMBER, "pull_request": {}},
        "comment": comment,
    }


def labelled(name: str) -> tuple[str, dict[str, object]]:
    pull = {"number": NUMBER, "head": {"sha": HEAD, "ref": "$(x)"}, "title": "$(x)"}
    event = {"action": "labeled", "number": NUMBER, "label": {"name": name}, "pull_request": pull}
    return "pull_request_target", event


@pytest.mark.parametrize(
    ("event", "payload", "passed_on"),
    [
        (*commented("MEMBER"), ["comment=12", "labelled="]),
        (*commented("NONE"), None),
        (*labelled("tidemark-try"), ["comment=", f"labelled={HEAD}"]),
        (*labelled("tidemark"), None),
    ],
)
def test_a_word_is_passed_on_as_numbers_and_the_name_of_the_head(
    event: str,
    payload: dict[str, object],
    passed_on: list[str] | None,
    checkout: Checkout,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shutil.copy(PASSES_ON, checkout.tree / ".github/workflows/pass-on.yml")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/gh").write_text(PROGRAM)
    (tmp_path / "bin/gh").chmod(0o755)
    calls = tmp_path / "calls"
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    repository = {"full_name": REPOSITORY, "name": "alerts", "owner": {"login": "example"}}
    around = {"CALLS": str(calls), "GITHUB_REPOSITORY": REPOSITORY}
    acted = checkout.run(
        event,
        "pass-on.yml",
        payload={**payload, "repository": repository},
        environment=around,
        token=TOKEN,
    )
    assert (acted.code, TOKEN in acted.log) == (0, False), acted.log
    if passed_on is None:
        assert (acted.jobs, calls.exists()) == ({}, False)
        return
    assert acted.jobs == {"pass-on": "success"}, acted.log
    words = calls.read_text().splitlines()
    assert words[:5] == ["workflow", "run", PULLS, "--repo", "OWNER/TIDEMARK"]
    named = [word for word in words[5:] if word != "--raw-field"]
    assert named == [f"pull={PULL}", *passed_on]
