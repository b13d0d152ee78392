"""Recorded sessions of profile io: the noise of their blocks, and sessions that are drawn from them.

A drawn session takes consecutive blocks of a recorded step, so that neighbours resemble each other as they do
in a session, from a random one on, behind whose last one the first follows; its sides are swapped at random.
"""

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from sqlalchemy import select

from build.version import Version, parse_version
from history.comparison.compare import compare
from history.comparison.options import CONFIDENCE, THRESHOLD, CompareOptions
from history.comparison.verdict import Verdict
from history.errors import stored_options
from history.series.variants import TWIN
from history.stats.estimators import mean, variance
from history.stats.repeated_intervals import Design
from history.store.reader import Reader
from history.store.records import Run, RunStatus, SessionStatus
from history.store.schema import sessions
from history.store.session_reads import bursts_of
from runners.measuring.sequential_verdicts import SequentialVerdicts
from suites.metrics import PRIMARY

BASE, CONTENDER = parse_version("postgres@17.11"), parse_version("postgres@18.6")
SIDES = (BASE, replace(BASE, variant=TWIN))

BLOCKS = 30
"""The recorded blocks of each step."""

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


@dataclass(frozen=True)
class Steadiness:
    """What the blocks of one step of one session show."""

    ratio: float
    """Of the contender's throughput to the base's, as a comparison has it."""
    base: float
    """The base's mean throughput."""
    base_noise: float
    """The standard deviation of the logarithm of the base's throughput, from block to block."""
    pair_noise: float
    """That of the ratio of both versions in a block."""


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


def steadiness(store: Reader, session: int, uid: str) -> dict[str, Steadiness]:
    """Return what the blocks of a session show, by step."""
    (contender,) = compare(store, BASE, (CONTENDER,), CompareOptions(session=uid)).contenders
    ratios = {step.step: step.judged.value for step in contender.steps}
    found: dict[str, Steadiness] = {}
    for step in recorded_steps(store, session, (BASE, CONTENDER)):
        logarithms = [[math.log(rate) for rate in block.rates] for block in step.blocks]
        found[step.name] = Steadiness(
            ratio=ratios[step.name] or 0.0,
            base=mean([block.rates[0] for block in step.blocks]),
            base_noise=math.sqrt(variance([base for base, _ in logarithms])),
            pair_noise=math.sqrt(variance([changed - base for base, changed in logarithms])),
        )
    return found


def drawn_verdicts(recorded: Sequence[RecordedStep]) -> list[str]:
    """Draw sessions, and return the steps with a verdict, each of which is false: one of a session."""
    draw = random.Random(SEED)
    names = sorted({step.name for step in recorded})
    false: list[str] = []
    for _ in range(DRAWN):
        chosen = [draw.choice([step for step in recorded if step.name == name]) for name in names]
        told = _verdicts([_drawn(step, draw) for step in chosen])
        changed = (Verdict.REGRESSION, Verdict.IMPROVEMENT)
        false += [f"{step} {verdict}" for step, verdict in told if verdict in changed][:1]
    return false


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
