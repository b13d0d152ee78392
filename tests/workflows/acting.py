"""Runs workflows of a copy of this checkout on this machine, in act, and tells what each job came to."""

import filecmp
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest

from build.home import ROOT, Home
from tests.programs import ACT, required

HOSTED = ("ubuntu-24.04", "ubuntu-26.04")
"""The labels of GitHub's own runners that workflows use."""

SECRETS = ("GITHUB_TOKEN", "PULL_REQUESTS_TOKEN", "TIDEMARK_TOKEN")
"""The names of the secrets that workflows use."""

UPLOAD = re.compile(r"actions/upload-artifact@[0-9a-f]{40}")

UPLOADS = """
name: stands in for the upload of an artifact
inputs:
  path: {required: true}
  archive: {default: "true"}
  if-no-files-found: {default: warn}
runs:
  using: composite
  steps:
    - shell: bash
      env: {FILE: "${{ inputs.path }}"}
      run: 'if [ -e "$FILE" ]; then cp "$FILE" "$ARTIFACTS"; fi'
"""

SECONDS = 900
"""After which a workflow is taken to hang: on a busy machine rounds are measured again."""

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")


@dataclass
class Acted:
    """What a run of a workflow came to."""

    code: int
    jobs: dict[str, str] = field(default_factory=dict)
    """Of each job that ran, by id: `success` or `failure`. A job without a runner is left out, quietly."""

    outputs: dict[str, str] = field(default_factory=dict)
    """Of all steps."""

    summaries: dict[str, str] = field(default_factory=dict)
    """Id of a job -> Markdown."""

    lines: list[str] = field(default_factory=list)
    """What the steps printed."""

    log: str = ""
    """All that act wrote."""

    @property
    def printed(self) -> str:
        """What the steps printed, as one text."""
        return "".join(self.lines)


class Checkout:
    """A copy of the files of this checkout, with a plan of its own, in which workflows run."""

    def __init__(self, folder: Path, home: Home, plan: str, labels: tuple[str, ...]) -> None:
        """`labels` are those of runners that there are; `folder` is empty. Skips the test without act."""
        self._act, self._home = required(ACT), home
        self.tree, self._xdg = folder / "tree", folder / "xdg"
        self.artifacts = folder / "artifacts"
        self.artifacts.mkdir(parents=True)
        self.programs = folder / "programs"
        self.programs.mkdir()
        """What jobs find first on their path."""
        self._upload = folder / "upload"
        self._upload.mkdir()
        (self._upload / "action.yml").write_text(UPLOADS, encoding="utf-8")
        self._copy()
        (self.tree / "runners/nightly.toml").write_text(plan, encoding="utf-8")
        self._commit()
        hosts = "".join(f"-P {label}=-self-hosted\n" for label in (*HOSTED, *labels))
        (self._xdg / "config/act").mkdir(parents=True)
        (self._xdg / "config/act/actrc").write_text(hosts, encoding="utf-8")

    def _copy(self) -> None:
        listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        names = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout
        for name in filter(None, names.split("\0")):
            if (ROOT / name).is_file():
                (self.tree / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, self.tree / name)
        environment = Path(sys.prefix)
        if not filecmp.cmp(ROOT / "requirements.txt", environment / "requirements.txt", shallow=False):
            pytest.skip(f"the packages of {environment} are not those of requirements.txt: ./tidemark setup")

    def _commit(self) -> None:
        for words in (["init", "--quiet"], ["add", "--all"], ["commit", "--quiet", "--message", "A plan"]):
            identity = ["-c", "user.name=nobody", "-c", "user.email=nobody@example.com"]
            own = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
            subprocess.run(["git", *identity, *words], cwd=self.tree, env=own, check=True)

    def run(
        self,
        event: str,
        workflow: str,
        *,
        inputs: Mapping[str, str] | None = None,
        payload: Mapping[str, object] | None = None,
        environment: Mapping[str, str] | None = None,
        token: str = "none",
    ) -> Acted:
        """Run a workflow to its end, with what GitHub says of the event, more variables of the environment,
        and a token as every secret."""
        command = [str(self._act), event, "--workflows", f".github/workflows/{workflow}", "--json"]
        command += ["--no-cache-server"]  # it would listen on an address that others can reach
        for action in sorted(set(UPLOAD.findall(self._text(workflow)))):
            command += ["--local-repository", f"{action}={self._upload}"]
        command += ["--insecure-secrets"]  # act would hide them; what prints one is to be seen
        if payload is not None:
            said = self._xdg / "event.json"
            said.write_text(json.dumps(payload), encoding="utf-8")
            command += ["--eventpath", str(said)]
        for name, value in (inputs or {}).items():
            command += ["--input", f"{name}={value}"]
        for name, value in (environment or {}).items():
            command += ["--env", f"{name}={value}"]
        # In a file: every job has what is in act's environment, and its words are in the list of processes.
        secrets = self._xdg / "secrets"
        secrets.write_text("".join(f"{name}={token}\n" for name in SECRETS), encoding="utf-8")
        command += ["--secret-file", str(secrets)]
        with subprocess.Popen(
            command,
            cwd=self.tree,
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as act:
            try:
                log, _ = act.communicate(timeout=SECONDS)
            finally:
                _end(act)
        assert "installing the Python packages" not in log, "a job made an environment of its own"
        return _read(act.returncode, log)

    def _text(self, workflow: str) -> str:
        return (self.tree / ".github/workflows" / workflow).read_text(encoding="utf-8")

    def _environment(self) -> dict[str, str]:
        # Bytecode of libraries is there already; that of a job's copy of ours goes with the copy.
        unwanted = ("GITHUB_", "ACT_", "PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(unwanted)}
        return kept | {
            "XDG_CONFIG_HOME": str(self._xdg / "config"),
            "XDG_CACHE_HOME": str(self._xdg / "cache"),
            "TIDEMARK_HOME": str(self._home.path),
            # As on a box: a job's own checkout has none, and would make one.
            "TIDEMARK_VENV": sys.prefix,
            "ARTIFACTS": str(self.artifacts),
            "PATH": f"{self.programs}:{os.environ['PATH']}",
        }


def _end(act: "subprocess.Popen[str]") -> None:
    """Of an act that hangs, and of one whose test is interrupted: its jobs have sessions of their own."""
    if act.poll() is None:
        jobs = psutil.Process(act.pid).children(recursive=True)
        act.terminate()
        for job in jobs:
            with suppress(psutil.NoSuchProcess):
                job.terminate()


def _read(code: int, log: str) -> Acted:
    """Of act's lines of JSON."""
    acted = Acted(code, log=log)
    for line in log.splitlines():
        try:
            told: dict[str, Any] = json.loads(line)
        except ValueError:
            continue
        job = told.get("jobID", "")
        if "jobResult" in told:
            acted.jobs[job] = told["jobResult"]
        elif told.get("command") == "set-output":
            acted.outputs[told["name"]] = told["arg"]
        elif told.get("command") == "summary":
            acted.summaries[job] = told["content"]
        elif told.get("raw_output"):
            acted.lines.append(_ESCAPES.sub("", told["msg"]))
    return acted
