"""Pages of results say what was measured, how to repeat it and where, and are found by their index."""

import re
from pathlib import Path

import pytest

from build.home import ROOT
from runners.commands import bench

INDEX = ROOT / "docs/results/README.md"
PAGES = sorted(set(INDEX.parent.glob("*.md")) - {INDEX})


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_a_page_can_be_repeated(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert re.search(r"^```sh\n.*\./tidemark ", text, re.MULTILINE)
    assert re.search(r"^\*\*Machine and date:\*\* ", text, re.MULTILINE)
    assert re.findall(r"^## (.+)", text, re.MULTILINE)[0] == "Figures"
    assert "\n## What is missing\n" in text
    assert f"]({page.name})" in INDEX.read_text(encoding="utf-8")
    if page.stem in bench.names():
        assert f"./tidemark bench {page.stem}\n" in text


def test_the_index_names_every_benchmark() -> None:
    assert sorted(set(re.findall(r"`bench (\w+)`", INDEX.read_text(encoding="utf-8")))) == bench.names()


def test_reference_pages_have_no_laboratory_notes() -> None:
    pages = [page for page in sorted((ROOT / "docs").glob("*.md")) if page.name != "method.md"]
    assert [page.name for page in pages if "nothing else running" in page.read_text(encoding="utf-8")] == []
