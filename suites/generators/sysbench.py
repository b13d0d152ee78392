"""Running sysbench 1.0 with the Lua script of a suite."""

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from suites.definition import LUA_MODULES, Suite
from suites.generators.drivers import connection_options, current_folder, statement_options
from suites.generators.load import (
    CountedLoad,
    CountedWork,
    Generator,
    Load,
    LoadError,
    Observer,
    Share,
    WorkLimit,
    blamed_on,
    whole_seconds,
)
from suites.generators.pass_course import AnsweredCourse
from suites.generators.placement import connect_seconds, placement
from suites.generators.programs import OVERTIME_SECONDS, lines_of, lines_of_all, run_all
from suites.generators.transcript import SysbenchTranscript, statements_in
from suites.keys.step import Step
from suites.processes import run, tool
from suites.server import Address, password_variables, session_password
from suites.sizing import Part, Sizes, WalkedRows

LINGER_MS = 2000
"""How long connections stay open after the work at most; the server's processes are measured meanwhile."""

MEASURED_FILE = "TIDEMARK_MEASURED_FILE"
"""The environment variable with the path of a file: when it is there, nothing is left to be measured."""

# The distance of the seeds of two levels, for every client that one has more.
_SEEDS_OF_LEVEL = 20_011

WALK_DEVIATIONS = 4
"""Number of standard deviations by which the progress of a walk through rows may exceed its expectation."""

UNEVEN_SHARE = 0.25
"""How much more work than the mean of all threads one thread may have done."""

LOAD_SECONDS_PER_MILLION_ROWS = 600
"""Time limit for loading a million rows, which is far more than loading takes unless it hangs."""

TIMED_SECONDS = 6 * 3600.0
"""Time limit of the one transaction of a timed step, such as an index build, in a profile without a limit."""

_STARTED = "Threads started!"


@contextmanager
def _measured_file() -> Iterator[Path]:
    """The path of a file that is not there yet, and for which the connections of a load linger."""
    with TemporaryDirectory(prefix="tidemark-") as folder:
        yield Path(folder) / "measured"


