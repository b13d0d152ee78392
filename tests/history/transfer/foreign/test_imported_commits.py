"""The commits that an imported file names: in its series, on pages and in comparisons."""

import hashlib
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from runners.cli import main

pytestmark = pytest.mark.deep("imports and judges months of nights")

FIRST = datetime(2026, 1, 1, 3, tzinfo=UTC)
NIGHTS, STEP_AT = 60, 40


def commit(number: int) -> str:
    return hashlib.sha1(str(number).encode(), usedforsecurity=False).hexdigest()


def otava(folder: Path) -> str:
    """Sixty commits of a branch, of which the forty-first lost 10 %."""
    lines = ["time,commit,branch,qps"]
    for number in range(NIGHTS):
        rate = (1000 if number < STEP_AT else 900) + number % 3
        lines.append(f"{FIRST + timedelta(days=number):%Y-%m-%dT%H:%M:%SZ},{commit(number)},main,{rate}")
    path = folder / "otava.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def history(command: str, *words: str, into: Path) -> int:
    return main(["history", command, *words, "--history", str(into)])


@pytest.fixture
def imported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    named = ["--machine", "db1", "--version", "postgres@main", "--step", "insert"]
    assert history("import", otava(tmp_path), *named, into=tmp_path / "h.db") == 0
    capsys.readouterr()
    return tmp_path / "h.db"


def test_a_series_has_the_commit_of_each_night(imported: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--step", "insert", "--branch", "postgres@main"]
    history("series", *words, into=imported)
    nights = [line for line in capsys.readouterr().out.splitlines() if line.startswith("2026-")]
    assert len(nights) == NIGHTS
    for number, line in enumerate(nights):
        assert f"postgres@main, commit {commit(number)[:10]} " in line
    history("series", *words, "--format", "json", into=imported)
    told = json.loads(capsys.readouterr().out)["nights"]
    assert [night["commit"] for night in told] == [commit(number) for number in range(NIGHTS)]


def test_a_change_point_has_the_commits_around_it(imported: Path, capsys: pytest.CaptureFixture[str]) -> None:
    history("change-points", into=imported)
    assert f"commits {commit(STEP_AT - 1)[:10]}..{commit(STEP_AT)[:10]}\n" in capsys.readouterr().out
    history("change-points", "--format", "json", into=imported)
    ((change,),) = [series["changes"] for series in json.loads(capsys.readouterr().out)]
    assert change["last_before"]["commit"] == commit(STEP_AT - 1)
    assert change["first"]["commit"] == change["first_after"]["commit"] == commit(STEP_AT)


def test_the_pages_have_the_commits(imported: Path, tmp_path: Path) -> None:
    assert main(["report", "--history", str(imported), "--out", str(tmp_path / "site")]) == 0
    texts = {
        path: path.read_text(encoding="utf-8")
        for path in (tmp_path / "site").rglob("*")
        if path.suffix in (".html", ".js", ".json")
    }
    in_series = [text for text in texts.values() if f"postgres@main, commit {commit(7)[:10]}" in text]
    assert in_series, "the data of the series"
    assert any(commit(7) in text for path, text in texts.items() if path.suffix == ".html"), "the session"


def test_a_comparison_says_which_commits_it_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [tmp_path / "1.csv", tmp_path / "2.csv"]
    for number, path in enumerate(files, start=1):
        row = f"{FIRST.isoformat()},{commit(number)},{1000 * number}"
        path.write_text(f"time,commit,qps\n{row}\n", encoding="utf-8")
    versions = ["postgres@main", "postgres@mine"]
    named = ["--machine", "db1", "--version", ",".join(versions)]
    assert history("import", *map(str, files), *named, into=tmp_path / "h.db") == 0
    capsys.readouterr()
    main(["compare", *versions, "--history", str(tmp_path / "h.db")])
    out = capsys.readouterr().out
    assert f"\npostgres@main, commit {commit(1)[:10]}\npostgres@mine, commit {commit(2)[:10]}\n" in out
