"""What units and sudo are told, and what is refused before anything is changed."""

import fcntl
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from pwd import struct_passwd

import pytest

from build.home import ROOT
from runners.cli import main
from runners.nightly.heartbeat import STALE_MINUTES
from runners.nightly.plan import load_plan
from runners.service import install, installed
from runners.service.install import (
    InstallError,
    Site,
    files,
    require_accounts,
    require_own,
    require_reachable,
)

HOME = Path("/var/lib/tidemark")
SITE = Site("db1", HOME, credentials=("tidemark-github-token", "tidemark-notify-team"))


def units(site: Site = SITE) -> dict[str, dict[str, str]]:
    """Unit -> its keys; of a key that is repeated the last value."""
    return {
        path.name: dict(re.findall(r"^(\w+)=(.*)$", text, re.MULTILINE))
        for path, text in files(site).items()
        if path.parent == install.UNITS
    }


def test_four_units_run_the_checkout_with_the_plan_and_the_environment_of_the_box() -> None:
    found = units()
    assert set(found) == set(install.UNIT_NAMES)
    for name, part in (("tidemark-nightly.service", "--measure"), ("tidemark-report.service", "--report")):
        command = f"{ROOT}/tidemark nightly {part} --plan /etc/tidemark/nightly.toml"
        assert found[name]["ExecStart"] == command
        assert found[name]["EnvironmentFile"] == str(installed.ENVIRONMENT)
    assert files(SITE)[installed.ENVIRONMENT].splitlines()[1:] == [
        f"TIDEMARK_HOME={HOME}",
        "TIDEMARK_USER=tidemark",
        "TIDEMARK_BOX=db1",
        f"TIDEMARK_CHECKOUT={ROOT}",
    ]


def test_a_night_is_limited_begun_again_when_it_hangs_and_stops_in_order() -> None:
    night = units()["tidemark-nightly.service"]
    assert night["Type"] == "exec"  # RuntimeMaxSec= means nothing to a oneshot
    assert (night["WatchdogSec"], night["Restart"]) == (f"{STALE_MINUTES:.0f}min", "on-watchdog")
    assert (night["KillMode"], night["OOMPolicy"], night["NotifyAccess"]) == ("mixed", "continue", "main")
    assert int(night["TimeoutStopSec"]) >= 60
    assert night["OnSuccess"] == night["OnFailure"] == "tidemark-report.service"


def test_the_limit_of_the_unit_is_that_of_the_workflow_and_beyond_budgets() -> None:
    text = (ROOT / ".github/workflows/box.yml").read_text()
    hours = max(map(int, re.findall(r"timeout-minutes: (\d+)", text))) // 60
    assert units()["tidemark-nightly.service"]["RuntimeMaxSec"] == f"{hours}h"
    boxes = load_plan(ROOT / "runners/nightly.toml").boxes.values()
    assert all(60 * (hours - 15) >= box.budget_minutes for box in boxes)  # no session takes longer


def test_what_is_measured_has_no_token_and_no_filter() -> None:
    """systemd.exec(5): these settings make a filter of system calls, which servers would inherit."""
    filters = {
        *("SystemCallFilter", "SystemCallArchitectures", "RestrictAddressFamilies", "RestrictNamespaces"),
        *("RestrictRealtime", "RestrictSUIDSGID", "LockPersonality", "MemoryDenyWriteExecute"),
        *("PrivateDevices", "ProtectClock", "ProtectHostname", "ProtectKernelLogs", "ProtectKernelModules"),
        *("ProtectKernelTunables", "ProtectProc", "LoadCredential"),
    }
    found = units()
    assert not found["tidemark-nightly.service"].keys() & filters
    report = found["tidemark-report.service"]
    assert {"LoadCredential", "SystemCallFilter", "ProtectSystem"} <= report.keys()
    text = files(SITE)[install.UNITS / "tidemark-report.service"]
    assert re.findall(r"^LoadCredential=(.*)$", text, re.MULTILINE) == list(SITE.credentials)


def test_what_tells_people_is_another_user_than_what_measures() -> None:
    """Only in another user, with no settings from the home that the other may write, is a credential safe."""
    found = units()
    users = {name: unit["User"] for name, unit in found.items() if "User" in unit}
    assert users == {
        "tidemark-nightly.service": "tidemark",
        "tidemark-report.service": "tidemark-report",
    }
    assert found["tidemark-report.service"]["Environment"] == "HOME=/nonexistent"
    assert {found[name]["Group"] for name in users} == {"tidemark"}


def test_root_may_write_no_more_than_settings_and_its_state(tmp_path: Path) -> None:
    """systemd skips a unit whose condition ends with 1 to 254, but SuccessExitStatus= goes for it, too."""
    tune = units()["tidemark-tune.service"]
    assert (tune["ProtectSystem"], tune["ReadWritePaths"]) == ("strict", f"{HOME} -/run/lock")
    # flock(1) creates a file through a link, which in /run/lock anybody may have made.
    assert tune["ExecCondition"].startswith("/usr/bin/setpriv --reuid=tidemark --regid=tidemark ")
    lock = tmp_path / "tidemark.lock"
    command = tune["ExecCondition"].partition("--clear-groups ")[2]
    condition = command.replace("/run/lock/tidemark.lock", str(lock)).split()
    condition[condition.index("--timeout") + 1] = "0.1"
    assert subprocess.run(condition, check=False).returncode == 0
    with lock.open("w") as measuring:
        fcntl.flock(measuring, fcntl.LOCK_EX)
        skipped = subprocess.run(condition, check=False).returncode
    assert 1 <= skipped <= 254
    assert str(skipped) not in tune.get("SuccessExitStatus", "").split()


