"""Results of a benchmark as its tool writes them, and how they become values of a history.

A tool says what it measured, not where, and seldom when and of which version: the command line says that.
Each result is a round of its version and step.
"""

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from sqlalchemy import Connection, select

from history.store.schema import measurements, runs, sessions
from history.transfer.foreign.document import Document
from history.transfer.foreign.sessions import uid_of
from history.transfer.foreign.values import PROFILE, Given, Location, Occasion, Read, Value, refuse
from history.transfer.foreign.version_names import version_of
from history.transfer.row_source import TransferError
from suites.keys.levels import LEVEL

NAMED_LINES = 4
"""The lines between results that a refusal names."""

LONGEST_LINE = 60
"""Characters that it shows of each."""

LONGEST_NAME = 200
"""Characters of the name of a step, suite or machine."""

COMMIT = re.compile(r"[0-9a-f]{4,40}")
"""A name of a commit in git; anything else that a file gives for one is left out."""


@dataclass(frozen=True)
class Result:
    """What one run of a benchmark measured."""

    values: Mapping[str, float]
    """By metric, in its unit."""

    place: Location
    step: str | None = None
    """What was run; None if the tool does not say."""

    clients: int | None = None
    """The clients at once, which become part of the name of the step."""

    profile: str = PROFILE
    version: str | None = None
    when: datetime | None = None
    commit: str = ""
    below: Mapping[str, str] = field(default_factory=dict)
    """The lines above it that are not the tool's, by their first word: the last one of each."""


_CLOCK = re.compile(
    r"(?:\d{4}-\d\d-\d\d[T ]|(?<![\w.]))\d\d?:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?(?!\d)"
)
_CALENDAR = re.compile(
    r"\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun|Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*\b"
    r"|\b(?:\d\d?|\d{4})\b"
)
"""The rest of a date, in a line that has a time."""

_ROUND = re.compile(
    r"\b(?:run|round|iteration|iter|repetition|rep|repeat|pass|loop|trial|attempt)\b\W*\d+(?:\s*(?:/|of)\s*\d+)?"
    r"|^\W*\d+\W*$|^(?:real|user|sys)\s.*",
    re.IGNORECASE,
)
"""What differs between the rounds of one: their numbers, and how long they took by a shell's clock."""


class LinesAbove:
    """The lines of an output that its tool did not write, as they apply to what follows."""

    def __init__(self) -> None:
        """Begin a file."""
        self._by_word: dict[str, str] = {}

    def add(self, line: str) -> None:
        """Take a line; it replaces an earlier one with the same first word."""
        timeless = _CLOCK.sub(" ", line)
        if timeless != line:
            timeless = _CALENDAR.sub(" ", timeless)
        words = " ".join(_ROUND.sub(" ", timeless).split())
        if re.search(r"[^\W_]", words):
            self._by_word[words.partition(" ")[0]] = words

    @property
    def now(self) -> Mapping[str, str]:
        """The lines that apply here, by their first word."""
        return dict(self._by_word)


def aborted(place: Location, why: str) -> TransferError:
    """Return the error for a run that did not do its work; `why` is where the tool says so."""
    return refuse(
        place, f"the run was aborted ({why}): its result is no measurement", "leave it out, or repeat it"
    )


def elsewhere(document: Document, pattern: re.Pattern[str]) -> str:
    """Say where a line that results need stands behind something else; empty if it is nowhere."""
    for number, line in document.lines():
        if (match := pattern.search(line)) and match.start():
            prefix = line[: match.start()][:LONGEST_LINE]
            return f"; {document.place(number)} has it after '{prefix}', which has to go"
    return ""


def _telling_apart(rounds: Sequence[Result]) -> list[str]:
    """Return the lines that only some of several results are below."""
    lines = dict.fromkeys(line for result in rounds for line in result.below.values())
    return [line for line in lines if not all(line in result.below.values() for result in rounds)]


ResultReader = Callable[[Sequence[Document], Given, list[str]], Iterable[Result]]
"""Returns the results in one run's files, and says in the list what is left out. Raises TransferError."""

