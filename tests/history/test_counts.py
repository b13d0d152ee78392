"""Numbers with their nouns."""

import pytest

from history.counts import counted


@pytest.mark.parametrize(
    ("number", "noun", "plural", "text"),
    [
        (1, "night", "", "1 night"),
        (0, "night", "", "0 nights"),
        (2, "pass", "", "2 passes"),
        (2, "box", "", "2 boxes"),
        (2, "series", "series", "2 series"),
    ],
)
def test_a_number_has_its_noun(number: int, noun: str, plural: str, text: str) -> None:
    assert counted(number, noun, plural) == text
