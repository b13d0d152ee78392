"""What a comment asks for: what is a word, what it names, and what is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runners.pull_requests.word import TryWord, WordError

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.mark.parametrize(
    ("body", "word"),
    [
        ("/tidemark try", TryWord()),
        ("\n  /tidemark  try \r\n\nthanks, this looks fine", TryWord()),
        (f"/tidemark try {COMMIT}", TryWord(COMMIT)),
        (
            f"/tidemark try profile=short box=box1 {COMMIT} suite=read-only",
            TryWord(COMMIT, "box1", "read-only", "short"),
        ),
    ],
)
def test_a_word(body: str, word: TryWord) -> None:
    assert TryWord.parse(body) == word


@pytest.mark.parametrize(
    "body",
    [
        "",
        "   ",
        "looks fine",
        "> /tidemark try",
        "please /tidemark try",
        "/tidemarktry",
        "x\n/tidemark try",
        "`/tidemark`",
    ],
)
def test_no_word(body: str) -> None:
    """A quoted one among them, as in an answer by mail."""
    assert TryWord.parse(body) is None


@pytest.mark.parametrize(
    "body",
    [
        "/tidemark",
        "/tidemark run",
        "/tidemark try now",
        f"/tidemark try {COMMIT[:39]}",
        f"/tidemark try {COMMIT.upper()}",
        f"/tidemark try {COMMIT} {COMMIT}",
        "/tidemark try box=",
        "/tidemark try box=a box=b",
        "/tidemark try step=insert",
        "/tidemark try --git=/etc",
    ],
)
def test_a_word_that_is_not_understood(body: str) -> None:
    with pytest.raises(WordError):
        TryWord.parse(body)


@given(st.text(max_size=80))
def test_any_other_text_is_no_word_or_refused(text: str) -> None:
    for body in (text, f"/tidemark {text}", f"/tidemark try {text}"):
        try:
            word = TryWord.parse(body)
        except WordError:
            continue
        assert word is None or body.split()[:2] == ["/tidemark", "try"]
