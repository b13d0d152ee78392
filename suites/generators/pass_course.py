"""The course of a counted pass as its load generator reports it: what a transaction costs, how far it is."""

import re
from collections.abc import Iterable
from pathlib import Path

from build.files import write_atomically
from suites.generators.load import (
    COUNT,
    NUMBER,
    CountedLoad,
    CountedWork,
    LoadError,
    LongPassError,
    PassLength,
)
from suites.generators.programs import LateError
from suites.generators.transcript import SysbenchTranscript
from suites.keys.step import Step

MARKS = 4
"""The marks of a pass, which sysbench counts as queries (suites/generators/tidemark/slices.lua)."""

_COST = re.compile(rf"tidemark: counted pass: ({NUMBER}) s a transaction")
_AT = re.compile(rf"tidemark: counted pass at ({COUNT}) of ({COUNT}) after ({NUMBER}) s")


class PassCourse:
    """Chooses how many transactions a pass has, and tells how far it is."""

    def __init__(self, work: CountedWork) -> None:
        self.length: PassLength | None = None
        """None until it is chosen."""
        self._work = work
        self._done = 0

    def choose(self, seconds: float) -> PassLength:
        """Return the length of the pass, from the seconds of a transaction."""
        self.length = self._work.choose(seconds)
        return self.length

    def tell(self, done: int, total: int, seconds: float) -> None:
        """Take in that so many transactions of all are done, so many seconds after the first began."""
        self._done = done
        self._work.tell(done, total, seconds)

    def too_long(self, step: str) -> LongPassError:
        """Return the error of a pass that has reached its time limit."""
        of = f"{self._done} of {self.length.transactions}" if self.length else "its first"
        return LongPassError(
            f"the counted pass of {step} was ended after {self._work.seconds:g} s, at {of} transactions",
            hint="leave the step out: name the others with --step; or count nothing, with --no-exact",
        )


class AnsweredCourse(PassCourse):
    """The course that sysbench prints while it runs, whose script waits for a file with the length."""

    def __init__(self, work: CountedWork, answer: Path) -> None:
        super().__init__(work)
        self.answer = answer
        """The file for which the script waits: the transactions before the marks and between them."""

    def read(self, line: str) -> None:
        """Take in one line of output; lines of other kinds are ignored."""
        if match := _COST.fullmatch(line):
            length = self.choose(float(match[1]))
            write_atomically(self.answer, f"{length.warm} {length.counted}\n")
        elif match := _AT.fullmatch(line):
            self.tell(int(match[1]), int(match[2]), float(match[3]))

    def followed(self, step: Step, lines: Iterable[str]) -> CountedLoad:
        """Read the output of a pass of `step` up to its end, and return what was done.

        Raises LoadError, and LongPassError at the time limit.
        """
        transcript = SysbenchTranscript()
        try:
            for line in lines:
                transcript.read(line)
                self.read(line)
        except LateError as error:
            raise self.too_long(step.name) from error
        queries, length = transcript.summary.get("queries", 0.0) - MARKS, self.length
        if length is None or transcript.summary.get("transactions") != length.counted or queries <= 0:
            raise LoadError(
                "sysbench did not finish the transactions of a counted pass",
                hint="its output is incomplete, or its script is not of this version of Tidemark",
            )
        return CountedLoad(length.counted, queries / length.transactions)
