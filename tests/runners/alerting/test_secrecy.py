"""The token is nowhere: not in output, logs, files, the history, arguments, or what is started."""

import base64
import logging
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from build.compile_commands import CompileCommands
from build.finished_build import Build
from build.home import ROOT, Home
from build.progress import Progress
from build.sources import git
from build.version import Engine
from history.store.writer import Store
from runners.alerting.tokens import required_token
from runners.cli import main
from runners.measuring.request import Request
from runners.measuring.session import SessionOutcome
from runners.nightly import night as night_module
from suites.generators.programs import lines_of
from suites.processes import run, start
from tests.history.watched import record_regression
from tests.runners.alerting.conftest import STAND_INS, every_tracker, plan_text
from tests.runners.alerting.github import TOKEN, Fault, GitHub, running
from tests.runners.onlooker import Onlooker

WRONG = "ghs_another_secret_that_is_wrong"


def traces(secret: str) -> list[bytes]:
    """The forms in which it could be written down."""
    plain = secret.encode()
    return [plain, base64.b64encode(plain)[:-4], plain.hex().encode(), plain[len(plain) // 2 :]]


def require_secret(secret: str, *texts: str, folder: Path) -> None:
    """Fails when the secret is in a text, or in a file below `folder`."""
    for trace in traces(secret):
        for text in texts:
            assert trace not in text.encode()
        files = [path for path in folder.rglob("*") if path.is_file()]
        assert any(path.name == "history.db" for path in files)
        assert [path for path in files if trace in path.read_bytes()] == []


@pytest.fixture
def github(request: pytest.FixtureRequest) -> Iterator[GitHub]:
    with running(STAND_INS[getattr(request, "param", "github")]) as github:
        yield github


@pytest.fixture(scope="module")
def regressed(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A history with something to tell."""
    path = tmp_path_factory.mktemp("history") / "history.db"
    record_regression(path)
    return path.read_bytes()


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, github: GitHub, regressed: bytes) -> Path:
    (tmp_path / "home").mkdir()
    (tmp_path / "home/history.db").write_bytes(regressed)
    monkeypatch.setenv("TIDEMARK_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("GITHUB_API_URL", github.url)
    monkeypatch.setenv(f"{github.kind.upper()}_TOKEN", TOKEN)
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "home/step.md"))
    path = tmp_path / "plan.toml"
    path.write_text(plan_text(github))
    return path


FAULTS = {
    "none": Fault(after=True),
    "no answer": Fault(),
    "401": Fault(401, echoes=True),
    "403": Fault(403, echoes=True),
    "404": Fault(404, echoes=True),
    "422": Fault(422, echoes=True),
    "429": Fault(429, {"Retry-After": "30"}, echoes=True),
    "502 after success": Fault(502, after=True, echoes=True),
    "reset": Fault(cut=True),
}


@every_tracker
@pytest.mark.parametrize("fault", FAULTS)
def test_whatever_the_tracker_answers(
    fault: str,
    plan: Path,
    github: GitHub,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    github.faults = [FAULTS[fault]]
    with caplog.at_level(logging.DEBUG):
        assert main(["nightly", "--report", "--plan", str(plan)]) in (1, 2)
    said = capfd.readouterr()
    assert github.requests
    assert "urllib3" in {record.name.partition(".")[0] for record in caplog.records}
    require_secret(TOKEN, said.out, said.err, caplog.text, folder=tmp_path / "home")


def test_a_wrong_token_is_not_told_either(
    plan: Path,
    github: GitHub,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", WRONG)
    github.faults = [Fault(401, echoes=True)]
    assert main(["nightly", "--report", "--plan", str(plan)]) in (1, 2)
    said = capfd.readouterr()
    assert "the tracker answered 401: fault 401 of token (token)" in said.out
    require_secret(WRONG, said.out, said.err, folder=tmp_path / "home")


# --- other processes


def command(plan: Path, *words: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "runners", "nightly", "--plan", str(plan), *words],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd="/",
    )


def test_no_process_is_told_it_as_an_argument(plan: Path, github: GitHub, tmp_path: Path) -> None:
    github.faults = [Fault(wait=0.5, after=True)]
    with command(plan, "--report") as night, Onlooker(night.pid) as onlooker:
        said, errors = night.communicate(timeout=60)
    assert len(github.issues) == 1
    assert any(str(plan) in argument for argument in onlooker.arguments)
    require_secret(TOKEN, said, errors, *onlooker.arguments, folder=tmp_path / "home")


def test_nothing_that_is_started_inherits_it(
    plan: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """By every way in which servers, builds, sources and load generators are started."""
    found: list[str] = []
    monkeypatch.setenv("TIDEMARK_TOKEN", TOKEN)
    monkeypatch.setenv("ACTIONS_RUNTIME_TOKEN", TOKEN)

    def session(request: Request, home: Home, store: Store, progress: Progress) -> SessionOutcome:
        with (tmp_path / "server.log").open("wb") as log:
            start(["env"], log).wait()
        found.append((tmp_path / "server.log").read_text())
        found.append(run(["env"], what="env"))
        found.append("\n".join(line for _, line in lines_of(["env"], 10)))
        log_file = tmp_path / "compile.log"
        log_file.touch()
        CompileCommands("x", log_file, dict(os.environ), re.compile(b"gcc")).run("env", ["env"], tmp_path)
        found.append(log_file.read_text())
        monkeypatch.setenv("GIT_SSH_COMMAND", f"env > {tmp_path}/ssh.log; false")
        monkeypatch.setenv("PGPASSWORD", TOKEN)  # which a history on a server may need, and git does not
        with pytest.raises(git.GitError):
            git.mirror("ssh://example.org/x.git", Engine.POSTGRES, home).fetch("main")
        found.append((tmp_path / "ssh.log").read_text())
        assert required_token("github") == TOKEN
        return SessionOutcome(uid="x")

    monkeypatch.setattr(night_module, "run_session", session)
    assert main(["nightly", "--measure", "--plan", str(plan)]) in (0, 2)
    said = capfd.readouterr()
    assert "problem" not in said.out
    assert len(found) == 5
    assert all("PATH=" in told for told in found)
    require_secret(TOKEN, *found, said.out, said.err, folder=tmp_path / "home")
    assert os.environ["TIDEMARK_TOKEN"] == TOKEN


@pytest.mark.server
def test_no_server_of_a_real_night_inherits_it(
    home: Home,  # before the plan, which names another: it shares the builds of the real one
    plan: Path,
    github: GitHub,
    monkeypatch: pytest.MonkeyPatch,
    postgres_17: Build,
    postgres_18: Build,
) -> None:
    monkeypatch.setenv("TIDEMARK_HOME", str(home.path))
    # Seldom: who looks all the time disturbs the rounds, which are measured again then.
    with command(plan) as night, Onlooker(night.pid, 0.25) as onlooker:
        deadline = time.monotonic() + 300
        said, errors = night.communicate(timeout=deadline - time.monotonic())
    assert night.returncode in (0, 1), errors
    programs = {program for program, _ in onlooker.environments.values()}
    assert {"postgres", "sysbench"} <= programs
    texts = [told for _, told in onlooker.environments.values()]
    for trace in traces(TOKEN):
        assert not any(trace in text.encode() for text in (*texts, *onlooker.arguments, said, errors))
        own = [path for path in home.path.iterdir() if path.is_file()]
        assert not any(trace in path.read_bytes() for path in own)
