"""Questions whose answers are given by options, taken from what was found, or asked on a terminal."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from build.errors import TidemarkError

Answer = TypeVar("Answer")
Words = Sequence[str]

NONE = "none"
"""What is answered where nothing is wanted."""

INTRODUCTION = (
    f"Return takes the answer in brackets. Put a space between several, and write {NONE} for nothing.\n"
)


class InitError(TidemarkError):
    """An answer is missing or cannot be used, or the plan cannot be written."""


@dataclass(frozen=True)
class InitQuestion:
    """One question of the interview."""

    option: str
    """Its option, such as `--box`."""

    text: str
    """What is asked, in a few words."""

    default: Words | None
    """The answer that is offered; None if nothing was found."""

    example: Words
    """An answer that could be given, for messages."""


@dataclass
class Interview:
    """Asks questions one by one, and keeps what is missing or refused until all were asked."""

    given: Mapping[str, Words]
    """What options say, by option."""

    takes_defaults: bool
    """Whether defaults are taken without asking."""

    ask: Callable[[str], str] | None
    """Shows a prompt and returns a line of a terminal; None if there is none. Raises InitError at its end."""

    tell: Callable[[str], None] = print
    """Shows a line on the terminal."""

    has_begun: bool = False
    """Whether a question was shown."""

    missing: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    def answer(self, question: InitQuestion, accept: Callable[[Words], Answer]) -> Answer:
        """Return an answer, as `accept` makes it of words; `accept` raises TidemarkError for others.

        Where it is missing or refused, that is noted, and what stands in for it lets the questions go on;
        `require_complete` tells all of that at once.
        """
        given = self.given.get(question.option)
        if given is not None:
            try:
                return accept(given)
            except TidemarkError as error:
                self.refused.append(f"{question.option} {' '.join(given)}: {_in_a_line(error)}")
                return accept(question.example)
        if self.takes_defaults and question.default is not None:
            return accept(question.default)
        if self.ask is None or self.takes_defaults:
            self.missing.append(_missing(question))
            return accept(question.default or question.example)
        return self._asked(question, accept, self.ask)

    def _asked(
        self, question: InitQuestion, accept: Callable[[Words], Answer], ask: Callable[[str], str]
    ) -> Answer:
        if not self.has_begun:
            self.tell(INTRODUCTION)
            self.has_begun = True
        shown = f" [{' '.join(question.default)}]" if question.default else ""
        while True:
            words = ask(f"{question.text}{shown}: ").split() or question.default
            if not words:
                self.tell(f"  an answer is needed, such as {' '.join(question.example)}")
                continue
            try:
                return accept(words)
            except TidemarkError as error:
                self.tell(f"  {_in_a_line(error)}")

    def require_complete(self) -> None:
        """Raise InitError with all options that are missing or refused."""
        if self.refused:
            raise InitError("\n".join(["answers cannot be used:", *_indented(self.refused)]))
        if self.missing:
            hint = "give these options, or call the command on a terminal, which asks"
            if not self.takes_defaults:
                hint += "; --yes takes the defaults"
            raise InitError("\n".join(["answers are missing:", *_indented(self.missing)]), hint=hint)


def _missing(question: InitQuestion) -> str:
    if question.default is None:
        return f"{question.option}: {question.text}, such as {' '.join(question.example)}"
    return f"{question.option}: {question.text} (default: {' '.join(question.default)})"


def _indented(lines: Words) -> list[str]:
    return [f"    {line}" for line in lines]


def _in_a_line(error: TidemarkError) -> str:
    return "; ".join(part for part in (error.what, error.hint) if part).replace("\n", " ")
