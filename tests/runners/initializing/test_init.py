"""`./tidemark runner init`: what it writes, what it finds wrong, and what it leaves to a person."""

import io
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from build.accounts import blocked_folder
from build.home import ROOT
from runners.cli import main
from runners.initializing import command, needs, space
from runners.initializing.left import left_steps
from runners.initializing.packages import missing_packages
from runners.installing.files import files
from runners.installing.machine import TargetMachine
from runners.installing.site import site
from runners.installing.units import installed_units
from runners.nightly.plan import load_plan
from suites.sizing import this_machine
from tests.runners.alerting.github import REPOSITORY, TOKEN
from tests.runners.initializing.conftest import NewBox

ISSUES = ("--issues", f"https://github.com/{REPOSITORY}")
TOLD_NOBODY = ("--issues", "none", "--notify", "none")


def init(around: NewBox, *words: str) -> int:
    return main(["runner", "init", *around.where, *words])


def commands(said: str) -> list[str]:
    """The commands that are left, in their order."""
    lines = said.partition("Left for you:\n")[2].splitlines()
    return [line.strip() for line in lines[1::2] if line.startswith("     ")]


# --- writing


def test_a_plan_is_written_once(around: NewBox, capsys: pytest.CaptureFixture[str]) -> None:
    assert init(around, *around.words, *TOLD_NOBODY) == 0
    said = capsys.readouterr().out
    assert said.startswith(f"written: {around.plan}\n")
    assert list(load_plan(around.plan).boxes) == ["db1"]
    assert around.plan.stat().st_mode & 0o777 == 0o644
    assert commands(said) == [
        f"sudo {ROOT}/tidemark runner install --plan {around.plan} --box db1 --home {around.folder}/home",
        "sudo systemctl start tidemark-nightly",
    ]
    text = around.plan.read_text()
    assert init(around, *around.words, *TOLD_NOBODY, "--budget", "90") == 2
    assert "there is a plan already" in capsys.readouterr().err
    assert around.plan.read_text() == text
    assert init(around, *around.words, *TOLD_NOBODY, "--budget", "90", "--force") == 0
    assert load_plan(around.plan).boxes["db1"].budget_minutes == 90


