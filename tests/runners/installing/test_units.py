"""What unit files, hooks and sudo are told, also of awkward folders."""

import fcntl
import os
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from build.home import ROOT
from runners.installing import record
from runners.installing.escaping import word
from runners.installing.files import files, runtime_seconds
from runners.installing.machine import TargetMachine
from runners.installing.record import Record
from runners.installing.units import Installed, installed_units, plan_in_use
from runners.nightly.plan import load_plan
from tests.runners.installing.boxes import a_site

# --- what the units say


def keys(text: str) -> dict[str, str]:
    return dict(re.findall(r"^(\w+)=(.*)$", text, re.MULTILINE))


def test_a_night_is_limited_and_stops_in_order(tmp_path: Path) -> None:
    found = {file.path.name: keys(file.text) for file in files(a_site(tmp_path))}
    night = found["tidemark-nightly.service"]
    assert night["Type"] == "exec"  # RuntimeMaxSec= means nothing to a oneshot
    assert (night["WatchdogSec"], night["Restart"], night["NotifyAccess"]) == ("30min", "on-watchdog", "main")
    assert int(night["RuntimeMaxSec"]) == runtime_seconds(100) > 100 * 60
    assert (night["KillMode"], night["OOMPolicy"]) == ("mixed", "continue")
    assert int(night["TimeoutStopSec"]) >= 60
    assert night["OnSuccess"] == night["OnFailure"] == "tidemark-report.service"


def test_what_is_measured_has_no_token_and_no_filter(tmp_path: Path) -> None:
    """systemd.exec(5): these settings make a filter of system calls, which servers would inherit."""
    filters = {
        "SystemCallFilter",
        "SystemCallArchitectures",
        "RestrictAddressFamilies",
        "RestrictNamespaces",
        "RestrictRealtime",
        "RestrictSUIDSGID",
        "LockPersonality",
        "MemoryDenyWriteExecute",
        "PrivateDevices",
        "ProtectClock",
        "ProtectHostname",
        "ProtectKernelLogs",
        "ProtectKernelModules",
        "ProtectKernelTunables",
        "ProtectProc",
        "LoadCredential",
    }
    found = {file.path.name: keys(file.text).keys() for file in files(a_site(tmp_path))}
    assert not found["tidemark-nightly.service"] & filters
    assert {"LoadCredential", "SystemCallFilter", "ProtectSystem"} <= found["tidemark-report.service"]


def test_what_tells_people_is_another_user_than_what_measures(tmp_path: Path) -> None:
    """Only in another user, with no settings from the home that the other may write, is a credential safe."""
    found = {file.path.name: keys(file.text) for file in files(a_site(tmp_path))}
    users = {name: unit["User"] for name, unit in found.items() if "User" in unit}
    assert users == {
        "tidemark-nightly.service": "tidemark",
        "tidemark-report.service": "tidemark-report",
    }
    for name in users:
        assert found[name]["Group"] == "tidemark"
        assert ("LoadCredential" in found[name]) == (users[name] == "tidemark-report")
        assert ("HOME=/nonexistent" in found[name]["Environment"]) == (users[name] == "tidemark-report")


def test_units_that_tell_people_read_the_urls_of_routes(tmp_path: Path) -> None:
    site = replace(a_site(tmp_path), route_credentials=("tidemark-notify-team",))
    found = {file.path.name: file.text.splitlines() for file in files(site)}
    telling = [name for name, lines in found.items() if "LoadCredential=tidemark-notify-team" in lines]
    assert telling == ["tidemark-report.service"]


def test_root_may_write_no_more_than_settings_and_its_state(tmp_path: Path) -> None:
    found = {file.path.name: keys(file.text) for file in files(a_site(tmp_path))}
    for unit in ("tidemark-tune.service", "tidemark-restore.service"):
        assert found[unit]["ProtectSystem"] == "strict"
        assert found[unit]["ReadWritePaths"] == f"{tmp_path}/home -/run/lock"
        # flock(1) creates a file through a link, which in /run/lock anybody may have made.
        assert found[unit]["ExecCondition"].startswith("/usr/bin/setpriv --reuid=tidemark --regid=tidemark ")


def test_a_machine_that_measures_is_left_alone(tmp_path: Path) -> None:
    """systemd skips a unit whose condition ends with 1 to 254, but SuccessExitStatus= goes for it, too."""
    found = {file.path.name: keys(file.text) for file in files(a_site(tmp_path))}
    lock = tmp_path / "tidemark.lock"
    for unit in ("tidemark-tune.service", "tidemark-restore.service"):
        _, _, command = found[unit]["ExecCondition"].partition("--clear-groups ")
        condition = command.replace("/run/lock/tidemark.lock", str(lock)).split()
        if unit == "tidemark-tune.service":
            condition[condition.index("--timeout") + 1] = "0.1"
        assert subprocess.run(condition, check=False).returncode == 0
        with lock.open("w") as measuring:
            fcntl.flock(measuring, fcntl.LOCK_EX)
            skipped = subprocess.run(condition, check=False).returncode
        assert 1 <= skipped <= 254
        assert str(skipped) not in found[unit].get("SuccessExitStatus", "").split()


