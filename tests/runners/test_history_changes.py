"""`./tidemark history judge|changes|acknowledge`: what is printed, and exit codes."""

import json
from pathlib import Path
from typing import Any

import pytest

from build.home import ROOT
from runners.cli import main
from tests.history.watched import record_regression
from tests.suites.golden import require_golden

GOLDEN = ROOT / "tests/golden/runners"


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A regression of 7 % in one step of two."""
    path = tmp_path_factory.mktemp("history") / "history.db"
    record_regression(path)
    return path


@pytest.mark.deep("a whole command in a process of its own")
def test_from_the_judge_to_silence(history: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = ["--history", str(history)]
    assert main(["history", "changes", *where]) == 0
    assert capsys.readouterr().out == "no open change\n"
    assert main(["history", "judge", *where]) == 1
    said = capsys.readouterr().out
    today = json_of(["history", "changes", "--format", "json", *where], capsys)[0]["found_at"][:10]
    require_golden("judged.txt", said.replace(today, "TODAY"), GOLDEN)
    assert main(["history", "judge", *where]) == 0
    assert capsys.readouterr().out == "4 series: 0 new, 0 back, 0 gone; 1 open\n"
    (change,) = json_of(["history", "changes", "--format", "json", *where], capsys)
    assert change["direction"] == "worse"
    assert {series["metric"] for series in change["series"]} == {"server_cpu_us_per_op", "qps"}
    assert main(["history", "acknowledge", change["fingerprint"], "--reason", "wanted", *where]) == 0
    assert json_of(["history", "changes", "--format", "json", *where], capsys) == []
    (known,) = json_of(["history", "changes", "--status", "acknowledged", "--format", "json", *where], capsys)
    assert known["reason"] == "wanted"
    assert json_of(["history", "judge", "--format", "json", *where], capsys) == []


def json_of(words: list[str], capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    capsys.readouterr()
    assert main(words) == 0
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    return found


def test_a_change_that_is_not_there(history: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["history", "acknowledge", "nothing", "--reason", "x", "--history", str(history)]
    assert main(words) == 2
    assert "there is no change nothing" in capsys.readouterr().err