def test_without_a_terminal_what_is_missing_is_named_and_nothing_written(
    around: NewBox, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    assert init(around, *around.words) == 2
    error = capsys.readouterr().err
    assert "    --issues: address of the repository in which issues are opened (default: none)\n" in error
    assert "    --notify: " in error
    assert not around.plan.exists()


def test_answers_that_contradict_each_other_write_nothing(
    around: NewBox, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [*around.words, *TOLD_NOBODY, "--release", "postgres@17.11"]
    assert init(around, *words) == 2
    assert "17.11 is the base already" in capsys.readouterr().err
    assert not around.plan.exists()


def test_a_folder_in_which_no_plan_can_be(around: NewBox, capsys: pytest.CaptureFixture[str]) -> None:
    around.plan.parent.symlink_to("/proc/nowhere")
    assert init(around, *around.words, *TOLD_NOBODY) == 2
    assert "the plan cannot be written: " in capsys.readouterr().err


# --- what nights need


def test_a_branch_and_a_release_that_are_nowhere(around: NewBox, capsys: pytest.CaptureFixture[str]) -> None:
    words = [*around.words, *TOLD_NOBODY, "--branch", "postgres@mian", "--release", "postgres@18.66"]
    assert init(around, *words) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert "has no branch mian to do: did you mean main?" in said
    assert "postgres 18.66: neither a tag nor a digest is known of it to do: did you mean 18.6?" in said
    assert said.endswith("To be corrected before the first night: git of postgres, releases.")


def test_a_git_source_that_is_not_there(around: NewBox, capsys: pytest.CaptureFixture[str]) -> None:
    words = [*around.words, *TOLD_NOBODY]
    words[words.index("--git") + 1] = str(around.folder / "elsewhere")
    assert init(around, *words) == 1
    assert "wrong  git of postgres" in capsys.readouterr().out


def test_a_clone_that_the_user_of_nights_cannot_enter(
    around: NewBox, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(needs, "blocked_folder", blocked_folder)
    source = around.folder / "source"
    source.chmod(0o700)
    assert init(around, *around.words, *TOLD_NOBODY) == 1
    assert "the user of nights cannot enter /" in capsys.readouterr().out


def test_too_little_space_and_missing_packages(
    around: NewBox, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(needs, "night_bytes", lambda *_: 10**12)
    monkeypatch.setattr(needs, "missing_packages", lambda: ["bison"])
    assert init(around, *around.words, *TOLD_NOBODY) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert "a session takes up to 1000.0 GB to do: another disk for --home" in said
    assert f"not installed: bison to do: sudo {ROOT}/tidemark setup" in said


def test_too_little_memory_and_a_small_profile(
    around: NewBox, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    little = replace(this_machine(), memory_bytes=3 * 10**8)
    for module in (needs, space):
        monkeypatch.setattr(module, "this_machine", lambda: little)
    assert init(around, *around.words, *TOLD_NOBODY) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert "wrong memory of servers 0.3 GB are too little for one server of write-heavy smoke" in said
    assert "note profile write-heavy in smoke tells gross changes only; a session in short takes " in said


def test_packages_are_missing_by_each_kind_of_probe(tmp_path: Path) -> None:
    for name in ("packages-profiles.txt", "packages-companions.txt"):
        (tmp_path / name).write_text("# none\n")
    (tmp_path / "packages.txt").write_text(
        "there     command:sh      a shell\n"
        "gone      command:no-such-program  nothing\n"
        "works     works:git       answers\n"
        "broken    works:false     does not answer\n"
        "header    header:../../etc/passwd  a file\n"
        "headless  header:no/such.h  none\n"
        "module    python:json     a module\n"
        "moduleless  python:no_such_module  none\n"
    )
    assert missing_packages(tmp_path) == ["gone", "broken", "headless", "moduleless"]


# --- who is told


def test_a_missing_token_and_url_are_left_to_a_person(
    around: NewBox, capsys: pytest.CaptureFixture[str]
) -> None:
    assert init(around, *around.words, *ISSUES, "--notify", "team") == 0
    said = capsys.readouterr().out
    store = around.folder / "credentials"
    chosen = f"--plan {around.plan} --box db1"
    assert commands(said)[:3] == [
        f"sudo install -D -m 600 /dev/stdin {store}/tidemark-github-token",
        f"sudo install -D -m 600 /dev/stdin {store}/tidemark-notify-team",
        f"sudo {ROOT}/tidemark runner test-alert {chosen}",
    ]
    assert "1. issues: type the token, then Ctrl-D\n" in said
    assert "2. route team: type its URL, then Ctrl-D\n" in said
    assert around.github.issues == {}


def test_a_test_alert_is_sent_once(around: NewBox, capsys: pytest.CaptureFixture[str]) -> None:
    store = around.folder / "credentials"
    store.mkdir()
    (store / "tidemark-github-token").write_text(TOKEN)
    assert init(around, *around.words, *ISSUES, "--notify", "none") == 0
    assert [issue["state"] for issue in around.github.issues.values()] == ["closed"]
    said = capsys.readouterr().out
    assert "ok     issues              a test alert was opened and closed: " in said
    assert TOKEN not in said
    assert init(around, "--check", "--box", "db1") == 0
    assert len(around.github.issues) == 1
    around.github.is_archived = True
    assert init(around, "--check", "--box", "db1") == 1
    assert "the repository is archived" in capsys.readouterr().out


# --- what is left


def test_what_is_installed_is_not_left(
    around: NewBox, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    init(around, *around.words, *TOLD_NOBODY)
    root = around.folder / "root"
    found = site(around.plan, "db1", "", home=around.folder / "home")
    for file in files(found):
        path = root / str(file.path).lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(file.text)
    machine = TargetMachine(root)
    steps = left_steps(load_plan(around.plan), around.plan, "db1", found.home, [], machine)
    assert [step.command for step in steps] == ["sudo systemctl start tidemark-nightly"]
    # Without options, what is checked is the plan, the box and the home of the units.
    installed = installed_units(machine)
    monkeypatch.setattr(command, "installed_units", lambda machine: installed)
    capsys.readouterr()
    assert main(["runner", "init", "--check"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert f"plan {around.plan}, checkout {ROOT}, home {found.home}" in said
    assert "--box db1" in said
    monkeypatch.setattr(TargetMachine, "has_systemd", False)
    (step,) = left_steps(load_plan(around.plan), around.plan, "db1", found.home, [], machine)
    assert step.command.startswith(f"TIDEMARK_HOME={found.home} ")
    capsys.readouterr()
