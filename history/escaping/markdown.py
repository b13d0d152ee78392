"""Markdown as trackers have it, into which a text is put only through a template, and is escaped there.

md("- {}: {:+.1f} % in {}", branch, change, code_span(commit))
"""

import re
import string
from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import quote

from history.escaping.characters import JOINER, REPLACED, one_line, unbroken, visible

_LINKED = (
    re.compile(r"(?<![A-Za-z0-9_])@(?=\w)"),  # a person or a team; GitHub takes é@team for a mention
    re.compile(r"@(?=[0-9a-fA-F]{7,40}\b)"),  # a commit of another repository
    # A mail address: a period behind the sign, and a letter, which a version such as postgres@18.6 has not.
    re.compile(r"@(?=[\w-]*(?:\.[\w-]+)+)(?=[\w.-]*[^\W\d_])"),
    re.compile(r"#(?=\w)"),  # an issue, here or in owner/repo#7
    re.compile(r"(?<![A-Za-z0-9])G[HL]-(?=\d)", re.IGNORECASE),
    re.compile(r"[!$](?=\d)"),  # a merge request of GitLab or Gitea, a snippet
    re.compile(r"[%~](?=[\w\"])"),  # a milestone and a label of GitLab
    re.compile(r"&amp;(?=\d)"),  # an epic of GitLab
    re.compile(r"(?<![A-Za-z0-9])www(?=\.)", re.IGNORECASE),
    re.compile(r":(?=//)"),
)
"""What GitHub, GitLab or Gitea link; the link is gone with JOINER behind the match. A plain hash of a commit
stays as it is: its link tells nobody, and a hash with JOINER in it could not be copied."""

_MARKUP = re.compile(r"([\\`*{}\[\]|~$]|(?<![^\W_])_|_(?![^\W_]))")
"""Signs that GitHub reads anywhere. An underscore between two letters or digits is literal."""

_BEGINNING = re.compile(
    r"#{1,6}(?=\s|$)"  # a heading
    r"|[-+](?=\s|$)|:?-+:?$|=+$"  # an item, a rule, the line below a heading or below the heads of a table
    r"|[0-9]{1,9}(?=[.)](?:\s|$))"  # a numbered item
)
"""What GitHub reads at the beginning of a line, or of an item."""


_ACCOUNT = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]*(?:[._][A-Za-z0-9-]+)*(?:/[A-Za-z0-9][A-Za-z0-9._-]*)*")
"""What can be mentioned: an account, or a team below an organisation."""

LONGEST_TEXT = 4_000
"""Characters of a text within a line: GitHub takes 65,536 in an issue, of which a text must not take all."""


class Markdown(str):
    """Text that is Markdown. Every other string is plain, and is escaped when it is put into a Markdown.

    Only this module makes one, and the outbox, which stores what it was given.
    """

    __slots__ = ()


class _Escaping(string.Formatter):
    def format_field(self, value: Any, format_spec: str) -> str:
        return value if isinstance(value, Markdown) else escaped(format(value, format_spec))


_FORMATTER = _Escaping()


def md(template: str, /, *values: object, **named: object) -> Markdown:
    """Return the template, a literal, with a value in each field, as `str.format` does.

    A value that is no Markdown is put in as one literal line.
    """
    return Markdown(_FORMATTER.vformat(template, values, named))


def escaped(text: str) -> Markdown:
    """Return a text as one literal line, without markup, HTML, table cells, mentions and links.

    A Markdown stays as it is. A version such as postgres@18.6 needs no escape: GitHub reads no mention
    directly after a word.
    """
    if isinstance(text, Markdown):
        return text
    line = one_line(text, LONGEST_TEXT).replace("&", "&amp;")
    for pattern in _LINKED:
        line = pattern.sub(rf"\g<0>{JOINER}", line)
    line = _MARKUP.sub(r"\\\1", line).replace("<", "&lt;")
    if line.startswith(">"):
        line = f"&gt;{line[1:]}"
    begins = _BEGINNING.match(line)
    if begins is None:
        return Markdown(line)
    # A backslash works before punctuation only: in `1.` it stands before the period.
    split = begins.end() if line[0].isdigit() else 0
    return Markdown(f"{line[:split]}\\{line[split:]}")


def joined(parts: Iterable[str], between: str = "\n") -> Markdown:
    """Return lines as one Markdown; plain ones are escaped."""
    return Markdown(between.join(map(escaped, parts)))


def document(lines: Iterable[str]) -> Markdown:
    """Return lines as a whole text, which ends with one line feed."""
    return Markdown(f"{joined(lines).rstrip()}\n")


def cut(text: Markdown, longest: int) -> Markdown:
    """Return as many whole lines as fit into so many characters; of one that is longer, its beginning."""
    if len(text) <= longest:
        return text
    end = text.rfind("\n", 0, longest)
    return Markdown(text[: end if end >= 0 else longest])


def row(cells: Iterable[str]) -> Markdown:
    """Return a row of a table."""
    return Markdown(f"| {joined(cells, ' | ')} |")


def columns(heads: Sequence[str], left: Iterable[str]) -> Markdown:
    """Return the first two lines of a table: the heads in `left` are flush left, the others flush right."""
    sides = (Markdown(":--" if head in left else "--:") for head in heads)
    return joined([row(heads), row(sides)])


def link(address: str, text: str | None = None) -> Markdown:
    """Return a link to an address of the web, shown as `text` or as itself; any other address as text."""
    if not address.startswith(("https://", "http://")):
        return escaped(text or address)
    target = quote(one_line(address), safe="/:@?&=#%+,;~!$'.-_")
    return Markdown(f"<{target}>" if text is None else f"[{escaped(text)}]({target})")


def mention(account: str) -> Markdown:
    """Return a mention of an account or a team, with @; a name that can be neither as text."""
    return Markdown(f"@{account}") if _ACCOUNT.fullmatch(account) else escaped(account)


def code_span(text: str) -> Markdown:
    """Return one line in backticks, which nothing in it can end."""
    return Markdown(f"`{one_line(text).replace('`', REPLACED)}`")


def code_block(lines: Iterable[str]) -> Markdown:
    """Return lines of shell commands in a fence that is longer than any in them; a line stays one line."""
    code = "\n".join(map(unbroken, lines))
    fence = "`" * max(3, *(len(found) + 1 for found in re.findall("`+", code)), 0)
    return Markdown(f"{fence}sh\n{code}\n{fence}")


def indented(text: str, indent: str = "    ") -> Markdown:
    """Return a text of several lines as a block in which nothing is markup."""
    return Markdown("\n".join(f"{indent}{line}".rstrip() for line in visible(text).splitlines()))
