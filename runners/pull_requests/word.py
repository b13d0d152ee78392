"""The word that has a pull request tried: `/tidemark try` in a comment, and what it may name, or a label."""

import re
from dataclasses import dataclass
from typing import Self

from build.errors import TidemarkError, did_you_mean

WORD = "/tidemark"
TRY = "try"

LABEL = "tidemark-try"
"""The label that is as good as a comment with nothing but the word."""

COMMIT = re.compile(r"[0-9a-f]{40}")
"""A whole name: a shorter one can be that of two commits, which somebody can have made on purpose."""

KEYS = ("box", "suite", "profile")

USAGE = f"{WORD} {TRY} [COMMIT] [box=NAME] [suite=NAME] [profile=NAME]"


class WordError(TidemarkError):
    """The word is there, and asks for something that there is not."""


@dataclass(frozen=True)
class TryWord:
    """What a comment asks for; what it does not name is chosen."""

    commit: str = ""
    """The whole name of the commit that was reviewed; empty for the one at the time of the word."""

    box: str = ""
    suite: str = ""
    profile: str = ""

    @classmethod
    def parse(cls, body: str) -> Self | None:
        """Return what the first line of a comment asks for; None if it is not for Tidemark.

        Raises WordError for a line that is, and cannot be understood.
        """
        lines = body.strip().splitlines()
        words = lines[0].split() if lines else []
        if words[:1] != [WORD]:
            return None
        if words[1:2] != [TRY]:
            raise WordError(f"'{' '.join(words)[:80]}' is not understood", hint=f"write {USAGE}")
        commits, named = list[str](), {key: list[str]() for key in KEYS}
        for word in words[2:]:
            key, equals, value = word.partition("=")
            if not equals and COMMIT.fullmatch(word):
                commits.append(word)
            elif equals and key in named and value:
                named[key].append(value)
            else:
                meant = did_you_mean(key, KEYS) if equals else "a commit is named with all of its 40 digits"
                raise WordError(f"'{word[:80]}' is not understood", hint=f"{meant} write {USAGE}".strip())
        for what, values in {"a commit": commits, **named}.items():
            if len(values) > 1:
                raise WordError(f"{what} is named {len(values)} times", hint=f"write {USAGE}")
        return cls(*("".join(values) for values in (commits, *(named[key] for key in KEYS))))
