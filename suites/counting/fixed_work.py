"""Fixed work of one client at full speed: what the server writes for it, and what it holds after a crash."""

import contextlib
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from build.errors import TidemarkError
from build.files import read_checked
from suites.checking.queries import Digests, connected, digests
from suites.counting.counted_pass import MIN_WARM
from suites.counting.engines import COUNTED, CountedEngine
from suites.generators.load import CountedWork, Generator, LoadError, LongPassError, PassLength
from suites.keys.durability import Durability
from suites.keys.step import Step
from suites.metrics import LOG_SYNCS, PROVED_ROWS, RECOVERY
from suites.processes import ProcessError, as_server_user, run, tool
from suites.server import Instrument, LogVolume, Server, ServerError
from suites.turns.failures import death_soon, with_logged

OLDEST = (5, 3)
"""The oldest version of strace that filters calls in the kernel."""

LARGEST_FILE = 256 * 1024**2
"""Of strace, in bytes; some hundred kilobytes are usual."""

_CALLS = "fsync,fdatasync,?open,openat,write,pwrite64,pwritev,pwritev2"
"""Those that flush a file, and those that write into one, which flush it if it was opened for that."""

PROBE_SECONDS = 5.0
"""How long strace may take to write what it saw of a program that has ended."""

_NOT_ALLOWED = "a container may need the capability SYS_PTRACE, or another seccomp profile"

_VERSION = re.compile(r"strace -- version ([0-9]{1,4})\.([0-9]{1,4})")

# The number of the process or thread precedes each line with -f. -y adds the path of a file to its number.
_LINE = re.compile(r"([0-9]{1,10}) +(.*)")
_UNFINISHED = " <unfinished ...>"
_RESUMED = re.compile(r"<\.\.\. [a-z0-9]{1,20} resumed>(.*)")
_FLUSHED = re.compile(r"f(?:data)?sync\([0-9]+<([^>]*)>\) += 0")
_OPENED = re.compile(r"open(?:at)?\(.*\bO_D?SYNC\b.*\) += [0-9]+<([^>]*)>")
_WRITTEN = re.compile(r"p?write(?:64|v2?)?\([0-9]+<([^>]*)>, .*\) += [0-9]+")


class SyncError(TidemarkError):
    """strace is missing, too old or not allowed to trace, or what it wrote cannot be read."""


@dataclass(frozen=True)
class SyncTrace:
    """A trace of a server's calls, which strace writes into a file."""

    command: tuple[str, ...]
    """The words that run a server under strace."""
    file: Path
    log_files: re.Pattern[str]
    """Matches the paths of the files of the server's log."""

    def syncs(self) -> int:
        """Return how often the log was flushed since the server's start. Raises SyncError."""
        try:
            # It is of the server's user, who could put anything there.
            lines = read_checked(self.file, LARGEST_FILE).decode(errors="replace").splitlines()
        except OSError as error:
            raise SyncError(
                f"what strace wrote cannot be read: {error.strerror}", where=str(self.file)
            ) from error
        return log_syncs(lines, self.log_files.search)


def sync_trace(folder: Path, log_files: str) -> SyncTrace:
    """Return a trace whose file is in `folder`, which the server's user can write.

    `log_files` is a regular expression of the paths of the log. Raises SyncError, and ProcessError without
    strace.
    """
    file = folder / "calls"
    # -D: the server stays the child, so that signals and its end are its own.
    words = ("-D", "-f", "-y", "-qq", "--seccomp-bpf", "--string-limit=0", "--signal=none")
    command = (_program(), *words, f"--trace={_CALLS}", f"--output={file}")
    trace = SyncTrace(command, file, re.compile(log_files))
    _require_allowed(trace)
    return trace


def _program() -> str:
    """Return the path of strace. Raises ProcessError without it, and SyncError if it is too old."""
    program = tool("strace")
    version = run([program, "--version"], what="strace --version")
    match = _VERSION.match(version)
    if match is None or (int(match[1]), int(match[2])) < OLDEST:
        said = version.partition("\n")[0][:100]
        raise SyncError(
            f"{said} is too old to count syncs", where=program, hint="install strace 5.3 or newer"
        )
    return program


def _require_allowed(trace: SyncTrace) -> None:
    """Raise SyncError if strace may not trace programs here, by tracing one that opens files."""
    said = run(as_server_user([*trace.command, tool("true")]), what="strace", cwd=trace.file.parent)
    deadline = time.monotonic() + PROBE_SECONDS
    while not (trace.file.exists() and trace.file.stat().st_size):
        if time.monotonic() > deadline:
            raise SyncError(
                f"strace traces nothing: {said.strip()[:200] or 'it says nothing'}", hint=_NOT_ALLOWED
            )
        time.sleep(0.01)


