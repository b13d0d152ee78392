"""Every example of a plan in the documents is one: what it leaves out is filled in, and nothing else."""

import re
import tomllib
from pathlib import Path

import pytest

from runners.nightly.plan import load_plan
from tests.docs.test_docs import DOCUMENTS, FENCE

REST = {
    "boxes": '[boxes.box1]\nlabel = "tidemark-box1"\n',
    "engines": '[engines.postgres]\nbase = "postgres@17.11"\nbranches = ["master"]\n',
    "tasks": '[[tasks]]\nsuite = "write-heavy"\nprofile = "short"\n',
}
"""The keys that a plan must have, for examples without them."""


def plans() -> list[tuple[str, str]]:
    """The fenced blocks of TOML that are no suite, with the document and line of each."""
    return [
        (f"{document.name}:{document.read_text()[: block.start()].count(chr(10)) + 1}", block[2])
        for document in DOCUMENTS
        for block in FENCE.finditer(document.read_text(encoding="utf-8"))
        if block[1] == "toml" and not re.search(r"^generator = ", block[2], re.MULTILINE)
    ]


@pytest.mark.parametrize("example", [text for _, text in plans()], ids=[place for place, _ in plans()])
def test_an_example_of_a_plan_is_one(example: str, tmp_path: Path) -> None:
    plan = tmp_path / "nightly.toml"
    plan.write_text(
        "\n".join([example, *(text for key, text in REST.items() if key not in tomllib.loads(example))])
    )
    load_plan(plan)