def test_systemd_and_sudo_take_what_they_are_given(tmp_path: Path) -> None:
    program, visudo = (
        shutil.which("systemd-analyze"),
        shutil.which("visudo", path=f"{os.environ['PATH']}:/usr/sbin"),
    )
    if program is None or visudo is None:
        pytest.skip("systemd-analyze or visudo is not installed")
    (tmp_path / "tidemark").write_text("#!/bin/sh\n")
    (tmp_path / "tidemark").chmod(0o755)
    (tmp_path / "units").mkdir()
    for path, text in files(replace(SITE, checkout=tmp_path)).items():
        if path.parent == install.UNITS:
            (tmp_path / "units" / path.name).write_text(text)
        elif path == install.SUDOERS:
            (tmp_path / "sudoers").write_text(text)
    words = [program, "verify", "--man=no", *map(str, (tmp_path / "units").iterdir())]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    # A program that is not there, because its path was read otherwise, is among what it complains of.
    assert (done.returncode, done.stderr) == (0, "")
    subprocess.run([visudo, "--check", "--file", str(tmp_path / "sudoers")], check=True)


# --- what is refused


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"at": "25:00"}, "'25:00' is not a time of day"),
        ({"home": Path("/srv/a\nExecStart=/bin/evil")}, "the output folder has a character"),
        ({"home": Path("/srv/100%h")}, "the output folder has a character"),
        ({"checkout": Path("/opt/it's")}, "the checkout has a character"),
    ],
)
def test_what_units_cannot_be_told_is_refused(changed: dict[str, Path], why: str) -> None:
    with pytest.raises(InstallError, match=re.escape(why)):
        replace(SITE, **changed)  # type: ignore[arg-type]


def test_without_a_plan_nothing_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(install, "PLAN", tmp_path / "nightly.toml")
    assert main(["service", "install"]) == 2
    assert "the plan cannot be read" in capsys.readouterr().err


@pytest.fixture
def reachable() -> Iterator[Path]:
    """A checkout where all may go, of whoever runs the tests."""
    folder = Path("/opt/tidemark-of-a-test")
    try:
        folder.mkdir(parents=True)
    except OSError:
        pytest.skip("/opt cannot be written")
    (folder / "runners").mkdir()
    (folder / ".venv/bin").mkdir(parents=True)
    (folder / ".venv/bin/python").symlink_to("/bin/sh")
    (folder / "tidemark").touch()
    yield folder
    shutil.rmtree(folder)


def test_a_checkout_that_others_may_change_or_the_user_cannot_reach_is_refused(
    reachable: Path, tmp_path: Path
) -> None:
    site = replace(SITE, checkout=reachable)
    require_reachable(site)
    (reachable / "runners").chmod(0o777)
    with pytest.raises(InstallError, match="users other than root can change it"):
        require_reachable(site)
    (reachable / "runners").chmod(0o755)
    reachable.chmod(0o700)
    with pytest.raises(InstallError, match="cannot reach the checkout"):
        require_reachable(site)
    reachable.chmod(0o755)
    python = reachable / ".venv/bin/python"
    (tmp_path / "private").mkdir(mode=0o700)
    (tmp_path / "private/python").touch()
    python.unlink()
    with pytest.raises(InstallError, match="no Python environment"):
        require_reachable(site)
    python.symlink_to(tmp_path / "private/python")
    with pytest.raises(InstallError, match="cannot reach the Python of the checkout"):
        require_reachable(site)
    with pytest.raises(InstallError, match="private temporary folders"):
        require_reachable(replace(site, home=Path("/tmp/home")))


def account(name: str, uid: int, shell: str) -> struct_passwd:
    return struct_passwd((name, "x", uid, uid, "", "/home/x", shell))


def test_a_user_who_may_log_in_and_a_home_of_somebody_else_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(install, "account_of", lambda name: account(name, 1000, "/bin/bash"))
    with pytest.raises(InstallError, match="belongs to somebody"):
        require_accounts(tmp_path)
    monkeypatch.setattr(
        install, "account_of", lambda name: account(name, os.geteuid() + 1, "/usr/sbin/nologin")
    )
    require_accounts(tmp_path)
    (tmp_path / "fitness.json").touch()
    require_own(tmp_path)
    (tmp_path / "history.db").touch()
    with pytest.raises(InstallError, match="do not belong to tidemark") as refused:
        require_own(tmp_path)
    assert refused.value.where == str(tmp_path / "history.db")


# --- what is installed


def test_the_plan_is_that_of_the_units_in_the_checkout_that_they_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = tmp_path / "environment"
    monkeypatch.setattr(installed, "ENVIRONMENT", written)
    assert installed.plan_in_use(None) == ROOT / "runners/nightly.toml"
    written.write_text(files(SITE)[Path("/etc/tidemark/environment")])
    assert installed.installed_variables()["TIDEMARK_BOX"] == "db1"
    assert installed.plan_in_use(None) == Path("/etc/tidemark/nightly.toml")
    assert installed.plan_in_use("another.toml") == Path("another.toml")
    written.write_text(written.read_text().replace(str(ROOT), "/opt/another"))
    assert installed.plan_in_use(None) == ROOT / "runners/nightly.toml"
