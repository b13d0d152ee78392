"""`./tidemark check --plan`: what it finds wrong, and what it leaves to a person."""

from dataclasses import replace
from pathlib import Path

import pytest

from build.accounts import blocked_folder
from build.home import ROOT
from runners.cli import main
from runners.nightly.plan import load_plan
from runners.service import plan_check
from runners.service.plan_check import missing_packages
from suites.sizing import this_machine
from tests.runners.alerting.github import REPOSITORY, TOKEN
from tests.runners.service.conftest import NewBox

ISSUES = f'[alerts]\nrepository = "{REPOSITORY}"\n'


def check(around: NewBox) -> int:
    return main(["check", "--plan", str(around.plan), "--box", "db1"])


def said(capsys: pytest.CaptureFixture[str]) -> str:
    return " ".join(capsys.readouterr().out.split())


def test_a_plan_that_can_be_measured(around: NewBox, capsys: pytest.CaptureFixture[str]) -> None:
    around.write()
    assert check(around) == 0
    found = said(capsys)
    assert "note alerts nobody is told: the plan names no repository and no route" in found
    assert found.endswith(f"Next: sudo {ROOT}/tidemark service install --box db1")


def test_the_example_is_a_plan() -> None:
    plan = load_plan(ROOT / "runners/examples/plan.toml")
    assert list(plan.boxes) == ["box1"]


def test_a_branch_and_a_release_that_are_nowhere(around: NewBox, capsys: pytest.CaptureFixture[str]) -> None:
    around.write(branch="mian", release="18.66")
    assert check(around) == 1
    found = said(capsys)
    assert "has no branch mian to do: did you mean main?" in found
    assert "postgres 18.66: neither a tag nor a digest is known of it to do: did you mean 18.6?" in found
    assert found.endswith("To be corrected before the first night: git of postgres, releases.")


def test_a_git_source_that_is_not_there(around: NewBox, capsys: pytest.CaptureFixture[str]) -> None:
    around.write(git=str(around.folder / "elsewhere"))
    assert check(around) == 1
    assert "wrong git of postgres" in said(capsys)


def test_a_clone_that_the_user_of_nights_cannot_enter(
    around: NewBox, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    around.write()
    monkeypatch.setattr(plan_check, "blocked_folder", blocked_folder)
    (around.folder / "source").chmod(0o700)
    assert check(around) == 1
    assert "the user of nights cannot enter /" in said(capsys)


def test_too_little_space_memory_and_missing_packages(
    around: NewBox, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    around.write()
    little = replace(this_machine(), memory_bytes=3 * 10**8)
    monkeypatch.setattr(plan_check, "night_bytes", lambda *_: 10**12)
    monkeypatch.setattr(plan_check, "missing_packages", lambda: ["bison"])
    monkeypatch.setattr(plan_check, "this_machine", lambda: little)
    assert check(around) == 1
    found = said(capsys)
    assert "a session takes up to 1000.0 GB to do: another disk for --home" in found
    assert f"not installed: bison to do: sudo {ROOT}/tidemark setup" in found
    assert "memory of servers 0.3 GB are too little for one server of write-heavy smoke" in found
    assert "note profile write-heavy in smoke tells gross changes only; a session in short takes " in found


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


def test_a_missing_token_and_url_are_left_to_a_person(
    around: NewBox, capsys: pytest.CaptureFixture[str]
) -> None:
    around.write(f'{ISSUES}[[notify]]\nname = "team"\n')
    assert check(around) == 0
    found = said(capsys)
    for name in ("tidemark-github-token", "tidemark-notify-team"):
        assert f"to do: sudo install -D -m 600 /dev/stdin {around.folder}/credentials/{name}" in found
    assert around.github.issues == {}


def test_a_test_alert_is_sent(around: NewBox, capsys: pytest.CaptureFixture[str]) -> None:
    around.write(ISSUES)
    store = around.folder / "credentials"
    store.mkdir()
    (store / "tidemark-github-token").write_text(TOKEN)
    assert check(around) == 0
    assert [issue["state"] for issue in around.github.issues.values()] == ["closed"]
    found = said(capsys)
    assert "ok issues a test alert was opened and closed: " in found
    assert TOKEN not in found
    around.github.is_archived = True
    assert check(around) == 1
    assert "the repository is archived" in said(capsys)
