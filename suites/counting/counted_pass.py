"""One counted pass: a server runs under callgrind, does fixed work, and its instructions are read."""

import contextlib
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from build.errors import TidemarkError
from build.files import read_checked, remove_folder
from suites.counting.callgrind import CallgrindError, InstructionProfile, parsed
from suites.counting.engines import COUNTED, CountedEngine
from suites.counting.executed_functions import WatchedFunction, executed
from suites.counting.tool import LOG, Callgrind
from suites.generators.load import CountedWork, Generator, LongPassError, PassLength
from suites.keys.step import Step
from suites.metrics import COUNTED_TRANSACTIONS, INSTRUCTIONS
from suites.processes import own, tail_of
from suites.profiling.stacks import COUNTED_EVENT, COUNTED_FREQUENCY, StepProfile
from suites.server import Instrument, ResetError, Server, ServerError, beside
from suites.sizing import Sizes

WARM_PER_TABLE = 60
"""Transactions per table before the first mark: catalogues are cached, and cached plans have taken the place
of those that Postgres makes for the first five executions of a statement."""

MAX_WARM = 1000

MAX_WARM_SHARE = 2
"""At most so many times the counted transactions, which are few where a transaction has many statements."""

MIN_WARM = 6
"""Even where transactions are expensive: Postgres plans the first five executions of a statement anew. A
script runs no more before it asks for the length (`SAMPLED` of suites/generators/tidemark/slices.lua)."""

BUDGET_SECONDS = 60.0
"""What the transactions of a pass may take, by the cost of the first ones; some seconds are usual."""

LIMIT_SECONDS = 600.0
"""Time limit of the client of a pass whose transactions take longer than the first ones did."""

_PART = re.compile(r"counts\.[0-9]+\.([0-9]{1,9})(?:-[0-9]+)?")

_WHOLE = re.compile(r"counts\.[0-9]+(?:-[0-9]+)?")
"""The last part of a process, which is written as it ends."""

LARGEST_FILE = 1024**3
"""Of callgrind, in bytes; some megabytes are usual."""


@dataclass(frozen=True)
class CountedPass:
    """What one pass counted."""

    values: Mapping[str, float]
    """Values by metric."""

    profile: StepProfile | None
    """The instructions by stack, with the calls of each function; None when stacks were not kept apart."""

    notes: Sequence[str] = ()
    """What was counted otherwise than usual, or than the step asks for."""

    executed: frozenset[str] | None = None
    """The names of the watched functions that were executed; None if nobody looked, or it is not known."""


@dataclass(frozen=True)
class PassTerms:
    """What a pass has in common with the others of its step, how long it may take, and who is told of it."""

    agree: Callable[[int], int] = lambda affordable: affordable
    """Returns how many transactions all passes of the step count, from what one of them can afford."""
    tell: Callable[[int, int, float], None] = lambda done, total, seconds: None
    """Called every few seconds with the transactions so far, all of them, and the seconds since the first."""
    tell_looking: Callable[[], None] = lambda: None
    """Called before the whole server is looked at, beyond what its client executes."""
    budget_seconds: float = BUDGET_SECONDS
    limit_seconds: float = LIMIT_SECONDS


def pass_length(counted: int, tables: int) -> PassLength:
    """Return the length of a pass that counts so many transactions on so many tables."""
    warm = min(MAX_WARM, MAX_WARM_SHARE * counted, WARM_PER_TABLE * tables)
    return PassLength(max(MIN_WARM, warm), counted)


def affordable(most: int, tables: int, seconds: float, budget: float = BUDGET_SECONDS) -> int:
    """Return how many transactions of so many `seconds` a pass counts within its budget: `most`, at least 1.

    They are halved until they fit, so that sessions in which a transaction takes about as long count as many.
    """
    counted = most
    while counted > 1 and pass_length(counted, tables).transactions * seconds > budget:
        counted //= 2
    return counted


def count(
    server: Server,
    generator: Generator,
    step: Step,
    sizes: Sizes,
    callgrind: Callgrind,
    terms: PassTerms | None = None,
    *,
    stacks: bool,
    watched: Sequence[WatchedFunction] = (),
) -> CountedPass:
    """Count the instructions of a step on a server, from its loaded data; the server is down afterwards.

    It counts the step's `counted` transactions, or fewer if these would take longer than the budget. With
    `stacks` the pass has a profile. Where its client executes none of the functions that are `watched`, the
    server is ended, recovers, is reset and stopped, and all its processes are looked at. Raises TidemarkError
    when the server dies or does not start, when the load fails, and when what was counted is incomplete;
    LongPassError when the load reaches its limit.
    """
    terms = terms or PassTerms()
    engine = COUNTED[server.build.version.engine]
    folder = beside(server.address.socket.parent, "counts")
    tables = max(1, sizes.data.walked(None).tables)

    def choose(seconds: float) -> PassLength:
        own = affordable(step.counted, tables, seconds, terms.budget_seconds)
        return pass_length(terms.agree(own), tables)

    work = CountedWork(engine.mark, terms.limit_seconds, choose, terms.tell)
    command = callgrind.command(folder, engine.mark_function, engine.options, stacks=stacks)
    instrument = Instrument(command, {**engine.rest, **engine.settings})
    try:
        server.restore(is_timed=False)
        _empty(folder)
        try:
            server.start(instrument)
            with server.keeping_row_versions():
                load = generator.count(server.address, step, work)
        except TidemarkError as error:
            raise _explained(error, server, step, folder) from error
        between, whole = _parts(folder, engine)
        found, problem = _looked_for(watched, server, folder, callgrind, terms)
    finally:
        server.abandon()
        remove_folder(folder)
    operations = load.transactions * load.queries
    instructions = counted(whole, engine.waits) - counted(between, engine.waits)
    if instructions <= 0:
        raise CallgrindError(f"callgrind counted no instruction of {step.name} beyond those of a mark")
    profile = _profile(between, whole, engine, operations) if stacks else None
    values = {INSTRUCTIONS: instructions / operations, COUNTED_TRANSACTIONS: float(load.transactions)}
    notes = [*_notes(instrument, server.chosen), *load.notes, *problem]
    return CountedPass(values, profile, notes, found)


