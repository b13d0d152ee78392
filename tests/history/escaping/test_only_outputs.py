"""Only outputs make markup, and nothing is written past them (decision 58)."""

import pytest

from build.home import ROOT
from tests.house.escaping import made_elsewhere, templates_made_of_texts
from tests.house.sources import ROOMS, Source, house, none_of, places, read

MAKERS = {
    "Styled": ["history/rendering/plain_table.py"],
    "unescaped": ["runners/console.py"],
    "Console": ["runners/console.py"],
    # The outbox stores what it was given.
    "Markdown": ["history/escaping/markdown.py", "history/store/alert_outbox.py"],
    "Markup": ["report/markup/"],
    "csv.writer": ["history/escaping/csv_cells.py"],
    "DictWriter": [],
}
"""What only these files and folders may make."""

SHOWN = ("runners/commands/", "runners/history/", "runners/trying/", "history/rendering/", "compare.py")
"""Where JSON is printed: by `json_text`."""

TEMPLATES = ("md", "Template")


@pytest.fixture(scope="module")
def program() -> list[Source]:
    """Every Python file but tests and benchmarks."""
    return read(ROOT, [room for room in ROOMS if room not in ("benchmarks", "tests")])


@pytest.mark.deep("reads all modules that write markup")
def test_only_outputs_make_markup(program: list[Source]) -> None:
    none_of(made_elsewhere(program, MAKERS))


def test_json_is_printed_by_json_text(program: list[Source]) -> None:
    shown = [source for source in program if source.path.as_posix().startswith(SHOWN)]
    assert len(shown) > 20
    none_of(made_elsewhere(shown, {"json.dump": [], "json.dumps": []}))


def test_markup_that_is_made_elsewhere_is_seen() -> None:
    texts = {
        "history/escaping/markdown.py": "Markdown('x')",
        "runners/x.py": "from history.escaping import markdown\nmarkdown.Markdown(x)\nStyled(y)",
        "report/y.py": "csv.writer(f)\njson.dumps(x)\nwriter(f)",
    }
    reports = made_elsewhere(house(texts), MAKERS | {"json.dumps": []})
    assert places(reports) == ["runners/x.py:2", "runners/x.py:3", "report/y.py:1", "report/y.py:2"]


@pytest.mark.deep("reads all modules that write markup")
def test_templates_are_literals(program: list[Source]) -> None:
    none_of(templates_made_of_texts(program, ["md"]))
    pages = [
        source for source in program if source.path.parts[0] == "report"
    ]  # others fill Python's Template
    none_of(templates_made_of_texts(pages, TEMPLATES))


def test_a_template_that_is_no_literal_is_seen() -> None:
    text = "md('- {}', x)\nmd('a '\n   'b')\nmd(f'- {x}')\nmd(x)\nTemplate('<p>' + x)\nmarkdown.md(*x)"
    assert places(templates_made_of_texts(house({"a.py": text}), TEMPLATES)) == [
        f"a.py:{line}" for line in (4, 5, 6, 7)
    ]
