"""Escaping of text from commits, hosts and logs for GitHub's Markdown."""

import re
import unicodedata

JOINER = "\N{ZERO WIDTH NON-JOINER}"
"""The character that prevents GitHub from reading `@` as a mention and `#` as a link to an issue."""

REPLACED = "\N{REPLACEMENT CHARACTER}"
"""Stands for a character that is not shown, or that changes how others are shown."""

_MARKUP = re.compile(r"([\\`*_{}\[\]<>|~])")

_LINKED = (
    re.compile(r"(?<!\w)@(?=\w)"),  # a person
    re.compile(r"@(?=[0-9a-fA-F]{7,40}\b)"),  # a commit of another repository
    # A mail address: a period behind the sign, and a letter, which a version such as postgres@18.6 has not.
    re.compile(r"@(?=[\w-]*(?:\.[\w-]+)+)(?=[\w.-]*[^\W\d_])"),
    re.compile(r"#(?=\w)"),  # an issue, here or in owner/repo#7
    re.compile(r"(?<![A-Za-z0-9])GH-(?=\d)", re.IGNORECASE),
    re.compile(r"(?<![A-Za-z0-9])www(?=\.)", re.IGNORECASE),
    re.compile(r":(?=//)"),
)
"""What GitHub links; the link is gone with JOINER behind the match."""

_INVISIBLE = ("Cc", "Cf", "Cs")
"""Categories of Unicode: control characters, such as those of terminals; format characters, which turn the
direction of text or are not shown; halves of a character."""


_ERROR_LINE = re.compile(r"\n  (where|to do):")
"""How a TidemarkError begins its further lines."""


def escaped(text: str) -> str:
    """Return text as one literal line, without markup, HTML, table cells, mentions and links.

    A version such as postgres@18.6 needs no escape: GitHub reads no mention directly after a word.
    """
    line = one_line(text).replace("&", "&amp;")
    for pattern in _LINKED:
        line = pattern.sub(rf"\g<0>{JOINER}", line)
    line = _MARKUP.sub(r"\\\1", line).replace("\\<", "&lt;").replace("\\>", "&gt;")
    return f"\\{line}" if re.match(r"#+(\s|$)", line) else line  # at the start of an item it makes a heading


def code_span(text: str) -> str:
    """One line in backticks, which nothing in it can end."""
    return f"`{one_line(text).replace('`', REPLACED)}`"


def one_line(text: str, longest: int | None = None) -> str:
    """Text without line ends, control and direction characters, cut to so many characters.

    The lines of an error, which begin with `where:` and `to do:`, are set off by semicolons.
    """
    line = visible(" ".join(_ERROR_LINE.sub(r"; \1:", text).split()))
    return line if longest is None or len(line) <= longest else f"{line[: longest - 1]}…"


def visible(text: str) -> str:
    """Text of several lines whose control and direction characters are replaced."""
    lines = "\n".join(text.splitlines()) + ("\n" if text.endswith(("\n", "\r")) else "")
    return "".join(REPLACED if _is_invisible(letter) else letter for letter in lines)


def _is_invisible(letter: str) -> bool:
    return letter not in f"\n\t{JOINER}" and unicodedata.category(letter) in _INVISIBLE
