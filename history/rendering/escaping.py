"""Escaping of text from commits, hosts and logs for GitHub's Markdown."""

import re

_MARKUP = re.compile(r"([\\`*_{}\[\]<>|~])")
_MENTION = re.compile(r"(?<!\w)([@#])(?=\w)")

JOINER = "\N{ZERO WIDTH NON-JOINER}"
"""The character that prevents GitHub from reading `@` as a mention and `#` as a link to an issue."""


def escaped(text: str) -> str:
    """Return text as one literal line, without markup, HTML, table cells, mentions and links.

    A version such as postgres@18.6 needs no escape: GitHub reads no mention directly after a word.
    """
    line = " ".join(text.split())
    line = line.replace("&", "&amp;")
    line = _MARKUP.sub(r"\\\1", line).replace("\\<", "&lt;").replace("\\>", "&gt;")
    line = _MENTION.sub(rf"\1{JOINER}", line)
    return line.replace("://", f":{JOINER}//")
