"""A commit under test that looks for secrets of whoever measures it: its configure reads all that it may."""

import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from build.accounts import blocked_folder
from build.finished_build import Build
from build.home import ROOT
from tests.build.stand import Repository, Stand
from tests.history.watched import record_regression
from tests.runners.alerting.conftest import plan_text
from tests.runners.alerting.github import REPOSITORY, TOKEN, Fault, running

NOBODY = 65534

SPY = """
import glob, os, re

# What it looks for is put together, so that it does not find itself.
wanted = re.compile("|".join((r"mar" + r"lin-[a-z]+-[0-9a-f]+", "gh" + r"s_\\w+")).encode())
found = [f"user {os.getuid()}"]


def read(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def memory(process):
    for line in read(f"{process}/maps").decode(errors="replace").splitlines():
        words = line.split()
        if words[1].startswith("rw"):
            first, last = (int(end, 16) for end in words[0].split("-"))
            try:
                with open(f"{process}/mem", "rb") as file:
                    file.seek(first)
                    yield file.read(last - first)
            except (OSError, ValueError, OverflowError):
                pass


for process in glob.glob("/proc/[0-9]*"):
    if process == f"/proc/{os.getpid()}":
        continue
    seen = [read(f"{process}/environ"), read(f"{process}/cmdline")]
    # Root may read the memory of every process, that of this test included.
    seen += memory(process) if os.getuid() else []
    for text in seen:
        found += [f"{process} {secret.decode()}" for secret in wanted.findall(text)]
print(*found, sep="\\n")
"""


@dataclass
class Attack:
    """A repository whose branch looks for secrets when it is compiled, and a home of who compiles."""

    folder: Path
    repository: Repository
    user: int

    @property
    def found(self) -> set[str]:
        """What the last compile found, after who it was."""
        return secrets_in((self.folder / "spied/found").read_text())

    def run(self, *words: str, **secret: str) -> "subprocess.CompletedProcess[str]":
        given = {"TIDEMARK_GIT_POSTGRES": str(self.repository.path), **secret}
        return run_as(self.user, self.user, self.folder, words, given)


def secrets_in(said: str) -> set[str]:
    """What the spy found, after who it was."""
    user, *found = said.splitlines()
    assert user.startswith("user ")
    return {line.split()[1] for line in found}


def run_as(
    user: int, group: int, folder: Path, words: Sequence[str], variables: Mapping[str, str]
) -> "subprocess.CompletedProcess[str]":
    """Run a command of Tidemark as a user who may enter the folders of this Python, in `home` of a folder."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    own = {
        "HOME": str(folder),
        "TIDEMARK_HOME": str(folder / "home"),
        "TIDEMARK_LOCK": str(folder / "home/lock"),
        "PYTHONPATH": str(ROOT),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    command = [sys.executable, "-P", "-X", "utf8", "-m", "runners", *words]
    return subprocess.run(
        as_user(user, group, folder, command),
        env={**kept, **own, **variables},
        capture_output=True,
        text=True,
        cwd="/",
        check=False,
        timeout=300,
    )


def as_user(user: int, group: int, folder: Path, command: Sequence[str]) -> list[str]:
    """The words of a command by another user, who may enter the folders of this Python."""
    python = Path(sys.base_prefix).resolve()
    blocked = blocked_folder(python) if user else None
    lent = ["sh", "-ec", LEND, "lend", str(folder), str(python), str(blocked or "")]
    become = ["setpriv", f"--reuid={user}", f"--regid={group}", "--clear-groups", "--"]
    return ["unshare", "--mount", "--propagation", "private", *lent, *become, *command]


LEND = """
folder=$1 python=$2 blocked=$3; shift 3
if [ -n "$blocked" ]; then
    mkdir -p "$folder/python"; mount --bind "$python" "$folder/python"
    mount -t tmpfs tmpfs "$blocked"; chmod 755 "$blocked"
    mkdir -p "$python"; mount --bind "$folder/python" "$python"
