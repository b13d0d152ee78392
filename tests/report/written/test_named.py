"""What is shown names its member: versions their engine and branch, costs their box and suite."""

from pathlib import Path

import pytest

from report.pages.ladder import Naming
from tests.report.parsed import parsed
from tests.report.rich import BRANCH, NIGHTS, commit


@pytest.mark.parametrize(
    ("has_engines", "has_branches", "version", "branch", "lines"),
    [
        (False, False, "postgres@18.6", "postgres@18", ("18.6", "")),
        (False, True, "postgres@18.6", "postgres@18", ("18.6", "")),  # the version begins with its branch
        (False, True, "postgres@git:0123456789abcd", BRANCH, ("0123456789", "master")),
        (True, True, "postgres@18.6", "postgres@18", ("postgres 18.6", "")),
        (True, True, "mysql@git:0123456789abcd", "mysql@trunk", ("mysql 0123456789", "trunk")),
        (False, True, "postgres@180.1", "postgres@18", ("180.1", "18")),
    ],
)
def test_heads_of_a_ladder_name_what_tells_its_versions_apart(
    has_engines: bool, has_branches: bool, version: str, branch: str, lines: tuple[str, str]
) -> None:
    assert Naming(has_engines, has_branches).lines(version, branch) == lines


def test_a_ladder_with_two_branches_names_that_of_a_commit(site: Path) -> None:
    heads = next(parsed(path).rows[0] for path in (site / "compare").glob("*db1*.html"))
    short = commit(NIGHTS).partition(":")[2][:10]
    assert any(head.startswith(f"{short}master") for head in heads), heads


def test_costs_of_a_change_name_box_suite_and_configuration(site: Path) -> None:
    (page,) = [path for path in (site / "changes").glob("*.html") if path.stem != "index"]
    rows = [row for row in parsed(page).rows if row[:1] == ["server CPU"]]
    assert rows
    assert {tuple(row[1:4]) for row in rows} == {("db1", "write-heavy", "short relaxed")}
    text = " ".join(page.read_text(encoding="utf-8").split())
    assert "qps of update-index, write-heavy on db1" in text
