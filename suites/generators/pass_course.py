"""The course of a counted pass as its load generator reports it: what a transaction costs, how far it is."""

import re
from pathlib import Path

from build.files import write_atomically
from suites.generators.load import COUNT, NUMBER, CountedWork, LongPassError, PassLength

_COST = re.compile(rf"tidemark: counted pass: ({NUMBER}) s a transaction")
_AT = re.compile(rf"tidemark: counted pass at ({COUNT}) of ({COUNT}) after ({NUMBER}) s")


class PassCourse:
    """Answers the load generator of a pass how many transactions it has, and tells how far it is."""

    def __init__(self, work: CountedWork, answer: Path) -> None:
        self.answer = answer
        """The file for which the load generator waits: the transactions before the marks and between them."""
        self.length: PassLength | None = None
        """None until it is chosen."""
        self._work = work
        self._done = 0

    def read(self, line: str) -> None:
        """Take in one line of output; lines of other kinds are ignored."""
        if match := _COST.fullmatch(line):
            self.length = self._work.choose(float(match[1]))
            write_atomically(self.answer, f"{self.length.warm} {self.length.counted}\n")
        elif match := _AT.fullmatch(line):
            self._done = int(match[1])
            self._work.tell(self._done, int(match[2]), float(match[3]))

    def too_long(self, step: str) -> LongPassError:
        """Return the error of a pass that has reached its time limit."""
        of = f"{self._done} of {self.length.transactions}" if self.length else "its first"
        return LongPassError(
            f"the counted pass of {step} was ended after {self._work.seconds:g} s, at {of} transactions",
            hint="leave the step out: name the others with --step; or count nothing, with --no-exact",
        )