fi
exec "$@"
"""
"""Of all that is in a folder that others cannot enter, such as /root, only this Python is there."""


@pytest.fixture
def folder() -> Iterator[Path]:
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("becoming other users needs root, and unshare")
    if (blocked := blocked_folder(ROOT)) is not None:
        pytest.skip(f"other users cannot enter {blocked}")
    folder = Path(tempfile.mkdtemp(prefix="tidemark-spy-"))
    try:
        folder.chmod(0o755)
        yield folder
    finally:
        shutil.rmtree(folder)


@pytest.fixture(params=["root", "nobody"])
def attack(request: pytest.FixtureRequest, folder: Path) -> Attack:
    user = NOBODY if request.param == "nobody" else 0
    stand = Stand(folder / "source", folder / "spied/configured")
    stand.folder.mkdir()
    repository = Repository(stand.folder, stand)
    repository.git("init", "--quiet", "--initial-branch=main")
    repository.commit("A commit")
    (folder / "spied").mkdir()
    (folder / "spied").chmod(0o777)
    (folder / "spy.py").write_text(SPY)
    look = f"#!/bin/sh\npython3 '{folder}/spy.py' >'{folder}/spied/found'\n"
    configure = repository.path / "configure"
    configure.write_text(configure.read_text().replace("#!/bin/sh\n", look, 1))
    repository.git("commit", "--quiet", "--all", "--message", "Look around")
    (folder / "home").mkdir()
    give(user, user, folder / "home", repository.path)
    return Attack(folder, repository, user)


def give(user: int, group: int, *folders: Path) -> None:
    for folder in folders:
        for path in (folder, *folder.rglob("*")):
            os.chown(path, user, group, follow_symlinks=False)


def marlin(name: str) -> str:
    return f"marlin-{name}-{secrets.token_hex(4)}"


@pytest.mark.deep("real processes spy on each other")
def test_a_compile_finds_no_secret_of_who_began_it(attack: Attack) -> None:
    given = {
        "GITHUB_TOKEN": marlin("token"),
        "TIDEMARK_NOTIFY_TEAM": marlin("route"),
        "TIDEMARK_TOKEN": marlin("other"),
    }
    if attack.user:  # what root does not drop, root may read
        given |= {"PGPASSWORD": marlin("password"), "AWS_SECRET_ACCESS_KEY": marlin("key")}
    done = attack.run("build", "postgres@main", **given)
    assert done.returncode == 0, done.stderr
    assert attack.found & {*given.values()} == set()
    assert not any(secret in done.stdout + done.stderr for secret in given.values())


@pytest.mark.server
@pytest.mark.parametrize("attack", ["nobody"], indirect=True)
def test_a_night_that_reports_measures_without_its_token(attack: Attack, postgres_18: Build) -> None:
    """One command, with the token: what is compiled finds nothing, and the tracker is asked with it."""
    plan = attack.folder / "plan.toml"
    plan.write_text(
        f"""
[boxes.here]
label = "tidemark-here"
hostname = "*"
[engines.postgres]
base = "postgres@old={postgres_18.prefix}"
branches = ["main"]
[[tasks]]
suite = "write-heavy"
profile = "smoke"
steps = ["insert"]
seconds = 0.5
rounds = 1
exact = false
perf = false
keep_disturbed = true
[alerts]
repository = "{REPOSITORY}"
"""
    )
    with running() as github:
        done = attack.run("nightly", "--plan", str(plan), GITHUB_TOKEN=TOKEN, GITHUB_API_URL=github.url)
        assert github.requests, done.stdout + done.stderr
        assert github.violations == []
    # The stand-in compiles, and is no server.
    assert done.returncode == 2
    assert "postgres@main" in done.stdout
    assert "alerts wait" not in done.stdout
    assert attack.found & {TOKEN} == set()


# --- two users of one home, as on a box


MEASURES, REPORTS = (40001, 40001), (40002, 40001)
"""User and group of who measures and who reports."""


@pytest.mark.deep("real processes spy on each other")
def test_who_reports_shares_the_home_and_nothing_else(folder: Path) -> None:
    """While it tells, the user who measures looks for its token; before and after, both write the history."""
    home, credentials = folder / "home", folder / "credentials"
    record_regression(home / "history.db")
    (home / "backups").mkdir()
    give(*MEASURES, home)
    for path in (home, home / "backups"):
        path.chmod(0o775)  # as `runner install` makes them
    credentials.mkdir(mode=0o700)
    (credentials / "tidemark-github-token").write_text(TOKEN)
    give(*REPORTS, credentials)
    (folder / "spy.py").write_text(SPY)
    plan = folder / "plan.toml"
    with running() as github:
        plan.write_text(plan_text(github))
        told = {
            "CREDENTIALS_DIRECTORY": str(credentials),
            "GITHUB_API_URL": github.url,
            "HOME": "/nonexistent",
        }
        report = ("nightly", "--report", "--plan", str(plan))
        alone = run_as(*MEASURES, folder, report, {})
        assert (alone.returncode, "alerts wait in the outbox (1)" in alone.stdout) == (1, True), alone.stderr

        github.faults = [Fault(wait=2.0, after=True)]
        with ThreadPoolExecutor(1) as pool:
            reported = pool.submit(run_as, *REPORTS, folder, report, told)
            spied = set[str]()
            while not reported.done():
                spied |= secrets_in(look_around(folder, *MEASURES))
                time.sleep(0.3)
        assert reported.result().returncode == 0, reported.result().stdout + reported.result().stderr
        assert (len(github.issues), github.violations) == (1, [])
        assert spied == set()
    (copy,) = (home / "backups").glob("history-*.db")
    assert copy.stat().st_uid in (MEASURES[0], REPORTS[0])
    judged = run_as(*MEASURES, folder, ("history", "judge"), {})
    assert judged.returncode in (0, 1), judged.stderr
    again = run_as(*MEASURES, folder, report, {})
    assert again.returncode == 2, again.stdout + again.stderr
    assert "could not be" not in again.stdout


def look_around(folder: Path, user: int, group: int) -> str:
    spy = as_user(user, group, folder, [sys.executable, "-I", str(folder / "spy.py")])
    return subprocess.run(spy, capture_output=True, text=True, check=True, cwd="/").stdout