def test_the_limit_of_the_unit_is_that_of_the_workflow() -> None:
    text = (ROOT / ".github/workflows/box.yml").read_text()
    limit = max(map(int, re.findall(r"timeout-minutes: (\d+)", text))) * 60
    boxes = load_plan(ROOT / "runners/nightly.toml").boxes.values()
    assert [runtime_seconds(box.budget_minutes) for box in boxes] == [limit]


AWKWARD = ["plain", "with blanks", "100%/%h", "a$HOME", 'quo"te', "back\\slash", "it's", "semi;colon"]


@pytest.mark.parametrize("name", AWKWARD)
def test_systemd_reads_units_of_awkward_folders(name: str, tmp_path: Path) -> None:
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("systemd-analyze is not installed")
    folder = tmp_path / name
    folder.mkdir(parents=True)
    checkout = folder if not set(name) & set("\"'\\") else tmp_path
    (checkout / "tidemark").write_text("#!/bin/sh\n")
    (checkout / "tidemark").chmod(0o755)
    units = tmp_path / "units"
    units.mkdir()
    for file in files(replace(a_site(folder), checkout=checkout)):
        (units / file.path.name).write_text(file.text)
    done = subprocess.run(
        [program, "verify", "--man=no", *map(str, units.iterdir())],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    # A program that is not there, because its path was read otherwise, is among what it complains of.
    assert (done.returncode, done.stderr) == (0, "")


PRINTABLE = st.characters(min_codepoint=32, max_codepoint=0x2FF, categories=("L", "N", "P", "S", "Zs"))


@given(st.text(PRINTABLE))
def test_a_word_is_read_back(text: str) -> None:
    assert unescaped(word(text, is_argument=True)) == text
    assert "\n" not in word(text)


def unescaped(text: str) -> str:
    """What systemd makes of a word: first quotes and backslashes, then specifiers and dollars."""
    if text.startswith('"'):
        assert text.endswith('"')
        text = re.sub(r"\\(.)", r"\1", text[1:-1])
    else:
        assert not re.search(r"[\s\"'\\;]", text)
        assert text
    return text.replace("$$", "$").replace("%%", "%")


@pytest.mark.parametrize("name", AWKWARD)
def test_a_hook_runs_the_launcher_of_an_awkward_folder(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # GitHub's runner gives hooks what it gives jobs; the environment of those has other packages.
    monkeypatch.setenv("TIDEMARK_VENV", "/that/of/jobs")
    folder = tmp_path / name
    folder.mkdir(parents=True)
    (folder / "tidemark").write_text('#!/bin/sh\necho "$TIDEMARK_HOME ${TIDEMARK_VENV-own} $*"\n')
    (folder / "tidemark").chmod(0o755)
    found = {file.path.name: file.text for file in files(a_site(folder, agent=folder))}
    script = tmp_path / "hook.sh"
    script.write_text(found["job-started.sh"])
    done = subprocess.run(["sh", str(script)], capture_output=True, text=True, check=True)
    assert done.stdout == f"{folder}/home own runner hook started\n"


def test_sudo_takes_what_it_is_given(tmp_path: Path) -> None:
    program = shutil.which("visudo", path=f"{os.environ['PATH']}:/usr/sbin")
    if program is None:
        pytest.skip("visudo is not installed")
    (text,) = (file.text for file in files(a_site(tmp_path, agent=tmp_path)) if file.path.name == "tidemark")
    (tmp_path / "sudoers").write_text(text)
    subprocess.run([program, "--check", "--file", str(tmp_path / "sudoers")], check=True)


# --- what is installed


def test_installed_units_say_how_they_are_installed_again(tmp_path: Path) -> None:
    machine = TargetMachine(tmp_path / "root")
    assert installed_units(machine, tmp_path) == Installed()
    plan, agent = tmp_path / 'a "plan" of 100 % $x.toml', tmp_path / "agent"
    site = replace(a_site(tmp_path, agent), plan=plan, at="01:30")
    for file in files(site):
        machine.write(file.path, file.text, file.mode)
    record.save(machine, Record(agent_lines=("x=y",), agent_file=str(agent / ".env")))
    found = installed_units(machine, tmp_path)
    assert found.plan == plan
    assert found.variables == site.environment
    assert found.words == (
        *("runner", "install", "--plan", str(plan), "--box", "db1", "--home", str(tmp_path / "home")),
        *("--user", "tidemark", "--at", "01:30", "--actions-runner", str(agent)),
    )
    assert installed_units(machine, tmp_path / "another checkout") == Installed()
    assert plan_in_use(None, machine, tmp_path) == plan
    assert plan_in_use("another.toml", machine, tmp_path) == Path("another.toml")
    assert plan_in_use(None, machine, tmp_path / "another checkout") == ROOT / "runners/nightly.toml"