def log_syncs(lines: Iterable[str], is_log: Callable[[str], object]) -> int:
    """Return how often the log was flushed, by lines of strace: by fsync, fdatasync, or a write that flushes.

    `is_log` says whether a path is one of the log. Lines of other kinds, and calls that failed, do not count.
    """
    begun: dict[str, str] = {}
    synchronous: set[str] = set()
    count = 0
    for line in lines:
        if (found := _LINE.match(line)) is None:
            continue
        process, call = found[1], found[2]
        if call.endswith(_UNFINISHED):
            begun[process] = call.removesuffix(_UNFINISHED)
            continue
        if resumed := _RESUMED.match(call):
            call = begun.pop(process, "") + resumed[1]
        if opened := _OPENED.match(call):
            synchronous.add(opened[1])
        elif flushed := _FLUSHED.match(call):
            count += bool(is_log(flushed[1]))
        elif (written := _WRITTEN.match(call)) and written[1] in synchronous:
            count += bool(is_log(written[1]))
    return count


WORK_SECONDS = 1.0
"""What the transactions may take, by the cost of the first ones."""

MAX_WORK = 20_000
"""The most transactions."""

DURABLE_SECONDS, MAX_DURABLE = 0.5, 100
"""The same of those with full durability in a session without it."""

LIMIT_SECONDS = 60.0
"""Time limit of the client when its transactions take longer than the first ones did."""


@dataclass(frozen=True)
class WorkTerms:
    """What the work on one server has in common with that on others."""

    durability: Durability
    """That of the session."""
    agree: Callable[[str, int], int]
    """Returns how many transactions of a part of the work all versions run, from what one can afford."""
    most: int | None = None
    """The most transactions that the step's data allow; None if it does not use rows up."""
    counts_syncs: bool = False
    """Whether to count how often the log is flushed."""


@dataclass(frozen=True)
class Done:
    """What a server wrote for its work."""

    values: Mapping[str, float]
    """By metric."""
    notes: Sequence[str] = ()
    """What could not be counted."""


NOTHING = Done({})


@dataclass(frozen=True)
class Recovered:
    """A server that did its work, was ended without warning, and started again."""

    seconds: float | None
    """From its start until it accepted connections, recovery included; None if it did not come back."""

    digests: Digests | None
    """What it held then; None if something went wrong before."""

    problem: str = ""
    """How the server or its load failed, as in a round; empty if neither did."""

    done: Done = NOTHING
    """What it wrote for the work."""


def proof_values(recovered: Recovered, *, are_same: bool) -> dict[str, float]:
    """Return what is recorded of a recovery, as metrics; `are_same` says whether its rows are the base's."""
    values = dict(recovered.done.values)
    if recovered.seconds is not None:
        values[RECOVERY] = recovered.seconds
    if are_same and recovered.digests is not None:
        values[PROVED_ROWS] = float(recovered.digests.rows)
    return values


def work(server: Server, generator: Generator, step: Step, terms: WorkTerms) -> Done:
    """Run fixed transactions of a step on a server from its loaded data; it is up afterwards.

    Return what it wrote into its log and, if that is wanted, how often it flushed it. That is counted with
    full durability: in a session without it, in a few transactions of their own on another copy of the data.

    Raises TidemarkError when the server does not start, or when the load fails.
    """
    work, flushed = _Work(server, generator, step, terms), NOTHING
    trace, notes = _trace_of(server, terms.durability) if terms.counts_syncs else (None, ())
    if trace is not None and terms.durability is Durability.RELAXED:
        with work.started(trace):
            flushed = work.run_durably(trace)
        trace = None
    with work.started(trace):
        written = work.run("all", WORK_SECONDS, MAX_WORK, trace)
    values = {**flushed.values, **written.syncs_per_commit(), **written.bytes_per_transaction()}
    return Done(values, (*notes, *written.notes))


def work_and_crash(server: Server, generator: Generator, step: Step, terms: WorkTerms) -> Recovered:
    """Do the `work` of a step on a server, and crash it; it is down afterwards.

    Raises TidemarkError for what need not be the server's fault: its data cannot be restored, the load
    reaches its time limit, or the rows of a server that is up cannot be read.
    """
    try:
        return crashed(server, work(server, generator, step, terms))
    except (ProcessError, SyncError):
        raise
    except TidemarkError as error:
        problem = _failure(server, step, error)
        if problem is None:
            raise
        return Recovered(None, None, problem)
    finally:
        server.abandon()