def _looked_for(
    watched: Sequence[WatchedFunction], server: Server, folder: Path, callgrind: Callgrind, terms: PassTerms
) -> tuple[frozenset[str] | None, Sequence[str]]:
    """Return which of the functions a server under callgrind has executed, and why that is not known."""
    if not watched:
        return None, ()
    found = executed(_texts(folder), watched)
    if found is None or found:
        return found, ()
    engine = COUNTED[server.build.version.engine]
    command = callgrind.command(folder, engine.mark_function, engine.options, stacks=False)
    terms.tell_looking()
    try:
        server.abandon()
        server.start(Instrument(command, {}))
        with contextlib.suppress(ResetError):  # one that cannot bring the server to rest has done its work
            server.reset()
        server.stop()
        return executed(_texts(folder), watched), ()
    except TidemarkError as error:
        return None, (f"whether it executes what is changed was not found out: {error}",)


def _texts(folder: Path) -> Iterator[str]:
    """Yield what callgrind has written of all processes so far; the last text may be cut off."""
    for file in sorted(folder.iterdir()):
        if part_of(file.name) is not None or _WHOLE.fullmatch(file.name):
            yield _text(file)


def _notes(instrument: Instrument, chosen: Mapping[str, str]) -> list[str]:
    return [
        f"instructions were counted with {name} = {value}, as chosen, not with {usual} as in other sessions"
        for name, value, usual in instrument.replaced_by(chosen)
    ]


def counted(profile: InstructionProfile, waits: Sequence[str]) -> int:
    """Return the instructions of a profile without those of the functions in `waits` and their callees."""
    return profile.instructions - sum(profile.inclusive[name] for name in waits)


def _empty(folder: Path) -> None:
    remove_folder(folder)
    folder.mkdir(mode=0o700)
    own(folder)


def _parts(folder: Path, engine: CountedEngine) -> tuple[InstructionProfile, InstructionProfile]:
    """Return the client's counts of a mark alone, and of the work with a mark.

    Callgrind numbers the files of a process in the order in which they were written: the third is from the
    second mark to the third, the fourth from the third to the fourth.
    """
    third, fourth = (_marked(folder, number, engine) for number in (3, 4))
    if len(third) != 1 or len(fourth) != 1:
        raise CallgrindError(
            f"callgrind wrote {len(fourth)} files of the client's work, not one",
            where=str(folder),
            hint=f"the server may have no function {engine.mark_function}, or no symbols",
        )
    return third[0], fourth[0]


def _marked(folder: Path, number: int, engine: CountedEngine) -> list[InstructionProfile]:
    """Return the counts of the files with that number in which there is a mark."""
    profiles = [_read(file) for file in folder.iterdir() if part_of(file.name) == number]
    return [
        counts for counts in profiles if any(name.startswith(engine.mark_function) for name in counts.calls)
    ]


def part_of(name: str) -> int | None:
    """Return the number of the part in the name of a file: 3 of `counts.4711.3` and of `counts.4711.3-02`."""
    match = _PART.fullmatch(name)
    return int(match[1]) if match else None


def _read(file: Path) -> InstructionProfile:
    return parsed(_text(file), str(file))


def _text(file: Path) -> str:
    try:
        # It is of the server's user, who could put anything there.
        return read_checked(file, LARGEST_FILE).decode(errors="replace")
    except OSError as error:
        raise CallgrindError(f"callgrind's file cannot be read: {error.strerror}", where=str(file)) from error


def _profile(
    between: InstructionProfile, whole: InstructionProfile, engine: CountedEngine, operations: float
) -> StepProfile:
    """Return the stacks of the work alone: those of a mark are subtracted, those of waits left out."""
    stacks = Counter(whole.stacks)
    stacks.subtract(between.stacks)
    kept = {
        f"{engine.role};{stack}": count
        for stack, count in stacks.items()
        if count > 0 and not any(name in engine.waits for name in stack.split(";"))
    }
    calls = Counter(whole.calls)
    calls.subtract(between.calls)
    return StepProfile(
        COUNTED_EVENT, COUNTED_FREQUENCY, operations, 0, kept, {name: n for name, n in calls.items() if n > 0}
    )


def _explained(error: TidemarkError, server: Server, step: Step, folder: Path) -> TidemarkError:
    """Return the error of a start or of a load, or what the server died of, with what valgrind said."""
    ended = server.death()
    died = ended is not None and not isinstance(error, ServerError)
    what = f"{server.build.version} died under callgrind during {step.name}: {ended}" if died else error.what
    said = "\n".join(tail_of(log) for log in sorted(folder.glob(f"{LOG}.*")) if log.stat().st_size)
    if isinstance(error, LongPassError) or (not died and not said):
        return error
    hint = "an unknown instruction or debug format needs a newer valgrind" if said else error.hint
    return CallgrindError(f"{what}\nvalgrind said: {said}" if said else what, where=error.where, hint=hint)