class Sysbench(Generator):
    """sysbench with the script of a suite."""

    def __init__(self, suite: Suite, sizes: Sizes, *, prepares: bool = True) -> None:
        self.suite = suite
        self.sizes = sizes
        self.prepares = prepares
        self.program = tool("sysbench")

    def version(self) -> str:
        """Return the output of `sysbench --version`."""
        return run([self.program, "--version"], what="sysbench --version").strip()

    @property
    def environment(self) -> Mapping[str, str]:
        """Environment variables for sysbench: the search path of the shared Lua module and the suite's own.

        The two semicolons at the end stand for sysbench's default search path. The password is that of all
        servers.
        """
        path = f"{LUA_MODULES}/?.lua;{self.suite.folder}/?.lua;;"
        return {"LUA_PATH": path, **password_variables(session_password())}

    def load(self, address: Address) -> None:
        """Load the data, one process per part, so that rows depend only on the seed and the part's number.

        What the script has to do after that is done once.

        Raises LoadError.
        """
        for parts in self.sizes.data.stages:
            limit = 60 + max(part.rows for part in parts) * LOAD_SECONDS_PER_MILLION_ROWS / 1e6
            commands = [self._prepare(address, part) for part in parts]
            run_all(commands, self.sizes.workers, limit, self.environment, current_folder(address))
        if self.suite.finish:
            limit = 60 + self.sizes.data.rows * LOAD_SECONDS_PER_MILLION_ROWS / 1e6
            run_all([self._command(address, ["finish"])], 1, limit, self.environment, current_folder(address))

    def _prepare(self, address: Address, part: Part) -> list[str]:
        seed = f"--table_seed={self.suite.seed}"
        return self._command(address, [*_options(part.options), seed, "prepare"])

    def arguments(self, address: Address, step: Step, work: WorkLimit) -> list[str]:
        """Return the command line of one step, without `--linger_ms` and `run`."""
        limits = [f"--time={whole_seconds(work)}", f"--events={work.transactions or 0}"]
        return self._command(address, [*self._load(step, 0), *limits, "--report-interval=1"])

    def arguments_of_turns(
        self, address: Address, step: Step, share: Share, place: int, origin: float
    ) -> list[str]:
        """Return the command line for the server at `place` of those that take turns from `origin` on.

        `origin` is in seconds of the monotonic clock.
        """
        schedule = share.schedule
        clients = self.sizes.clients_of(step)
        connections = clients * step.connections_of_client
        # The script ends after its last slice; sysbench's own time limit ends a script that does not.
        limit = math.ceil((connect_seconds(connections, schedule.servers) + schedule.seconds) * 2 + 10)
        slices = [
            f"--slices={schedule.kinds(place)}",
            f"--slice_origin={origin:.6f}",
            f"--slice_ms={schedule.slice_seconds * 1000:.0f}",
            f"--slice_gap_ms={schedule.gap_seconds * 1000:.0f}",
            f"--walk_from={walk_from(share, clients, self.sizes.data.walked(step.rows_of))}",
            f"--linger_ms={LINGER_MS}",
        ]
        if step.rate is not None:
            slices += [f"--arrivals={step.rate}", f"--arrivals_seed={self._seed(step, share.round)}"]
        limits = [f"--time={limit}", f"--events={share.transactions or 0}"]
        return self._command(address, [*self._load(step, share.round), *limits, *slices, "run"])

    def _load(self, step: Step, round_: int) -> list[str]:
        seed = f"--rand-seed={self._seed(step, round_)}"
        threads = self.sizes.clients_of(step) * step.connections_of_client
        load = [f"--threads={threads}", seed, "--rand-type=uniform"]
        if step.background:
            load.append(
                "--background=" + ",".join(f"{kind}:{rate:g}" for kind, rate in step.background.items())
            )
        return [*load, "--histogram=on", "--percentile=99", *_options(step.options)]

    def _seed(self, step: Step, round_: int) -> int:
        # Every step has its own seed, because updating rows to the values of another step changes nothing.
        place = [known.name for known in self.suite.steps].index(step.plain_name)
        level = step.clients[0] if step.clients else 0
        return self.suite.seed + place + round_ * len(self.suite.steps) + level * _SEEDS_OF_LEVEL

    def run(self, address: Address, step: Step, work: WorkLimit, observer: Observer) -> Load:
        """Run one step; the observer measures from the first transaction to the last."""
        argv = [*self.arguments(address, step, work), f"--linger_ms={LINGER_MS}", "run"]
        transcript = SysbenchTranscript(_queries_of(step))
        ended = False
        limit = work.seconds + OVERTIME_SECONDS
        threads = self.sizes.clients_of(step) * step.connections_of_client
        cores = placement(step, self.sizes).client
        with _measured_file() as measured:
            environment = {**self.environment, MEASURED_FILE: str(measured)}
            for pid, line in lines_of(argv, limit, environment, bound_to=cores, cwd=current_folder(address)):
                transcript.read(line)
                if line.startswith(_STARTED):
                    observer.begin(pid)
                elif not ended and len(transcript.threads) == threads:
                    ended = True
                    observer.end(pid)
                    measured.touch()
        return transcript.load()

    def alternate(
        self, addresses: Sequence[Address], step: Step, share: Share, observers: Sequence[Observer]
    ) -> list[Load]:
        """Run one sysbench per server; the script works only in the slices of its server.

        A timed step is run on one server after the other, in the order of the first slices.
        """
        if step.timed:
            return self._once_each(addresses, step, share, observers)
        threads = self.sizes.clients_of(step) * step.connections_of_client
        cores = placement(step, self.sizes).client
        connecting = connect_seconds(threads, len(addresses))
        limit = connecting + share.schedule.seconds
        origin = time.monotonic() + connecting
        share.begins(origin)
        commands = [
            self.arguments_of_turns(address, step, share, place, origin)
            for place, address in enumerate(addresses)
        ]
        transcripts = [SysbenchTranscript(_queries_of(step)) for _ in commands]
        limit += OVERTIME_SECONDS
        working = set(range(len(commands)))
        with _measured_file() as measured:
            environment = {**self.environment, MEASURED_FILE: str(measured)}
            cwd = current_folder(*addresses)
            for place, pid, line in lines_of_all(commands, limit, environment, bound_to=cores, cwd=cwd):
                transcript, observer = transcripts[place], observers[place]
                known = len(transcript.threads)
                transcript.read(line)
                if line.startswith(_STARTED):
                    observer.begin(pid)
                elif known < len(transcript.threads) == threads:
                    observer.end(pid)
                    working.discard(place)
                    if not working:
                        measured.touch()
        loads = []
        for place, transcript in enumerate(transcripts):
            with blamed_on(place):
                loads.append(transcript.load())
        return loads

    def _once_each(
        self, addresses: Sequence[Address], step: Step, share: Share, observers: Sequence[Observer]
    ) -> list[Load]:
        """Run the one transaction of a timed step on each server; the others have nothing to do meanwhile."""
        work = WorkLimit(share.limit_seconds or TIMED_SECONDS, 1)
        loads: dict[int, Load] = {}
        for place in dict.fromkeys(share.schedule.order[share.schedule.warming :]):
            share.works(place)
            with blamed_on(place):
                load = self.run(addresses[place], step, work, observers[place])
            # sysbench's histogram ends where an index build may only begin.
            latencies = dict.fromkeys(load.latency_ms, load.seconds * 1000)
            loads[place] = replace(load, per_second=(), latency_ms=latencies, histogram={})
        return [loads[place] for place in range(len(addresses))]

    def statements(self, address: Address, step: Step) -> Sequence[str]:
        """Return the statements of a step, with usual parameters; only of suites with `plans`."""
        argv = self._command(address, [*_options(step.options), "statements"])
        return statements_in(
            run(
                argv,
                what=f"asking for the statements of {step.name}",
                env=self.environment,
                cwd=current_folder(address),
            )
        )

    def count(self, address: Address, step: Step, work: CountedWork) -> CountedLoad:
        """Run the fixed work of one thread, with random numbers of our own in the script."""
        if step.timed:
            raise LoadError(f"{step.name} is one transaction, which no counted pass repeats")
        limits = ["--threads=1", "--time=0", "--events=0", f"--table_seed={self._seed(step, 0)}"]
        with TemporaryDirectory(prefix="tidemark-") as folder:
            course = AnsweredCourse(work, Path(folder) / "length")
            marks = [f"--counted_file={course.answer}", f"--mark={work.mark}"]
            argv = self._command(address, [*limits, *_options(step.options), *marks, "run"])
            lines = lines_of(argv, work.seconds, self.environment, cwd=current_folder(address))
            return course.followed(step, (line for _, line in lines))

    def _command(self, address: Address, extra: Sequence[str]) -> list[str]:
        script = str(self.suite.folder / str(self.suite.script))
        return [
            self.program,
            script,
            *connection_options(address),
            *statement_options(address, prepares=self.prepares),
            *_options(self.sizes.data.options),
            *extra,
        ]


def walk_from(share: Share, threads: int, walked: WalkedRows) -> int:
    """Return how many rows of its walk a thread skips in each table, because they are already used up.

    Every thread has a walk through each table, and draws the table at random. The progress of a walk is
    therefore binomial around its share of the transactions, and threads do not do equal amounts of work. A
    walk must not pass its end, after which it would repeat its first rows.
    """
    uneven = 0.0 if threads == 1 else UNEVEN_SHARE

    def steps(transactions: int) -> int:
        expected = transactions / (threads * walked.tables)
        deviation = math.sqrt(expected * (1 - 1 / (threads * walked.tables)))
        return math.ceil(expected * (1 + uneven) + WALK_DEVIATIONS * deviation)

    room = walked.rows_per_table // threads - steps(share.transactions or 0)
    return max(0, min(steps(share.done_before), share.done_before, room))


def _queries_of(step: Step) -> float | None:
    """Return the queries in a transaction where sysbench's own number is not that of the step's clients."""
    return step.queries if step.background or step.timed else None


def _options(values: Mapping[str, object]) -> list[str]:
    return [f"--{name}={value}" for name, value in values.items()]
