"""Passes of equal builds that were recorded on real servers, and sessions drawn from them.

The recording has a list of sessions by engine. Each session has, by step, the passes of both builds, each of
which counted data that it had loaded itself.
"""

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.counts.counted_levels import FALSE, carried_out
from benchmarks.output.figures import Figure
from build.version import Engine
from history.comparison.exact import MAX_PASSES, exact_rule
from history.comparison.verdict import Verdict
from suites.metric_names import INSTRUCTIONS

RECORDING = Path(__file__).with_name("passes.json")
SESSIONS = 200
SEED = 20261122

PLANTED_PERCENT = (0.7, 1.0)
"""By how much more a contender counts than was recorded; the threshold is 0.5 %."""

MIN_FOUND_PERCENT = 95.0

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

    slower: int
    """Steps of all sessions with a regression."""


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


def drawn(
    engine: Engine, steps: Mapping[str, Loads], sessions: int = SESSIONS, planted: float = 0.0
) -> DrawnSessions:
    """Draw sessions of equal builds: of each step the passes of two loads, for base and contender.

    The contender's counts are larger by `planted`, a fraction. Passes beyond the recorded ones are any of the
    load. Two loads are rarely of one session, so that less moves both alike than in a session.
    """
    rng, rule = random.Random(SEED), exact_rule(INSTRUCTIONS, {engine})
    false = undecided = slower = 0
    for _ in range(sessions):
        verdicts = []
        for loads in steps.values():
            base, contender = rng.sample(list(loads), 2)
            pairs = zip(
                _passes(base, rng), (count * (1 + planted) for count in _passes(contender, rng)), strict=True
            )
            verdicts.append(carried_out(pairs, rule))
        undecided += sum(verdict in (None, Verdict.INCONCLUSIVE) for verdict in verdicts)
        slower += verdicts.count(Verdict.REGRESSION)
        false += not FALSE.isdisjoint(verdicts)
    return DrawnSessions(false, undecided, slower)


def _passes(load: Sequence[float], rng: random.Random) -> list[float]:
    return [*load, *rng.choices(load, k=MAX_PASSES)][:MAX_PASSES]


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
            note=f"{outcome.undecided} of {SESSIONS * len(steps)} steps undecided, "
            f"whose loads are of several sessions; all passes of a step are within {100 * widest:.2f} %",
        )
        for percent in PLANTED_PERCENT:
            planted = drawn(engine, steps, planted=percent / 100)
            yield Figure(
                f"{engine}: {percent:g} % more in all steps of these sessions: steps found",
                100 * planted.slower / (SESSIONS * len(steps)),
                "%",
                at_least=MIN_FOUND_PERCENT,
            )