Recogniser = Callable[[Document], bool]
"""Returns whether a file has a format, or was meant to."""

RunName = Callable[[str], str]
"""Returns the part of a file's name that all files of its run have."""


@dataclass(frozen=True)
class ToolFormat:
    """A format in which a tool writes results."""

    name: str
    """Such as `the output of sysbench`."""

    suite: str
    """The name of the suite unless the command line has another one."""

    recognises: Recogniser
    read: ResultReader
    example: str
    """A small file that is accepted."""

    run_of: RunName | None = None
    """Returns what the names of the files of one run have in common; None where each file is whole."""

    is_series: bool = False
    """Whether a file has results of many times, each of which is a session of its own."""

    def values(self, documents: Sequence[Document], given: Given) -> Read:
        """Return the values of the results in the files of one run. Raises TransferError."""
        read = Read()
        results = self._results(documents, given, read.notes)
        read.results = [_values(result, given, self) for result in results]
        self._require_one_source(results, read.results, given)
        if not read.results:
            what = "; ".join(["it holds no result", *read.notes])
            raise self.refusal(Location(documents[0].name, "the whole file"), what)
        steps = dict.fromkeys(value.step for result in read.results for value in result)
        if given.step and not any(given.step in step for step in steps):
            raise refuse(
                read.results[0][0].place,
                f"--step {given.step} is for results that do not name their step: {', '.join(steps)}",
                "leave it out",
            )
        return read

    def _results(self, documents: Sequence[Document], given: Given, notes: list[str]) -> list[Result]:
        """The results, if need be without a prefix that all lines have. Notes are of the last try."""
        whole = list(self.read(documents, given, notes))
        if whole or len(documents) > 1:
            return whole
        for cut in documents[0].without_prefix():
            others: list[str] = []
            if found := list(self.read([cut], given, others)):
                notes[:] = [
                    f"{cut.name}: '{cut.prefix_text}' before the first line, and what is like it before the "
                    "others, is left out",
                    *others,
                ]
                return found
        return []

    def _require_one_source(
        self, results: Sequence[Result], read: Sequence[Sequence[Value]], given: Given
    ) -> None:
        """Refuse results that would be rounds of one step, and are below lines that tell them apart."""
        if self.is_series:
            return
        by_round: defaultdict[tuple[Occasion, str, str], list[Result]] = defaultdict(list)
        for result, (value, *_) in zip(results, read, strict=True):
            by_round[value.occasion, value.version, value.step].append(result)
        for (_, _, step), rounds in by_round.items():
            versions = [*dict.fromkeys(result.version for result in rounds if result.version)]
            if given.version and len(versions) > 1:
                raise refuse(
                    rounds[0].place,
                    f"results of {step} are of {' and '.join(versions)}, and --version makes them one",
                    "leave --version out, or write the results of each version to a file of its own",
                )
            if lines := _telling_apart(rounds):
                more = f" and {len(lines) - NAMED_LINES} more" if len(lines) > NAMED_LINES else ""
                shown = ", ".join(f"'{line[:LONGEST_LINE]}'" for line in lines[:NAMED_LINES])
                raise refuse(
                    next(result.place for result in rounds if result.below != rounds[0].below),
                    f"results of {step} are below different lines, and so perhaps of several machines or "
                    f"versions, which are no rounds of one: {shown}{more}",
                    "write the results of each to a file of its own, and import it with its --machine, "
                    "--version or --suite; if they are rounds of one, delete these lines",
                )

    def refusal(self, place: Location, what: str) -> TransferError:
        """Return the error for a file that is of this format and lacks something."""
        return refuse(
            place, f"this is {self.name}: {what}", f"what is accepted looks like this:\n{self.example}"
        )


