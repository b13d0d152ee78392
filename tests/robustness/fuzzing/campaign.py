"""A campaign against one parser: what it does with each input of a sequence, and the first surprise."""

import math
import os
import signal
import tempfile
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import NamedTuple

from tests.robustness.fuzzing.mutation import input_of

MAX_SECONDS = 2.0
"""CPU time that one input may take: a neighbour on the machine does not count."""

MAX = 1e15
"""Above this a number is absurd, unless the parser's bounds are narrower."""

SHOWN_BYTES = 4000

IN_MEMORY = "/dev/shm"


class Number(NamedTuple):
    """A number in a parser's answer, and its bounds."""

    name: str
    value: float
    most: float = MAX
    least: float = 0.0


Parse = Callable[[bytes], Iterable[Number]]
"""From an input to the numbers of the answer; raises the documented error."""


@dataclass(frozen=True)
class FuzzTarget:
    """A parser and how it is called."""

    name: str
    captures: Callable[[], Sequence[bytes]]
    """Real inputs, which the parser takes."""

    opened: Callable[[Path], Parse]
    """How it is called, given a folder of its own to put files in."""

    documented: tuple[type[Exception], ...]
    """What it may raise."""


@dataclass(frozen=True)
class Surprise:
    """An input that a parser did not take as documented."""

    target: str
    number: int
    """Of the input in the sequence."""

    what: str
    data: bytes

    def __str__(self) -> str:
        """The parser, what it did, and the input; very long inputs are cut in the middle."""
        shown = repr(self.data)
        if len(shown) > SHOWN_BYTES:
            half = SHOWN_BYTES // 2
            shown = f"{shown[:half]} ...{len(shown) - SHOWN_BYTES} more... {shown[-half:]}"
        return f"{self.target}, input {self.number}: {self.what}\n{shown}"


class _OverdueError(BaseException):
    """Not an Exception, so that no parser takes it for one of its own."""


def first_surprise(target: FuzzTarget, numbers: Iterable[int]) -> Surprise | None:
    """Try the numbered inputs one after the other; return the first surprise, or None.

    Must run in the main thread of its process, because a signal ends a parser that takes too long.
    """
    captures = target.captures()
    # Inputs are files for most parsers: in memory, where there is such a folder, so that no disk limits them.
    memory = IN_MEMORY if os.access(IN_MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="tidemark-fuzzing-", dir=memory) as folder, _overdue_raises():
        parse = target.opened(Path(folder))
        for capture in captures:
            if what := _tried(target, parse, capture, may_refuse=False):
                return Surprise(target.name, -1, f"a real capture: {what}", capture)
        tried: set[int] = set()
        for number in numbers:
            data = input_of(target.name, captures, number)
            # Of short captures up to half of all inputs have been there before, with the same answer.
            if (name := hash(data)) in tried:
                continue
            tried.add(name)
            if what := _tried(target, parse, data):
                return Surprise(target.name, number, what, data)
    return None


def _tried(target: FuzzTarget, parse: Parse, data: bytes, *, may_refuse: bool = True) -> str:
    """Return what is wrong with the answer to an input; empty when nothing is."""
    signal.setitimer(signal.ITIMER_PROF, MAX_SECONDS)
    try:
        numbers = list(parse(data))
        signal.setitimer(signal.ITIMER_PROF, 0)
    except _OverdueError:
        return f"no answer within {MAX_SECONDS:g} s of CPU time"
    except target.documented as error:
        return "" if may_refuse else f"it is refused: {error}"
    except Exception:
        return f"an undocumented error\n{traceback.format_exc()}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return "; ".join(_absurd(numbers))


def _absurd(numbers: Iterable[Number]) -> Iterator[str]:
    for number in numbers:
        if not (math.isfinite(number.value) and number.least <= number.value <= number.most):
            yield f"{number.name} is {number.value!r}, not within {number.least:g} and {number.most:g}"


@contextmanager
def _overdue_raises() -> Iterator[None]:
    def overdue(_signal: int, _frame: FrameType | None) -> None:
        raise _OverdueError

    before = signal.signal(signal.SIGPROF, overdue)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
