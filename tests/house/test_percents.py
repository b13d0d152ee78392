"""One spelling of per cent in all that is read: `2.2 %`, in sources, golden files and documents."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from build.home import ROOT
from tests.house.sources import ROOMS, Source, house, none_of, read

CLOSE = re.compile(r"(?<=[\d}])%+(?![\w}%])")
"""A sign directly after a figure, or after what one is put into; `%2F` is part of an address."""

FORMATTED = re.compile(r"\{[^{}]*%\}")
"""A format of Python's that writes the sign directly after the figure."""

CANDIDATE = re.compile(r"[\d}\"']%|%\}")
"""What a source has that writes it so, even where a string begins with the sign; others are not parsed."""

ATTRIBUTE = re.compile(r"=\"\d+%\"|: ?\d+%;")
"""A length in a drawing or a style, which nobody reads."""

OTHERS = ("tests/golden/imports", "tests/golden/suites")
"""What other programs wrote."""


def misspelt(text: str) -> Iterator[str]:
    """Yield each sign that stands close to its figure, with what precedes it."""
    bare = ATTRIBUTE.sub("", text)
    for found in (*CLOSE.finditer(bare), *FORMATTED.finditer(bare)):
        yield bare[max(0, found.start() - 20) : found.end()]


def misspelt_in(source: Source) -> Iterator[str]:
    """Yield the texts of a source that write it so, whether they are one string or formatted."""
    if not CANDIDATE.search(source.text):
        return
    patterns = {
        id(argument)
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "like"
        for argument in node.args
    }
    for node in ast.walk(source.tree):
        if isinstance(node, ast.JoinedStr) and id(node) not in patterns:
            text = "".join(map(_shown, node.values))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
        else:
            continue
        yield from (f"{source.at(node.lineno)}: {found}" for found in misspelt(text))


def _shown(part: ast.expr) -> str:
    """Return a part of a formatted string, with `{}` or its format for a value."""
    if isinstance(part, ast.Constant):
        return str(part.value)
    assert isinstance(part, ast.FormattedValue)
    spec = part.format_spec
    return f"{{{''.join(map(_shown, spec.values))}}}" if isinstance(spec, ast.JoinedStr) else "{}"


@pytest.mark.parametrize(
    ("text", "is_wrong"),
    [
        ('f"{share:.1%} of it"', True),
        ('f"{100 * share:.1f}% of it"', True),
        ('f"{share:.{digits}%}"', True),
        ('f"{100 * share:.1f}" "% of it"', True),
        ('md("- {:+.1%} in {}", change, commit)', True),
        ('"at most 2% of it"', True),
        ('"takes 2%% of it"', True),
        ('f"{100 * share:.1f} % of it"', False),
        ('column.like(f"{prefix}%")', False),
        ('"/sites/a%2Fb and width=\\"100%\\""', False),
    ],
)
def test_a_sign_close_to_its_figure_is_seen(text: str, is_wrong: bool) -> None:
    (source,) = house({"history/made_up.py": text})
    assert bool(list(misspelt_in(source))) is is_wrong


def test_sources_write_per_cent_apart() -> None:
    none_of([place for source in read(ROOT, ROOMS[:-1]) for place in misspelt_in(source)])


def test_what_is_read_writes_per_cent_apart() -> None:
    files = [*(ROOT / "tests/golden").rglob("*"), *(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md")]
    read_by_people = [
        file for file in files if file.is_file() and not str(file.relative_to(ROOT)).startswith(OTHERS)
    ]
    assert len(read_by_people) > len(OTHERS)
    none_of(
        [f"{file.relative_to(ROOT)}: {found}" for file in read_by_people for found in misspelt(_text(file))]
    )


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="replace")
