"""Characters that are not shown, or that change how others are shown, and texts without them."""

import re

REPLACED = "\N{REPLACEMENT CHARACTER}"
"""Stands for a character that is not shown."""

JOINER = "\N{ZERO WIDTH NON-JOINER}"
"""The character that Markdown of ours holds on purpose (`history.escaping.markdown`)."""

INVISIBLE = (
    r"\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters but tab and line feed
    r"\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    r"\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ud800-\udfff\ufdd0-\ufdef\ufe00-\ufe0d\ufeff\uffa0"
    r"\ufff0-\ufffb\ufffe\uffff"
    r"\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    r"\U000e0000-\U000e0fff"
)
"""The inside of a character class: controls, such as those of terminals; characters that set the direction of
text or are not shown; halves of a character; and what Unicode sets aside for no use. The selectors of emoji,
U+FE0E and U+FE0F, are not among them."""

_HIDDEN = re.compile(f"[{INVISIBLE}]")
_HIDDEN_BUT_JOINER = re.compile(f"(?!{JOINER})[{INVISIBLE}]")

_ERROR_LINE = re.compile(r"\n  (where|to do):")
"""How a TidemarkError begins its further lines."""


def visible(text: str, *, keeps_joiner: bool = False) -> str:
    """Return a text of several lines with REPLACED for everything that is not shown.

    `keeps_joiner` is for a whole output, which may hold the JOINER of Markdown.
    """
    hidden = _HIDDEN_BUT_JOINER if keeps_joiner else _HIDDEN
    if not hidden.search(text):
        return text
    lines = "\n".join(text.splitlines()) + ("\n" if text.endswith(("\n", "\r")) else "")
    return hidden.sub(REPLACED, lines)


def one_line(text: str, longest: int | None = None) -> str:
    """Return a text as one line, with single blanks, cut to so many characters.

    The lines of an error, which begin with `where:` and `to do:`, are set off by semicolons.
    """
    line = visible(" ".join(_ERROR_LINE.sub(r"; \1:", text).split()))
    return line if longest is None or len(line) <= longest else f"{line[: longest - 1]}…"


def unbroken(text: str) -> str:
    """Return a text as one line in which all blanks stay, so that columns stay aligned."""
    return visible(text).replace("\n", " ").replace("\t", " ")
