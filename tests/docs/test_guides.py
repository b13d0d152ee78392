"""The guides are short, are reached from the front page, and show plans that can be read."""

import re
import textwrap
from pathlib import Path

import pytest

from build.home import ROOT
from runners.nightly.plan import load_plan

GUIDES = sorted((ROOT / "docs/guides").glob("*.md"))
LONGEST_GUIDE = 80
"""Lines; two screens."""


@pytest.mark.parametrize("guide", GUIDES, ids=lambda path: path.stem)
def test_guides_are_short_and_found(guide: Path, tmp_path: Path) -> None:
    text = guide.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= LONGEST_GUIDE
    assert f"docs/guides/{guide.name}" in (ROOT / "README.md").read_text(encoding="utf-8")
    for block in re.findall(r"```toml\n(.*?)```", text, re.DOTALL):
        plan = tmp_path / "plan.toml"
        plan.write_text(textwrap.dedent(block), encoding="utf-8")
        load_plan(plan)
