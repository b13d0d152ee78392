"""Changes in finished series: what the import, `history change-points` and `history series` say of them."""

import json
import random
from datetime import date, timedelta
from pathlib import Path

import pytest

from build.home import ROOT
from runners.cli import main
from tests.suites.golden import require_golden

pytestmark = pytest.mark.deep("a whole command in a process of its own")

GOLDEN = ROOT / "tests/golden/runners"
DAYS, CHANGE = 100, 60
FIRST = date(2025, 1, 1)


def table(box: str, days: int, *, beside: str = "") -> str:
    """Nightly results of two steps, of which one loses a tenth; `beside` is a base that is measured first.

    Base and contender share the night's speed, which itself loses a fifth in the middle.
    """
    rng = random.Random(3)
    lines = ["machine,suite,step,version,metric,value,when"]
    for day in range(days):
        night = rng.gauss(1, 0.05) * (0.8 if beside and day >= days // 2 else 1)
        for step in ("insert", "delete"):
            when = FIRST + timedelta(days=day)
            loss = 0.9 if step == "insert" and day >= CHANGE else 1.0
            if beside:
                lines.append(
                    f"{box},nightly,{step},{beside},qps,{1000 * night * rng.gauss(1, 0.01):.1f},{when}"
                )
            value = 1000 * (night if beside else 1) * loss * rng.gauss(1, 0.01)
            lines.append(f"{box},nightly,{step},postgres@18.{1 + day // CHANGE},qps,{value:.1f},{when}")
    return "\n".join(lines) + "\n"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TIDEMARK_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def told(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """What a command says on both streams, below itself and above its exit code."""
    capsys.readouterr()
    code = main(["history", *words])
    out, err = capsys.readouterr()
    return f"$ ./tidemark history {' '.join(words)}\n{out}{err}exit code {code}\n\n"


def test_whoever_imports_a_finished_series_sees_its_changes(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / "old.csv").write_text(table("old box", DAYS))
    (home / "short.csv").write_text(table("new box", 15))
    commands = (
        ["import", "short.csv"],
        ["import", "old.csv", "short.csv"],
        ["change-points"],
        ["change-points", "--since", "2025-02-15", "--step", "delete"],
        ["change-points", "--machine", "new box"],
        ["change-points", "--machine", "nobody's"],
    )
    said = "".join(told(capsys, *words) for words in commands).replace(str(home), "HOME")
    require_golden("change-points.txt", said, GOLDEN)


def test_json_and_the_series_name_the_same_change(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (home / "old.csv").write_text(table("old box", DAYS))
    assert main(["history", "import", "old.csv"]) == 0
    capsys.readouterr()
    assert main(["history", "change-points", "--format", "json"]) == 0
    insert, delete = json.loads(capsys.readouterr().out)
    assert (insert["step"], insert["nights"], insert["base"], delete["changes"]) == ("insert", DAYS, None, [])
    (change,) = insert["changes"]
    assert change["direction"] == "worse"
    assert change["ratio_low"] < 0.9 < change["ratio_high"]
    first = change["first"]
    assert first == {
        "night": f"{FIRST + timedelta(days=CHANGE)}T00:00:00+00:00",
        "version": "postgres@18.2",
        "commit": None,
    }
    assert main(["history", "series", "--step", "insert", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["change_points"] == [change]
    assert main(["history", "series", "--step", "insert"]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "worse" in line]
    assert line.startswith(f"{FIRST + timedelta(days=CHANGE)}")


def test_changes_are_ordered_by_size_and_those_below_the_threshold_are_counted(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = random.Random(1)
    steps = {"small": 1.01, "large": 0.8, "middle": 1.1}
    lines = ["machine,suite,step,version,metric,value,when"]
    for day in range(120):
        for step, ratio in steps.items():
            for version, level in (("postgres@17.5", 1.0), ("postgres@master", ratio if day >= 60 else 1.0)):
                value = 1000 * level * rng.gauss(1, 0.001)
                lines.append(f"box,s,{step},{version},qps,{value:.3f},{FIRST + timedelta(days=day)}")
    (home / "x.csv").write_text("\n".join(lines) + "\n")
    assert main(["history", "import", "x.csv", "--base", "postgres@17"]) == 0
    capsys.readouterr()
    assert main(["history", "change-points"]) == 0
    out = capsys.readouterr().out
    assert [line.split()[0] for line in out.splitlines() if "qps, postgres" in line] == ["large", "middle"]
    assert "\n1 change below the threshold of the metric" in out
    assert max(map(len, out.splitlines())) <= 80


def test_values_are_relative_to_the_base_beside_them(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nights share a speed that scatters and falls: only relative to the base is there one change."""
    (home / "both.csv").write_text(table("box", DAYS, beside="postgres@17.5"))
    assert main(["history", "import", "both.csv", "--base", "postgres@17"]) == 0
    capsys.readouterr()
    assert main(["history", "change-points", "--format", "json"]) == 0
    found = {(load["branch"], load["step"]): load for load in json.loads(capsys.readouterr().out)}
    (change,) = found["postgres@18", "insert"]["changes"]
    assert found["postgres@18", "insert"]["base"] == "postgres@17"
    assert change["level_after"] == pytest.approx(0.9, rel=0.01)
    assert found["postgres@18", "delete"]["changes"] == []
    assert found["postgres@18", "delete"]["smallest_visible"] < 0.1
    assert ("postgres@17", "insert") not in found, "the base itself is left out, unless it is asked for"
    words = ["history", "change-points", "--branch", "postgres@17", "--step", "insert", "--format", "json"]
    assert main(words) == 0
    (searched,) = json.loads(capsys.readouterr().out)
    (fall,) = searched["changes"]
    assert fall["level_after"] / fall["level_before"] == pytest.approx(0.8, rel=0.05)
