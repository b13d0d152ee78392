"""A bisect that a workflow asks for: on a box of the plan, with the plan's git source and history."""

from pathlib import Path

import pytest

from build.errors import TidemarkError
from build.home import Home
from runners import cli
from runners.commands.bisect import select_box

PLAN = """
history = "nights.db"
[boxes.db1]
label = "tidemark-db1"
[engines.postgres]
base = "postgres@17.11"
git = "/srv/postgres.git"
[[tasks]]
suite = "write-heavy"
profile = "smoke"
"""
ASKED = ("bisect", "--box", "db1", "--good", "REL_17_0", "--bad", "REL_18_0", "--step", "update-index")


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    path = tmp_path / "plan.toml"
    path.write_text(PLAN)
    return path


def test_the_plan_says_where_from_and_where_to(plan: Path, tmp_path: Path) -> None:
    arguments = cli.parser().parse_args([*ASKED, "--plan", str(plan)])
    box, planned = select_box(arguments, Home(tmp_path))
    assert box.label == "tidemark-db1"
    assert (planned.git, planned.history) == ("/srv/postgres.git", str(tmp_path / "nights.db"))


def test_what_is_named_goes_before_the_plan(plan: Path, tmp_path: Path) -> None:
    words = ["--plan", str(plan), "--git", "/mine.git", "--history", "mine.db"]
    arguments = cli.parser().parse_args([*ASKED, *words])
    _, planned = select_box(arguments, Home(tmp_path))
    assert (planned.git, planned.history) == ("/mine.git", "mine.db")


def test_a_check_prints_the_label_and_begins_nothing(
    plan: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TIDEMARK_HOME", str(tmp_path / "home"))
    assert cli.main([*ASKED, "--plan", str(plan), "--check"]) == 0
    assert capsys.readouterr().out == "tidemark-db1\n"
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize(
    "more", [("--metric", "speed"), ("--box", "db2"), ("--suite", "./x"), ("--bad", "$(x)")]
)
def test_a_check_refuses(plan: Path, more: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([*ASKED, "--plan", str(plan), "--check", *more]) == 2
    assert capsys.readouterr().out == ""


def test_without_a_box_nothing_can_be_checked(plan: Path, tmp_path: Path) -> None:
    arguments = cli.parser().parse_args(["bisect", *ASKED[3:], "--plan", str(plan), "--check"])
    with pytest.raises(TidemarkError, match="the plan has no box ''"):
        select_box(arguments, Home(tmp_path))