def _failure(server: Server, step: Step, error: TidemarkError) -> str | None:
    """Return how a server, or the load on it, failed by itself; None if it cannot be known."""
    if isinstance(error, ServerError):
        return str(error)
    if (ended := death_soon(server)) is not None:
        return f"{server.build.version} died during the fixed work of {step.name}: {ended}"
    if isinstance(error, LoadError) and not isinstance(error, LongPassError):
        return f"the fixed work of {step.name} fails: {with_logged(server, error)}"
    return None


def crashed(server: Server, done: Done = NOTHING) -> Recovered:
    """End a server as a crash would, start it again, and return what it holds; it is up afterwards.

    Relaxed durability lets it lose its last commits, so these are written to the log before. `done` is its
    work.
    """
    _execute(server, COUNTED[server.build.version.engine].flush)
    server.abandon()
    began = time.monotonic()
    try:
        server.start()
    except TidemarkError as error:
        return Recovered(None, None, f"it does not come back after a crash: {error}", done)
    seconds = time.monotonic() - began
    return Recovered(seconds, digests(server.address), done=done)


@dataclass(frozen=True)
class _Written:
    transactions: int
    volume: LogVolume | None
    syncs: int | None
    """None without a trace."""
    notes: Sequence[str] = ()

    def syncs_per_commit(self) -> dict[str, float]:
        if self.syncs is None or self.volume is None or not self.volume.commits:
            return {}
        return {LOG_SYNCS: self.syncs / self.volume.commits}

    def bytes_per_transaction(self) -> dict[str, float]:
        amounts = {} if self.volume is None else self.volume.amounts
        return {metric: amount / self.transactions for metric, amount in amounts.items()}


@dataclass(frozen=True)
class _Work:
    server: Server
    generator: Generator
    step: Step
    terms: WorkTerms

    @property
    def _engine(self) -> CountedEngine:
        return COUNTED[self.server.build.version.engine]

    @contextlib.contextmanager
    def started(self, trace: SyncTrace | None) -> Iterator[None]:
        """Start the server from its loaded data, which no background work changes in the block."""
        self.server.restore(is_timed=False)
        self.server.start(Instrument(() if trace is None else trace.command, self._engine.rest))
        with self.server.keeping_row_versions():
            yield

    def run_durably(self, trace: SyncTrace) -> Done:
        """Run a few transactions with full durability."""
        _execute(self.server, *self._engine.durable, self._engine.flush)
        written = self.run("durable", DURABLE_SECONDS, MAX_DURABLE, trace)
        return Done(written.syncs_per_commit())

    def run(self, part: str, seconds: float, most: int, trace: SyncTrace | None) -> _Written:
        """Run a part of the work, and return what the server wrote meanwhile, which flushes it once more."""

        def choose(of_one: float) -> PassLength:
            affordable = max(1, min(most, self.terms.most or most, int(seconds / max(of_one, 1e-6))))
            return PassLength(MIN_WARM, self.terms.agree(part, affordable))

        work = CountedWork(self._engine.mark, LIMIT_SECONDS, choose)
        read = self.server.log_meter()
        before = 0 if trace is None else trace.syncs()
        load = self.generator.count(self.server.address, self.step, work)
        syncs = None if trace is None else trace.syncs() - before
        try:
            return _Written(load.transactions + MIN_WARM, read(), syncs)
        except (ProcessError, ServerError) as error:
            note = f"what was written for the same work was not counted: {error}"
            return _Written(load.transactions + MIN_WARM, None, syncs, (note,))


def _trace_of(server: Server, durability: Durability) -> tuple[SyncTrace | None, Sequence[str]]:
    """Return what counts the flushes of a server's log; None where that says nothing, perhaps with a note.

    A version whose own settings give up durability says so: in a session without it, nothing is to be proved.
    """
    engine = COUNTED[server.build.version.engine]
    is_chosen = any(name.casefold().replace("-", "_") in engine.durability for name in server.chosen)
    if is_chosen and durability is Durability.RELAXED:
        return None, ()
    try:
        return sync_trace(server.address.socket.parent, engine.log_files), ()
    except (SyncError, ProcessError) as error:
        return None, (f"flushes of the log were not counted: {error}",)


def _execute(server: Server, *statements: str) -> None:
    with connected(server.address.of_admin) as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
