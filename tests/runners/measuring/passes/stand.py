"""Sessions whose passes are made up: what they count, what they wait for, and what is recorded."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from build.errors import TidemarkError
from build.finished_build import Build
from build.progress import Progress, ProgressTask, Silent, SilentTask
from build.version import parse_version
from history.stats.repeated_intervals import Design
from history.store.resume import Recorded
from runners.measuring.failures.policy import FailurePolicy
from runners.measuring.passes import counted_passes
from runners.measuring.passes.base_work import BaseWork
from runners.measuring.request import Exact, Request
from runners.measuring.round_measurement import RoundMeasurement
from runners.measuring.rounds import Rounds
from runners.measuring.run_recorder import RunRecorder
from runners.measuring.sequential_verdicts import SequentialVerdicts
from suites.counting.counted_pass import CountedPass, PassTerms
from suites.counting.tool import Callgrind
from suites.definition import load_suite
from suites.keys.step import Step
from suites.metrics import COUNTED_TRANSACTIONS, INSTRUCTIONS
from suites.sizing import Hardware, sizes
from tests.manifests import a_manifest
from tests.runners.measuring.journal import FakeGenerator, FakeServer, Journal

SUITE = load_suite("write-heavy")
STEPS = SUITE.select(("update-index", "delete"))


def a_build(release: str) -> Build:
    version = parse_version(f"postgres@{release}")
    return Build(version, release, f"key {release}", Path("/nowhere"), a_manifest())


OLD, NEW = a_build("17.11"), a_build("18.6")


class Passes:
    """What passes count, in place of a server under callgrind."""

    def __init__(self) -> None:
        self.counts: dict[str, list[float | TidemarkError]] = {}
        """`release step` to what its passes count, one after the other; the last one is repeated."""
        self.affordable: dict[str, int] = {}
        """`release step` to the transactions that its passes can afford."""
        self.done: list[str] = []
        self.before: dict[str, Callable[[], None]] = {}
        """`release step` to what its passes wait for before they tell how far they are."""
        self.after: dict[str, Callable[[], None]] = {}

    def __call__(
        self,
        server: FakeServer,
        generator: Any,
        step: Step,
        room: Any,
        callgrind: Any,
        terms: PassTerms,
        *,
        stacks: bool,
        watched: object = (),
    ) -> CountedPass:
        name = f"{server.build.release} {step.name}"
        self.done.append(f"{name} stacks" if stacks else name)
        values = self.counts.get(name, [1000.0])
        value = values.pop(0) if len(values) > 1 else values[0]
        transactions = terms.agree(self.affordable.get(name, 400))
        self.before.get(name, lambda: None)()
        terms.tell(transactions // 4, transactions, 10.0)
        self.after.get(name, lambda: None)()
        if isinstance(value, TidemarkError):
            raise value
        return CountedPass({INSTRUCTIONS: value, COUNTED_TRANSACTIONS: float(transactions)}, None)


def session(
    repetitions: int,
    exact: Exact,
    before: Recorded | None = None,
    progress: Progress | None = None,
    steps: tuple[Step, ...] = STEPS,
    earlier: BaseWork | None = None,
    **changes: Any,
) -> tuple[Journal, list[str]]:
    """What a session of two versions and two steps records, and its failures."""
    journal, servers = Journal(), dict[str, FakeServer]()
    versions = (OLD.version, NEW.version)
    request = Request(versions, SUITE, "smoke", steps, repetitions, exact=exact, **changes)

    def serve(build: Build, folder: Path) -> Any:
        servers[build.release] = FakeServer(build, journal)
        return servers[build.release]

    room = sizes(SUITE, SUITE.profile("smoke"), Hardware(2, 24 * 1024**3))
    store: Any = journal
    generator: Any = FakeGenerator(journal, servers)
    verdicts = SequentialVerdicts(str(OLD.version), [str(NEW.version)], Design(2, 3, 20), 0.02, {})
    recorder = RunRecorder(request, store, 1, Silent(), before or {})
    callgrind = Callgrind("valgrind", "valgrind-3.19.0")
    counting = counted_passes.session_passes(
        request, str(OLD.version), room, generator, callgrind, before or {}, earlier
    )
    policy = FailurePolicy(recorder, verdicts, request.least_rounds, passes=counting)
    measurement = RoundMeasurement(request, room, generator)
    rounds = Rounds(request, serve, measurement, recorder, policy, verdicts, progress or Silent())
    rounds.run((OLD, NEW), Path("/nowhere"))
    return journal, recorder.failures


def counted(journal: Journal, release: str, step: str, metric: str = INSTRUCTIONS) -> list[float | None]:
    """The instructions of each round of a version on a step."""
    return [
        record.measurement.values.get(metric) if record.measurement else None
        for record in journal.records
        if (record.build.release, record.step) == (release, step)
    ]


def as_recorded(journal: Journal) -> list[Any]:
    """The runs of the first two rounds, as they are read from a history."""
    return [
        SimpleNamespace(
            id=1,
            version=str(record.build.version),
            step=record.step,
            repetition=record.repetition,
            position=record.position,
            status=record.status,
            failure=None,
            warnings=(),
            values=record.measurement.values if record.measurement else {},
        )
        for record in journal.records
        if record.repetition <= 2
    ]


def shown(told: list[str]) -> Silent:
    """What tells the labels and details of tasks."""

    class Task(SilentTask):
        def detail(self, text: str) -> None:
            told.append(text)

        def rename(self, label: str) -> None:
            told.append(label)

    class Shown(Silent):
        @contextmanager
        def task(self, label: str, total: float | None = None, unit: str = "") -> Iterator[ProgressTask]:
            told.append(unit)
            yield Task()

    return Shown()
