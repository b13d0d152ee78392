"""Passes of equal builds that were recorded on real servers, and sessions drawn from them.

The recording has a list of sessions by engine. Each session has, by step, the passes of both builds, each of
which counted data that it had loaded itself.
"""

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.output.figures import Figure
from build.version import Engine
from history.comparison.exact import exact_interval, exact_rule
from history.comparison.result import EXACT_THRESHOLD
from history.comparison.verdict import Verdict, judge
from suites.metrics import INSTRUCTIONS, METRICS

RECORDING = Path(__file__).with_name("passes.json")
SESSIONS = 200
SEED = 20261122

MIN_PASSES = 20
"""Recorded passes of each step that a claim about false verdicts needs."""

Loads = Sequence[Sequence[float]]
"""The passes of one step: one list for each time that data were loaded."""


@dataclass(frozen=True)
class DrawnSessions:
    """What became of sessions of equal builds."""

    false: int
    """Sessions with a regression or an improvement in any step."""

    undecided: int
    """Steps of all sessions that are inconclusive or whose passes disagree."""


def add_passes(
    engine: Engine, passes: Mapping[str, Mapping[str, Sequence[float]]], path: Path = RECORDING
) -> None:
    """Add the passes of a session (step -> version -> values) to the recording."""
    content = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    session = {step: [[round(value, 1) for value in of] for of in by.values()] for step, by in passes.items()}
    content.setdefault(engine, []).append(session)
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def recorded_loads(path: Path = RECORDING) -> Mapping[Engine, Mapping[str, Loads]]:
    """Return the recorded passes by engine and step; none if nothing was recorded yet."""
    content = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    by_engine: dict[Engine, dict[str, list[Sequence[float]]]] = {}
    for engine, sessions in content.items():
        steps = by_engine.setdefault(Engine(engine), {})
        for session in sessions:
            for step, loads in session.items():
                steps.setdefault(step, []).extend(loads)
    return by_engine


def drawn(engine: Engine, steps: Mapping[str, Loads], sessions: int = SESSIONS) -> DrawnSessions:
    """Draw sessions of equal builds: of each step the passes of two loads, for base and contender."""
    rng = random.Random(SEED)
    rule, better = exact_rule({engine}), METRICS[INSTRUCTIONS].better
    false = undecided = 0
    for _ in range(sessions):
        verdicts = set()
        for loads in steps.values():
            base, contender = rng.sample(list(loads), 2)
            interval = exact_interval(base, contender, rule)
            verdict = None if interval is None else judge(interval, better, EXACT_THRESHOLD / 100)
            verdicts.add(verdict)
            undecided += verdict in (None, Verdict.INCONCLUSIVE)
        false += bool(verdicts & {Verdict.REGRESSION, Verdict.IMPROVEMENT})
    return DrawnSessions(false, undecided)


def false_figures() -> Iterator[Figure]:
    """Yield the false verdicts of drawn sessions, for each engine that was recorded."""
    recorded = recorded_loads()
    if not recorded:
        note = "record some: TIDEMARK_BENCH_PARTS='equal record' ./tidemark bench exact"
        yield Figure("recorded passes of each step", 0, "", at_least=MIN_PASSES, note=note)
    for engine, steps in recorded.items():
        least = min(sum(map(len, loads)) for loads in steps.values())
        outcome = drawn(engine, steps)
        widest = max(max(map(max, loads)) / min(map(min, loads)) - 1 for loads in steps.values())
        yield Figure(f"{engine}: recorded passes of each step", least, "", at_least=MIN_PASSES)
        yield Figure(
            f"{engine}: of {SESSIONS} sessions of equal builds, with a false verdict",
            outcome.false,
            "",
            at_most=0,
            note=f"{outcome.undecided} of {SESSIONS * len(steps)} steps undecided; "
            f"all passes of a step are within {widest:.2%}",
        )
