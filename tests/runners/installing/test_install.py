"""A box installed below a root of its own: what is written, that twice is once, and what a person changed."""

import os
from pathlib import Path

import pytest

from runners.cli import main
from runners.installing import files as files_module
from tests.runners.installing.boxes import install

UNITS = "etc/systemd/system"


def tree(root: Path) -> dict[str, str]:
    return {str(path.relative_to(root)): path.read_text() for path in root.rglob("*") if path.is_file()}


# --- what is written


def test_a_box_is_installed_once(
    plan: Path, root: Path, agent: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--actions-runner", "/srv/actions runner"]
    assert install(plan, root, *words) == 0
    said = capsys.readouterr().out
    assert "sudo -u tidemark ./config.sh --url https://github.com/example/alerts --name db1" in said
    assert "--labels tidemark-db1 " in said
    assert "cd '/srv/actions runner'" in said
    assert "/etc/credstore/tidemark-github-token" in said
    assert "--token" not in said
    written = tree(root)
    assert sorted(written) == [
        "etc/sudoers.d/tidemark",
        *(f"{UNITS}/{name}" for name in sorted(files_module.UNIT_NAMES)),
        "etc/tidemark/installed.json",
        "srv/actions runner/.env",
        "srv/actions runner/config.sh",
        "srv/actions runner/run.sh",
        "usr/local/lib/tidemark/job-completed.sh",
        "usr/local/lib/tidemark/job-started.sh",
    ]
    assert (root / "var/lib/tidemark").stat().st_mode & 0o777 == 0o775
    assert (root / "etc/sudoers.d/tidemark").stat().st_mode & 0o777 == 0o440
    assert (root / "usr/local/lib/tidemark/job-started.sh").stat().st_mode & 0o777 == 0o755
    assert written["srv/actions runner/.env"].splitlines() == [
        "LANG=C.UTF-8",
        "ACTIONS_RUNNER_HOOK_JOB_STARTED=/usr/local/lib/tidemark/job-started.sh",
        "ACTIONS_RUNNER_HOOK_JOB_COMPLETED=/usr/local/lib/tidemark/job-completed.sh",
        "TIDEMARK_HOME=/var/lib/tidemark",
        "TIDEMARK_BOX=db1",
        "TIDEMARK_VENV=/var/lib/tidemark/venv",
    ]
    assert install(plan, root, *words) == 0
    assert capsys.readouterr().out.startswith("nothing to do\n")
    assert tree(root) == written


def test_a_dry_run_says_everything_and_changes_nothing(
    plan: Path, root: Path, agent: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = tree(root)
    assert install(plan, root, "--actions-runner", "/srv/actions runner", "--dry-run") == 0
    said = capsys.readouterr().out
    assert tree(root) == before
    assert install(plan, root, "--actions-runner", "/srv/actions runner") == 0
    for name, text in tree(root).items():
        if name not in before and not name.endswith("installed.json"):
            assert f"would write {root / name}, mode " in said
            assert "".join(f"    {line}\n" for line in text.splitlines()) in said


def test_uninstalling_leaves_what_was_there_before(
    plan: Path, root: Path, agent: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (root / "etc/systemd/system").mkdir(parents=True)
    (root / "etc/systemd/system/other.service").write_text("[Service]\n")
    before = tree(root)
    install(plan, root, "--actions-runner", "/srv/actions runner")
    (root / "var/lib/tidemark/history.db").write_text("years")
    assert main(["runner", "uninstall", "--root", str(root), "--dry-run"]) == 0
    assert len(tree(root)) > len(before) + 1
    assert main(["runner", "uninstall", "--root", str(root)]) == 0
    assert tree(root) == {**before, "var/lib/tidemark/history.db": "years"}
    assert not (root / "usr/local/lib/tidemark").exists()
    capsys.readouterr()
    assert main(["runner", "uninstall", "--root", str(root)]) == 0
    assert capsys.readouterr().out == "nothing to do\n"


def test_an_environment_that_was_not_there_goes_again(plan: Path, root: Path, agent: Path) -> None:
    (agent / ".env").unlink()
    install(plan, root, "--actions-runner", "/srv/actions runner")
    assert (agent / ".env").read_text().startswith("ACTIONS_RUNNER_HOOK_JOB_STARTED=")
    assert main(["runner", "uninstall", "--root", str(root)]) == 0
    assert not (agent / ".env").exists()


def test_another_home_replaces_our_lines(plan: Path, root: Path, agent: Path) -> None:
    for home in ("/srv/one", "/srv/two"):
        assert install(plan, root, "--actions-runner", "/srv/actions runner", "--home", home) == 0
    lines = (agent / ".env").read_text().splitlines()
    assert [line for line in lines if line.startswith("TIDEMARK_HOME")] == ["TIDEMARK_HOME=/srv/two"]
    assert lines[0] == "LANG=C.UTF-8"


def test_what_a_person_has_changed_is_kept_and_shown(
    plan: Path, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    install(plan, root)
    unit = root / UNITS / "tidemark-nightly.timer"
    theirs = unit.read_text().replace("03:17", "05:00")
    unit.write_text(theirs)
    capsys.readouterr()
    assert main(["runner", "show", "--root", str(root)]) == 1
    assert f"changed     {unit}" in capsys.readouterr().out
    assert install(plan, root) == 1
    said = capsys.readouterr().out
    assert f"kept, because it was modified; --force replaces or removes it: {unit}" in said
    assert "    -OnCalendar=*-*-* 05:00:00 UTC\n    +OnCalendar=*-*-* 03:17:00 UTC\n" in said
    assert unit.read_text() == theirs
    assert main(["runner", "uninstall", "--root", str(root)]) == 1
    assert [path.name for path in (root / UNITS).iterdir()] == [unit.name]
    assert install(plan, root, "--force") == 0
    assert "03:17" in unit.read_text()
    assert main(["runner", "show", "--root", str(root)]) == 0


def test_a_newer_installation_replaces_what_nobody_changed(
    plan: Path, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    install(plan, root)
    capsys.readouterr()
    assert install(plan, root, "--at", "05:00") == 0
    said = capsys.readouterr().out
    assert [line for line in said.splitlines() if line.startswith(("write", "replace"))] == [
        f"replace {root / UNITS}/tidemark-nightly.timer, mode 644"
    ]
    assert "05:00:00 UTC" in (root / UNITS / "tidemark-nightly.timer").read_text()


def test_a_file_of_somebody_else_with_our_name_is_kept(plan: Path, root: Path) -> None:
    unit = root / UNITS / "tidemark-nightly.service"
    unit.parent.mkdir(parents=True)
    unit.write_text("[Service]\nExecStart=/bin/true\n")
    assert install(plan, root) == 1
    assert unit.read_text() == "[Service]\nExecStart=/bin/true\n"


def test_a_hook_of_somebody_else_is_kept(
    plan: Path, root: Path, agent: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    theirs = "ACTIONS_RUNNER_HOOK_JOB_STARTED=/opt/theirs.sh\nLANG=C\n"
    (agent / ".env").write_text(theirs)
    assert install(plan, root, "--actions-runner", "/srv/actions runner") == 1
    assert (agent / ".env").read_text() == theirs
    assert "-ACTIONS_RUNNER_HOOK_JOB_STARTED=/opt/theirs.sh" in capsys.readouterr().out
    assert install(plan, root, "--actions-runner", "/srv/actions runner", "--force") == 0
    assert "/opt/theirs.sh" not in (agent / ".env").read_text()


def test_an_environment_that_is_a_link_is_refused(
    plan: Path, root: Path, agent: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its folder belongs to the user of GitHub's runner, who could show us a file of root's."""
    secret = root / "secret"
    secret.write_text("PASSWORD=x\n")
    (agent / ".env").unlink()
    (agent / ".env").symlink_to(secret)
    assert install(plan, root, "--actions-runner", "/srv/actions runner") == 2
    said = capsys.readouterr()
    assert "symbolic link" in said.err
    assert "PASSWORD" not in said.out + said.err


@pytest.mark.skipif(os.geteuid() != 0, reason="needs two users")
def test_an_environment_keeps_its_owner_and_a_home_is_no_foreign_link(
    plan: Path, root: Path, agent: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    os.chown(agent / ".env", 65534, 65534)
    (agent / ".env").chmod(0o600)
    assert install(plan, root, "--actions-runner", "/srv/actions runner") == 0
    status = (agent / ".env").stat()
    assert (status.st_uid, status.st_mode & 0o777) == (65534, 0o600)
    (root / "etc-of-root").mkdir(mode=0o700)
    (root / "srv/home").symlink_to(root / "etc-of-root")
    os.chown(root / "srv/home", 65534, 65534, follow_symlinks=False)
    capsys.readouterr()
    assert install(plan, root, "--home", "/srv/home") == 2
    assert "the folder is a link of another user" in capsys.readouterr().err
    assert (root / "etc-of-root").stat().st_mode & 0o777 == 0o700
