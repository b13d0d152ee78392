"""Sessions of profile io with one build on both sides, and sessions that are drawn from their blocks.

A drawn session takes consecutive blocks of a recorded step, so that neighbours resemble each other as they do
in a session, from a random one on, behind whose last one the first follows; its sides are swapped at random.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from sqlalchemy import select

from benchmarks.output.figures import Figure
from benchmarks.surroundings.recorded_sessions import record_sessions
from build.home import Home
from build.make import provide
from build.version import Version, parse_version
from history.comparison.options import CONFIDENCE, THRESHOLD
from history.comparison.verdict import Verdict
from history.errors import stored_options
from history.open import open_store
from history.series.variants import TWIN
from history.stats.repeated_intervals import Design
from history.store.reader import Reader
from history.store.records import Run, RunStatus, SessionStatus
from history.store.schema import sessions
from history.store.session_reads import bursts_of
from runners.console import Lines
from runners.measuring.request import Request
from runners.measuring.sequential_verdicts import SequentialVerdicts
from runners.measuring.session import run_session
from suites.definition import load_suite
from suites.metric_names import PRIMARY

BASE = parse_version("postgres@17.11")
SIDES = (BASE, replace(BASE, variant=TWIN))
SUITE, PROFILE, STEPS = "write-heavy", "io", ("update-index", "insert")

SESSIONS, BLOCKS = 3, 30
"""The recorded sessions, and the blocks of each of their steps."""

DRAWN, LEAST, SEED = 40, 5, 20261126
"""The drawn sessions; their blocks before the first look, as the profile has them."""


@dataclass(frozen=True)
class Block:
    """A block of both sides, in their order."""

    rates: Sequence[float]
    """Their throughput."""

    bursts: Sequence[bool]
    """Whether a vacuum reached them."""


@dataclass(frozen=True)
class RecordedStep:
    """The blocks of one step of one session."""

    name: str
    blocks: Sequence[Block]


def equal_figures(home: Home) -> Iterator[Figure]:
    """Record sessions until there are enough, going on where another call ended; then draw from them."""
    history = home.path / "io" / "equal" / "history.db"
    history.parent.mkdir(parents=True, exist_ok=True)
    suite, shown = load_suite(SUITE), Lines()
    request = Request(SIDES, suite, PROFILE, suite.select(STEPS), LEAST, blocks=BLOCKS, resume=True)
    build = provide(BASE, home, shown)
    given = {side: replace(build, version=side) for side in SIDES}
    with open_store(history) as store:
        failed = record_sessions(
            "equal builds",
            SESSIONS,
            lambda: len(finished_sessions(store)),
            lambda: run_session(request, home, store, shown, given),
            shown,
        )
        if failed:
            yield from failed
            return
        found = [
            step for session, _ in finished_sessions(store) for step in recorded_steps(store, session, SIDES)
        ]
    yield from drawn_figures(found)


def finished_sessions(history: Reader) -> list[tuple[int, str]]:
    """Return the ids and names of the sessions that finished, in the order in which they began."""
    found = select(sessions.c.id, sessions.c.uid).where(sessions.c.status == SessionStatus.FINISHED)
    with history.database.reading() as connection:
        return [(row.id, row.uid) for row in connection.execute(found.order_by(sessions.c.id))]


def recorded_steps(history: Reader, session: int, sides: Sequence[Version]) -> list[RecordedStep]:
    """Return the blocks of the steps of a session that both sides finished."""
    with history.database.reading() as connection:
        options = connection.scalars(select(sessions.c.options).where(sessions.c.id == session)).one()
        bursts = bursts_of(connection, session, stored_options(options))
    found: dict[str, dict[int, dict[str, Run]]] = {}
    for run in history.runs(session):
        if run.status is RunStatus.FINISHED and PRIMARY in run.values:
            found.setdefault(run.step, {}).setdefault(run.repetition, {})[run.version] = run
    steps = []
    for step, blocks in found.items():
        pairs = [
            [runs[str(side)] for side in sides]
            for _, runs in sorted(blocks.items())
            if len(runs) == len(sides)
        ]
        steps.append(
            RecordedStep(
                step,
                [
                    Block([run.values[PRIMARY] for run in pair], [run.id in bursts for run in pair])
                    for pair in pairs
                ],
            )
        )
    return steps


def drawn_figures(recorded: Sequence[RecordedStep]) -> Iterator[Figure]:
    """Yield how many of the drawn sessions have a verdict, each of all of which is false."""
    draw = random.Random(SEED)
    names = sorted({step.name for step in recorded})
    false: list[str] = []
    for _ in range(DRAWN):
        chosen = [draw.choice([step for step in recorded if step.name == name]) for name in names]
        told = _verdicts([_drawn(step, draw) for step in chosen])
        false += [f"{step} {verdict}" for step, verdict in told if verdict in _CHANGED][:1]
    blocks = sum(len(step.blocks) for step in recorded)
    yield Figure("equal builds: recorded blocks", blocks, "", at_least=SESSIONS * BLOCKS * len(STEPS) * 0.9)
    note = f"of {DRAWN}{'; ' if false else ''}{', '.join(false)}"
    yield Figure("equal builds: drawn sessions with a verdict", len(false), "", at_most=0, note=note)


_CHANGED = (Verdict.REGRESSION, Verdict.IMPROVEMENT)


def _drawn(step: RecordedStep, draw: random.Random) -> RecordedStep:
    begin, swapped = draw.randrange(len(step.blocks)), draw.random() < 0.5
    order = slice(None, None, -1 if swapped else 1)
    ordered = [*step.blocks[begin:], *step.blocks[:begin]]
    return RecordedStep(step.name, [Block(block.rates[order], block.bursts[order]) for block in ordered])


def _verdicts(steps: Sequence[RecordedStep]) -> Iterator[tuple[str, Verdict]]:
    """Yield the verdict on each step once it is decided, or after its last block, as a session would end."""
    names = base, contender = [str(side) for side in SIDES]
    design = Design(steps=len(steps), least=LEAST, cap=BLOCKS, confidence=CONFIDENCE / 100)
    verdicts = SequentialVerdicts(base, [contender], design, THRESHOLD / 100, {})
    for step in steps:
        for number, block in enumerate(step.blocks, start=1):
            bursts = [name for name, has_burst in zip(names, block.bursts, strict=True) if has_burst]
            verdicts.add(step.name, number, dict(zip(names, block.rates, strict=True)), bursts)
            if number >= LEAST and not verdicts.open_steps([step.name], number):
                break
        yield step.name, verdicts.verdicts(contender, number)[step.name]