def _values(result: Result, given: Given, tool: ToolFormat) -> tuple[Value, ...]:
    version = given.version or result.version
    when = result.when if tool.is_series else given.when or result.when
    step = result.step or given.step
    if not (given.machine and version and when and step):
        said = {"machine": given.machine, "version": version, "when": when, "step": step}
        raise _unsaid(result.place, tool, [name for name, value in said.items() if not value])
    wrong = next((metric for metric, number in result.values.items() if not math.isfinite(number)), None)
    if wrong:
        raise refuse(result.place, f"{wrong} is not a finite number")
    machine = _printable(given.machine) or "unnamed"
    occasion = Occasion(machine, given.suite or tool.suite, when, _printable(result.profile))
    return tuple(
        Value(
            occasion,
            _version(version, result.place),
            step_name(step, result.clients),
            metric,
            number,
            result.place,
            commit=result.commit if COMMIT.fullmatch(result.commit) else "",
        )
        for metric, number in result.values.items()
    )


_SAID = {
    "machine": ("on which machine", "--machine db1"),
    "version": ("of which version", "--version postgres@18.1"),
    "when": ("when", "--when 2026-11-25"),
    "step": ("in which step", "--step read-write"),
}
"""What a file may not say, and how the command line says it."""


def _unsaid(place: Location, tool: ToolFormat, names: Sequence[str]) -> TransferError:
    *most, last = [_SAID[name][0] for name in names]
    words = f"{', '.join(most)} and {last}" if most else last
    options = " ".join(_SAID[name][1] for name in names)
    return refuse(
        place,
        f"this is {tool.name}, which does not say {words} it was measured",
        f"add to the command, with what is true of it: {options}",
    )


def _version(text: str, place: Location) -> str:
    try:
        return str(version_of(text))
    except ValueError as error:
        raise refuse(place, str(error), "name it: --version postgres@18.1") from error


def step_name(name: str, clients: int | None = None) -> str:
    """Return a tool's name of what it ran as the name of a step, with the clients as its level."""
    plain = _printable(name.replace(LEVEL, " ")) or "unnamed"
    return plain if clients is None else f"{plain}{LEVEL}{clients}"


def _printable(name: str) -> str:
    """A name on one line, not too long, of characters that a database takes."""
    words = "".join(letter if letter.isprintable() else " " for letter in name).split()
    return " ".join(words)[:LONGEST_NAME].strip()


# --- numbers of rounds


Round = tuple[str, str, str]
"""Session, version and step."""

Known = Mapping[Round, Mapping[int, Mapping[str, float]]]
"""The values of each round by metric."""


def numbered(results: Iterable[Sequence[Value]], known: Known) -> Iterator[Value]:
    """Yield the values of results with the numbers of their rounds.

    A result that the history has already keeps its number, so that a file can be imported again; another one
    gets the next.
    """
    rounds: dict[Round, dict[int, Mapping[str, float]]] = {}
    taken: defaultdict[Round, set[int]] = defaultdict(set)
    for result in results:
        key = (uid_of(result[0].occasion), result[0].version, result[0].step)
        had = rounds.setdefault(key, dict(known.get(key, {})))
        values = {value.metric: value.number for value in result}
        same = (number for number, there in had.items() if values.items() <= there.items())
        number = next((number for number in same if number not in taken[key]), max(had, default=0) + 1)
        had.setdefault(number, values)
        taken[key].add(number)
        yield from (replace(value, repetition=number) for value in result)


def known_rounds(connection: Connection, results: Iterable[Sequence[Value]]) -> Known:
    """Return the rounds that a history has of the sessions that results belong to."""
    found: defaultdict[Round, defaultdict[int, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    query = (
        select(runs.c.version, runs.c.step, runs.c.repetition, measurements.c.metric, measurements.c.value)
        .join_from(sessions, runs, runs.c.session_id == sessions.c.id)
        .join(measurements, measurements.c.run_id == runs.c.id)
    )
    for uid in dict.fromkeys(uid_of(result[0].occasion) for result in results):
        for version, step, repetition, metric, value in connection.execute(
            query.where(sessions.c.uid == uid)
        ):
            found[uid, version, step][repetition][metric] = value
    return found
