"""The part of an issue that is Tidemark's: one block of its body, and the title as long as nobody edited it.

The block stands between two HTML comments, which are not rendered:

    <!-- tidemark FINGERPRINT NONCE begin TITLE TEXT: Tidemark rewrites this part; write above or below -->
    the text

    <!-- tidemark FINGERPRINT NONCE -->

TITLE and TEXT are digests of the title and of the text as Tidemark wrote them, by which a later delivery
knows whether a person edited them. What stands around the block stays as it is, byte for byte. Lines that a
person wrote into the block are moved out of it, above or below. Issues of earlier versions have the last
comment alone, with all of our text before it.
"""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

LONGEST_BODY = 65_000
"""Characters of a body, people's text included, without our comments; GitHub takes 65,536 with them."""

MORE = "(and more: the history has all of it)"
"""The last line of a text that was cut."""

ANY_MARKER = "<!-- tidemark "
"""How every comment of ours begins."""

_DIGITS = 12

_NOTE = "Tidemark rewrites this part; write above or below"

_BOX = re.compile(r"^(\s*[-*] )\[[ xX]\]")


@dataclass(frozen=True)
class IssueText:
    """A title, and the text of a block."""

    title: str
    text: str
    """Markdown, with line feeds."""


@dataclass(frozen=True)
class _Parts:
    """A body, cut at the comments of a block."""

    above: str
    text: str
    below: str
    title_digest: str
    """Empty in a body of an earlier version."""

    text_digest: str


def end_marker(name: str) -> str:
    """The comment that ends the block of an alert, and by which its issue is found again.

    `name` consists of the alert's fingerprint and its nonce, which nobody else knows.
    """
    return f"{ANY_MARKER}{name} -->"


def new_body(name: str, ours: IssueText) -> str:
    """The body of a new issue."""
    return _block(name, ours, LONGEST_BODY) + "\n"


def edited(
    name: str, title: str, body: str, ours: IssueText, sent: IssueText | None
) -> tuple[str | None, str | None]:
    """What an issue's title and body are to become; None for one that stays as it is.

    `sent` is what was sent last, as far as it is known. The body must hold the end marker.
    """
    parts = _parts(name, body)
    new_title = ours.title if _is_our_title(title, parts, sent) else title
    is_as_written = _digest(parts.text) == parts.text_digest
    if (
        is_as_written
        and parts.text_digest == _digest(_cut(ours.text, _room(parts)))
        and parts.title_digest == _digest(ours.title)
    ):
        new_body = body
    else:
        above, below = ("", "") if is_as_written else _peoples(parts, sent)
        kept = _Parts(parts.above + above, "", below + parts.below, "", "")
        new_body = kept.above + _block(name, ours, _room(kept)) + kept.below
    return (None if new_title == title else new_title), (None if new_body == body else new_body)


def is_written(name: str, body: str, sent: str) -> bool:
    """Whether a body is the one that was sent, whatever its line ends."""
    return end_marker(name) in body and _plain(body) == _plain(sent)


def is_ours_alone(name: str, title: str, body: str) -> bool:
    """Whether nobody has written anything into an issue, so that closing it loses nothing.

    Of an issue of an earlier version, it is one whose body ends with the marker.
    """
    if end_marker(name) not in body:
        return False
    parts = _parts(name, body)
    if parts.above.strip() or parts.below.strip():
        return False
    return not parts.text_digest or (_digest(title), _digest(parts.text)) == (
        parts.title_digest,
        parts.text_digest,
    )


# --- parts of a body


def _parts(name: str, body: str) -> _Parts:
    escaped = re.escape(name)
    begin = re.search(rf"{ANY_MARKER}{escaped} begin ([0-9a-f]+) ([0-9a-f]+): [^\n]*-->\r?\n?", body)
    end = body.find(end_marker(name), begin.end() if begin else 0)
    if begin is None or end < 0:  # an earlier version, or a person removed the first comment
        text, _, below = body.partition(end_marker(name))
        return _Parts("", text, below, "", "")
    below = body[end + len(end_marker(name)) :]
    return _Parts(body[: begin.start()], body[begin.end() : end], below, begin[1], begin[2])


def _block(name: str, ours: IssueText, room: int) -> str:
    text = _cut(ours.text, room)
    begin = f"{ANY_MARKER}{name} begin {_digest(ours.title)} {_digest(text)}: {_NOTE} -->"
    return f"{begin}\n{text.rstrip()}\n\n{end_marker(name)}"


def _room(parts: _Parts) -> int:
    """Characters that people's text leaves of a body."""
    return max(LONGEST_BODY - len(parts.above) - len(parts.below), 0)


def _cut(text: str, room: int) -> str:
    return text if len(text) <= room else f"{text[:room].rstrip()}\n\n{MORE}"


def _digest(text: str) -> str:
    return hashlib.sha256(_plain(text).encode()).hexdigest()[:_DIGITS]


def _plain(text: str) -> str:
    """Without what an editor in a browser changes: line ends, and space around a text."""
    return text.replace("\r\n", "\n").replace("\r", "\n").strip()


# --- what people wrote


def _is_our_title(title: str, parts: _Parts, sent: IssueText | None) -> bool:
    if parts.title_digest:
        return _digest(title) == parts.title_digest
    return sent is not None and _plain(title) == _plain(sent.title)


def _peoples(parts: _Parts, sent: IssueText | None) -> tuple[str, str]:
    """The lines of a block that are not Tidemark's: those before its first one, and all others.

    All of them are people's if it is not known what Tidemark wrote.
    """
    lines = parts.text.splitlines(keepends=True)
    if sent is None:
        return (_whole(lines), "") if parts.text.strip() else ("", "")
    written = [_line(line) for line in sent.text.splitlines()]
    present = [_line(line) for line in lines]
    matcher = SequenceMatcher(None, written, present, autojunk=False)
    above: list[str] = []
    below: list[str] = []
    for what, first, _, begin, end in matcher.get_opcodes():
        if what in ("insert", "replace"):
            (above if first == 0 else below).extend(lines[begin:end])
    return _whole(above), _whole(below, below=True)


def _line(line: str) -> str:
    """A line as it is compared: without its end, and whether or not a person ticked its box."""
    return _BOX.sub(r"\1[ ]", line.rstrip())


def _whole(lines: Sequence[str], *, below: bool = False) -> str:
    """Lines that are moved out of a block, set off from it; empty if nothing is in them."""
    text = "".join(line for line in lines if line.strip() != MORE)
    if not text.strip():
        return ""
    kept = text.strip("\r\n")
    return f"\n\n{kept}\n" if below else f"{kept}\n\n"
