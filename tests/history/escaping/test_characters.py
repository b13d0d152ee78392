"""Characters that are not shown: which they are, and what stands for them in texts, JSON and CSV."""

import csv
import io
import json
import re
import sys
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from build.errors import TidemarkError
from history.escaping.characters import INVISIBLE, JOINER, REPLACED, one_line, unbroken, visible
from history.escaping.csv_cells import csv_text
from history.escaping.json_strings import json_text

HIDDEN = re.compile(f"[{INVISIBLE}]")

BIDI = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
ZERO_WIDTH = "\u200b\u200c\u200d\u2060\ufeff\u00ad\u034f\u115f\u1160\u3164\uffa0\U000e0041\U000e0100"
CONTROLS = "\x00\x07\x08\x0b\x0c\r\x1b\x7f\x80\x85\x9b\x9d\x9f"


def test_everything_that_unicode_calls_control_format_or_surrogate_is_hidden() -> None:
    letters = map(chr, range(sys.maxunicode + 1))
    categories = ("Cc", "Cf", "Cs", "Zl", "Zp")
    left = [
        f"{ord(letter):x}"
        for letter in letters
        if unicodedata.category(letter) in categories and not HIDDEN.match(letter)
    ]
    assert left == [f"{ord(blank):x}" for blank in "\t\n"]


def test_what_people_write_is_shown() -> None:
    for text in ("Ångström–漢字 ™ 🦆 ✔️ µs", "नमस्ते", "שלום عربي", "a\tb\nc", "\ue000"):
        assert visible(text) == text


def test_hidden_characters_are_replaced() -> None:
    for letter in BIDI + ZERO_WIDTH + CONTROLS + "\ud800\udfff\ufdd0\uffff":
        for function in (visible, one_line, unbroken):
            assert HIDDEN.search(function(f"a{letter}b")) is None, ascii(letter)
    assert visible("a\tb\x07\n\u202ec\n") == f"a\tb{REPLACED}\n{REPLACED}c\n"
    assert visible(f"@{JOINER}a\x1b", keeps_joiner=True) == f"@{JOINER}a{REPLACED}"


def test_a_line_is_one_line() -> None:
    assert one_line("box a\r\nb\u2028c\x1b") == f"box a b c{REPLACED}"
    assert one_line("x" * 300, 250) == "x" * 249 + "…"
    assert unbroken("a\r\nb\u2028  c\td\x1b") == f"a b   c d{REPLACED}"


def test_an_error_in_one_line_says_where_and_what_to_do_behind_semicolons() -> None:
    error = TidemarkError("sysbench is not installed", where="PATH", hint="run ./tidemark setup")
    assert one_line(str(error)) == "sysbench is not installed; where: PATH; to do: run ./tidemark setup"


@given(st.text() | st.text(alphabet=BIDI + ZERO_WIDTH + CONTROLS + '"\\nu{}'))
def test_json_holds_the_same_text_and_shows_all_of_it(text: str) -> None:
    shown = json_text({text: [text]}, indent=1)
    assert HIDDEN.search(shown) is None
    assert json.loads(shown) == {text: [text]}


def test_json_holds_no_half_of_a_character() -> None:
    assert json.loads(json_text("a\ud800b\U0001f986")) == f"a{REPLACED}b\U0001f986"
    assert json_text("Größe\x9b\U000e0041") == '"Größe\\u009b\\udb40\\udc41"'


def test_no_cell_of_csv_is_a_formula() -> None:
    for text in ("=1+1", "+1+1", "-1+1", "@SUM(A1)", "\t=1", "\r=1", " \n=1", "＝1", "-2+3+cmd|'/C calc'!A0"):
        ((cell,),) = csv.reader(io.StringIO(csv_text([[text]])))
        assert cell == f"'{one_line(text)}", text


def test_numbers_of_csv_stay_numbers() -> None:
    assert (
        csv_text([[-0.06, 1, None, "-0.06", "+1e-9", "a-b", "", "x\ny"]]) == "-0.06,1,,-0.06,+1e-9,a-b,,x y\n"
    )


@given(st.lists(st.text(), min_size=1))
def test_a_row_of_csv_is_one_line(texts: list[str]) -> None:
    text = csv_text([texts])
    assert text.count("\n") == 1
    assert HIDDEN.search(text) is None
    ((*cells,),) = csv.reader(io.StringIO(text))
    assert [cell.removeprefix("'") for cell in cells] == [one_line(cell).removeprefix("'") for cell in texts]
