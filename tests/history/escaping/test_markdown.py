"""Markdown: what is put into it stays text, on GitHub and for whoever renders it."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from history.escaping.characters import JOINER, REPLACED
from history.escaping.markdown import (
    Markdown,
    code_block,
    code_span,
    columns,
    escaped,
    indented,
    joined,
    md,
    row,
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a | b\n`c`", "a \\| b \\`c\\`"),
        ("<img src=x onerror=alert(1)>&amp;", "&lt;img src=x onerror=alert(1)>&amp;amp;"),
        ("ping @torvalds, see #123", f"ping @{JOINER}torvalds, see #{JOINER}123"),
        ("é@team/x _@team", f"é@{JOINER}team/x \\_@team"),
        ("(@org/team)", f"(@{JOINER}org/team)"),
        ("postgres@18.6", "postgres@18.6"),
        ("mysql@8.0.46, postgres@REL_18_STABLE", "mysql@8.0.46, postgres@REL_18_STABLE"),
        ("[x](http://evil)", f"\\[x\\](http:{JOINER}//evil)"),
        ("![x](data:x)", "!\\[x\\](data:x)"),
        ("owner/repo#7", f"owner/repo#{JOINER}7"),
        ("GH-12, gh-1", f"GH-{JOINER}12, gh-{JOINER}1"),
        ("GL-12", f"GL-{JOINER}12"),
        ("see !7, group/project!7", f"see !{JOINER}7, group/project!{JOINER}7"),
        ("~bug %next $3 &4", f"\\~{JOINER}bug %{JOINER}next \\${JOINER}3 &amp;{JOINER}4"),
        ("5 % of ~ 3 & 4", "5 % of \\~ 3 &amp; 4"),
        ("see www.evil.org", f"see www{JOINER}.evil.org"),
        ("ann.b+c@example.org", f"ann.b+c@{JOINER}example.org"),
        ("owner/repo@0123abcdef", f"owner/repo@{JOINER}0123abcdef"),
        ("_a_ a_b a__b", "\\_a\\_ a_b a\\_\\_b"),
        ("$\\href{x}$", "\\$\\\\href\\{x\\}\\$"),
        ("a -> b", "a -> b"),
        ("\x1b[31mred\u202eder\u2066\x00", f"{REPLACED}\\[31mred{REPLACED}der{REPLACED * 2}"),
        # at the beginning of a line
        ("# a heading", "\\# a heading"),
        ("## ", "\\##"),
        ("> a quotation", "&gt; a quotation"),
        ("- an item", "\\- an item"),
        ("1. an item", "1\\. an item"),
        ("12) an item", "12\\) an item"),
        ("---", "\\---"),
        ("===", "\\==="),
        (":--:", "\\:--:"),
        ("-1.5 % of 3.5", "-1.5 % of 3.5"),
        ("1.5 and more", "1.5 and more"),
    ],
)
def test_text_of_others_does_nothing_on_github(text: str, shown: str) -> None:
    assert escaped(text) == shown
    assert escaped(f"a\n{text}").startswith("a ")


@given(st.text())
def test_escaped_text_is_one_line_without_markup(text: str) -> None:
    found = escaped(text)
    assert len(found.splitlines()) <= 1
    assert "<" not in found
    assert not found.startswith((">", "- ", "+ ", "# "))
    for sign in "`|*[]$~":
        assert sign not in found.replace("\\\\", "").replace(f"\\{sign}", "")


@given(st.text(alphabet=string.ascii_letters + string.digits + " .,:%()/@_-"))
def test_words_and_numbers_are_nearly_as_they_were(text: str) -> None:
    bare = escaped(text).replace("\\", "").replace(JOINER, "")
    assert bare == " ".join(text.split())


def test_a_template_escapes_what_is_plain() -> None:
    assert md("**{}**: {:+.1%}", "*x*", 0.5) == "**\\*x\\***: +50.0%"
    assert md("- {who} in {where}", who="@a", where=code_span("b`c")) == f"- @{JOINER}a in `b{REPLACED}c`"
    assert md("{{{}}}", md("*{}*", "x")) == "{*x*}"
    assert type(md("{}", "x")) is Markdown
    with pytest.raises(IndexError):
        md("{} {}", "x")


def test_what_is_joined_is_escaped_once() -> None:
    assert joined(["<", escaped("<"), "", Markdown("<b>")]) == "&lt;\n&lt;\n\n<b>"
    assert row(["a|b", escaped("a|b")]) == "| a\\|b | a\\|b |"
    assert columns(["step", "x"], left=["step"]) == "| step | x |\n| :-- | --: |"


def test_nothing_ends_a_block_of_code() -> None:
    assert code_span("a`b\nc") == f"`a{REPLACED}b c`"
    assert code_block(["x", "```", "a\nb"]) == "````sh\nx\n```\na b\n````"
    assert indented("<a>\n\n# b\x1b") == f"    <a>\n\n    # b{REPLACED}"
