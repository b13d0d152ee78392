"""What a workflow has a box measure: commits to which a branch or tag leads, and none of a pull request."""

import os
import re
import shlex
from pathlib import Path

import pytest
import yaml

from build.home import ROOT, locate
from build.sources.git import mirror
from build.version import Engine
from runners import cli
from runners.bisect.run import builds
from tests.plain_repository import PlainRepository

PLAN = """
[boxes.db1]
label = "tidemark-db1"
[engines.postgres]
base = "postgres@17.11"
git = "{git}"
[[tasks]]
suite = "write-heavy"
profile = "smoke"
"""

NAMED = {"ENGINE": "postgres", "SUITE": "write-heavy", "STEP": "update-index", "BOX": "db1"}
OTHERS = {"PROFILE": "smoke", "METRIC": "qps", "DIRECTION": "worse"}

Commits = tuple[str, str, str]


class CompiledError(Exception):
    """A commit got as far as being compiled."""


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PlainRepository:
    """The plan's git source."""
    made = PlainRepository(tmp_path / "source")
    (tmp_path / "plan.toml").write_text(PLAN.format(git=made.path))
    monkeypatch.setenv("TIDEMARK_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)

    def compiled(*_: object, **__: object) -> None:
        raise CompiledError

    monkeypatch.setattr(builds, "provide", compiled)
    return made


@pytest.fixture
def commits(source: PlainRepository) -> Commits:
    """The first commit of main, the tip of a branch `topic`, and one that only a pull request leads to."""
    first = source.commit("src/server.c")
    source.git("checkout", "--quiet", "-b", "topic")
    topic = source.commit("src/server.c", "a topic")
    source.git("checkout", "--quiet", "--detach", "main")
    foreign = source.commit("src/server.c", "somebody's")
    source.git("update-ref", "refs/pull/1/head", foreign)
    source.git("checkout", "--quiet", "main")
    return first, topic, foreign


def measured(workflow: str, job: str, inputs: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> int:
    """Run the last command of a workflow's job, with the plan of the test; returns its exit code."""
    text = (ROOT / ".github/workflows" / workflow).read_text(encoding="utf-8")
    for name, value in {**NAMED, **OTHERS, **inputs, "RUNNER_TEMP": str(Path.cwd())}.items():
        monkeypatch.setenv(name, value)
    commands = [step["run"] for step in yaml.safe_load(text)["jobs"][job]["steps"] if "run" in step]
    command = commands[-1].replace("\\\n", " ")
    found = re.search(r"\./tidemark (.*?)(?: \|\| .*)?$", command, re.MULTILINE)
    assert found is not None
    name, *words = shlex.split(os.path.expandvars(found[1]))
    return cli.main([name, "--plan", "plan.toml", *words])


@pytest.mark.parametrize("is_known", [False, True], ids=["unknown", "in the mirror"])
@pytest.mark.parametrize("digits", [40, 12])
def test_a_commit_of_a_pull_request_is_not_tried(
    commits: Commits,
    source: PlainRepository,
    is_known: bool,
    digits: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    _, _, foreign = commits
    if is_known:
        mirror(str(source.path), Engine.POSTGRES, locate()).fetch(foreign)
    inputs = {"REF": foreign[:digits], "AGAINST": "main"}
    assert measured("try.yml", "measure", inputs, monkeypatch) == 2
    assert "no branch or tag leads to" in capsys.readouterr().err


@pytest.mark.parametrize("is_known", [False, True], ids=["unknown", "in the mirror"])
def test_a_commit_of_a_pull_request_is_not_searched(
    commits: Commits,
    source: PlainRepository,
    is_known: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    first, _, foreign = commits
    if is_known:
        mirror(str(source.path), Engine.POSTGRES, locate()).fetch(foreign)
    assert measured("bisect.yml", "search", {"GOOD": first, "BAD": foreign}, monkeypatch) == 2
    assert "no branch or tag leads to" in capsys.readouterr().err


def test_a_commit_of_a_branch_is_compiled(commits: Commits, monkeypatch: pytest.MonkeyPatch) -> None:
    first, topic, _ = commits
    for ref in ("topic", topic, topic[:10]):
        with pytest.raises(CompiledError):
            measured("try.yml", "measure", {"REF": ref, "AGAINST": "main"}, monkeypatch)
    with pytest.raises(CompiledError):
        measured("bisect.yml", "search", {"GOOD": first, "BAD": topic}, monkeypatch)


PULLS = "pull-request.yml"


@pytest.mark.parametrize("is_remote", [False, True], ids=["on this machine", "fetched"])
def test_a_commit_of_a_pull_request_is_tried_as_long_as_that_leads_to_it(
    is_remote: bool,
    commits: Commits,
    source: PlainRepository,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    _, topic, foreign = commits
    if is_remote:
        plan = Path("plan.toml")
        plan.write_text(plan.read_text().replace(f'"{source.path}"', f'"file://{source.path}"'))
    inputs = {"COMMIT": foreign, "AGAINST": "main", "NUMBER": "1"}
    with pytest.raises(CompiledError):
        measured(PULLS, "measure", inputs, monkeypatch)
    assert measured(PULLS, "measure", {**inputs, "COMMIT": topic}, monkeypatch) == 2
    assert "pull request 1 does not lead to" in capsys.readouterr().err
    assert measured(PULLS, "measure", {**inputs, "NUMBER": "2"}, monkeypatch) == 2
    # Somebody replaces what was reviewed: what the mirror has of it counts no more.
    source.git("update-ref", "refs/pull/1/head", topic)
    assert measured(PULLS, "measure", inputs, monkeypatch) == 2
    assert "pull request 1 does not lead to" in capsys.readouterr().err
    assert measured("try.yml", "measure", {"REF": foreign, "AGAINST": "main"}, monkeypatch) == 2


def test_a_person_on_the_box_may_try_any_commit(commits: Commits, source: PlainRepository) -> None:
    _, _, foreign = commits
    with pytest.raises(CompiledError):
        cli.main(["try", foreign, "--against", "main", "--git", str(source.path)])
