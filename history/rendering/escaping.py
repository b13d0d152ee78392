"""Text of commits, hosts and logs made harmless where GitHub renders Markdown."""

import re

_MARKUP = re.compile(r"([\\`*_{}\[\]<>|~])")
_MENTION = re.compile(r"(?<!\w)([@#])(?=\w)")

JOINER = "\N{ZERO WIDTH NON-JOINER}"
"""Behind a sign, so that GitHub neither mentions a person nor links an issue."""


def escaped(text: str) -> str:
    """One line that reads as it is: no markup, HTML, table cell, mention or link to an issue comes of it.

    A version such as postgres@18.6 is no mention: GitHub wants something other than a word before the sign.
    """
    line = " ".join(text.split())
    line = line.replace("&", "&amp;")
    line = _MARKUP.sub(r"\\\1", line).replace("\\<", "&lt;").replace("\\>", "&gt;")
    line = _MENTION.sub(rf"\1{JOINER}", line)
    return line.replace("://", f":{JOINER}//")
