"""What is refused before anything is changed, and what a machine with users and services is left to do."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from runners.cli import main
from runners.installing.escaping import InstallError
from runners.installing.machine import TargetMachine, UserAccount
from runners.installing.record import Record
from runners.installing.site import Site, require_reachable, site
from runners.installing.steps import to_install
from tests.runners.installing.boxes import PLAN, a_site, install

# --- what is refused


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--box", "other"], "the plan has no box 'other'"),
        (["--at", "25:00"], "'25:00' is not a time of day"),
        (["--user", "root"], "'root' cannot be the user"),
        (["--user", "x y\nALL"], "cannot be the user"),
        (["--home", "/srv/a\nExecStart=/bin/evil"], "the output folder holds a control character"),
        (["--actions-runner", "/srv/none"], "this is not the folder of GitHub's runner"),
    ],
)
def test_refusals(
    words: list[str], why: str, plan: Path, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert install(plan, root, *words) == 2
    error = capsys.readouterr().err
    assert why in error
    assert "to do: " in error
    assert not root.exists()


def test_a_plan_with_a_mistake_is_refused(plan: Path, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan.write_text(PLAN.replace("budget_minutes = 100.0", "budget_minutes = -1.0"))
    assert install(plan, root) == 2
    assert "boxes.db1.budget_minutes" in capsys.readouterr().err


def test_without_systemd_or_root_nothing_is_done(
    plan: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["runner", "install", "--plan", str(plan), "--box", "db1", "--home", "/nowhere/tidemark"]
    monkeypatch.setattr(TargetMachine, "write", None)
    monkeypatch.setattr(TargetMachine, "run", None)
    monkeypatch.setattr(TargetMachine, "account", lambda self, name: None)
    monkeypatch.setattr(TargetMachine, "has_systemd", False)
    assert main(words) == 2
    said = capsys.readouterr()
    assert "systemd is not the init" in said.err
    assert said.out == ""
    monkeypatch.setattr(TargetMachine, "has_systemd", True)
    monkeypatch.setattr(TargetMachine, "is_writable", False)
    assert main(words) == 2
    assert "setting up this machine needs root" in capsys.readouterr().err
    assert not Path("/nowhere").exists()


class Real(TargetMachine):
    """A machine of files that has users and services too, and writes down what is called."""

    is_real = True

    def __init__(
        self, root: Path, account: UserAccount | None = None, answers: dict[str, str] | None = None
    ) -> None:
        super().__init__(root)
        object.__setattr__(self, "its", (account, answers or {}))

    def account(self, name: str) -> UserAccount | None:
        found: UserAccount | None = self.its[0]  # type: ignore[attr-defined]
        return found

    def output_of(self, argv: object) -> str:
        assert isinstance(argv, list)
        answers: dict[str, str] = self.its[1]  # type: ignore[attr-defined]
        return answers.get(" ".join(argv[1:]), "")


def told(site: Site, machine: TargetMachine) -> list[str]:
    return [action.description for action in to_install(site, machine, force=False).actions]


def test_users_are_made_and_services_are_enabled(tmp_path: Path) -> None:
    found = told(a_site(tmp_path / "checkout"), Real(tmp_path / "root"))
    assert found[0].startswith("create the user tidemark: useradd --system --user-group --no-create-home")
    assert found[1] == (
        "create the user tidemark-report: useradd --system --no-user-group --gid tidemark --no-create-home "
        "--home-dir /nonexistent --shell /usr/sbin/nologin tidemark-report"
    )
    assert found[-4:] == [
        "systemctl daemon-reload",
        "systemctl enable --now tidemark-nightly.timer",
        "systemctl enable tidemark-tune.service",
        "systemctl start --no-block tidemark-tune.service",
    ]


def test_what_is_enabled_already_is_left(tmp_path: Path) -> None:
    answers = {"is-enabled tidemark-nightly.timer": "enabled", "is-active tidemark-nightly.timer": "active"}
    found = told(a_site(tmp_path / "checkout"), Real(tmp_path / "root", answers=answers))
    assert [line for line in found if line.startswith("systemctl enable")] == [
        "systemctl enable tidemark-tune.service"
    ]


def test_a_user_of_another_home(tmp_path: Path) -> None:
    service = UserAccount(4711, 4711, "/home/tidemark", may_log_in=False)
    steps = to_install(a_site(tmp_path / "x"), Real(tmp_path / "root", service), force=False)
    assert not any("useradd" in action.description for action in steps.actions)
    assert "keeps its home /home/tidemark" in steps.notes[0]
    person = UserAccount(1000, 1000, "/home/tidemark", may_log_in=True)
    with pytest.raises(InstallError, match="belongs to somebody"):
        to_install(a_site(tmp_path / "x"), Real(tmp_path / "root", person), force=False)


def test_a_home_that_somebody_else_wrote_is_refused(tmp_path: Path) -> None:
    site = a_site(tmp_path / "x")
    machine = Real(tmp_path / "root", UserAccount(os.geteuid() + 1, 1, str(site.home), may_log_in=False))
    home = machine.path(site.home)
    home.mkdir(parents=True)
    (home / "fitness.json").touch()
    assert f"create the folder {home}, owner tidemark, mode 775" in told(site, machine)
    (home / "history.db").touch()
    with pytest.raises(InstallError, match="do not belong to tidemark") as refused:
        told(site, machine)
    assert refused.value.where == str(home / "history.db")


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


def test_a_checkout_that_others_may_change_is_not_run_by_root(reachable: Path) -> None:
    site = a_site(reachable)
    require_reachable(site)
    (reachable / "runners").chmod(0o777)
    with pytest.raises(InstallError, match="users other than root can change it"):
        require_reachable(site)
    (reachable / "runners").chmod(0o755)
    reachable.chmod(0o700)
    with pytest.raises(InstallError, match="cannot reach the checkout"):
        require_reachable(site)


def test_a_python_that_the_user_cannot_reach(reachable: Path, tmp_path: Path) -> None:
    python = reachable / ".venv/bin/python"
    (tmp_path / "private").mkdir(mode=0o700)
    (tmp_path / "private/python").touch()
    python.unlink()
    with pytest.raises(InstallError, match="no Python environment"):
        require_reachable(a_site(reachable))
    python.symlink_to(tmp_path / "private/python")
    with pytest.raises(InstallError, match="cannot reach the Python of the checkout"):
        require_reachable(a_site(reachable))


def test_a_temporary_folder_is_refused() -> None:
    with pytest.raises(InstallError, match="private temporary folders"):
        require_reachable(a_site(Path("/tmp")))


@pytest.mark.parametrize("name", ['quo"te', "it's", "back\\slash"])
def test_a_program_that_systemd_would_not_start(name: str, plan: Path) -> None:
    with pytest.raises(InstallError, match="which systemd cannot start"):
        site(plan, "db1", "x", checkout=Path("/opt") / name)


def test_the_home_is_the_one_all_can_reach(plan: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert site(plan, "db1", "x").home == Path("/var/lib/tidemark")
    monkeypatch.setenv("TIDEMARK_HOME", "/srv/t")
    assert site(plan, "db1", "x").home == Path("/srv/t")
    assert site(plan, "db1", "x", home=Path("/srv/other")).home == Path("/srv/other")


def test_a_damaged_record_is_told(plan: Path, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    install(plan, root)
    (root / "etc/tidemark/installed.json").write_text("{")
    assert install(plan, root) == 2
    assert "record of what was installed is damaged" in capsys.readouterr().err
    assert Record().digests == {}
