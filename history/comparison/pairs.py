"""Base and contender of one session, paired by step and repetition.

Only runs of the same session are ever paired: a base measured on another night differs from the contender
by all that the machine has drifted since.
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from history.store.records import Run, RunStatus


@dataclass(frozen=True)
class Failure:
    """Runs of one version in one step that did not finish, for one reason."""

    version: str
    step: str
    repetitions: tuple[int, ...]
    status: RunStatus
    reason: str


@dataclass(frozen=True)
class StepPairs:
    """What a session holds of one step, for one base and one contender."""

    step: str
    pairs: tuple[tuple[Run, Run], ...]
    """Base and contender of each repetition in which both finished, by repetition."""

    failures: tuple[Failure, ...]
    _logs: dict[str, Sequence[float] | None] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    """By metric: whoever pools the noise of all steps asks again for each of them."""

    def values(self, metric: str) -> tuple[list[float], list[float]]:
        """Base's and contender's values, from the pairs in which both have the metric."""
        both = [pair for pair in self.pairs if metric in pair[0].values and metric in pair[1].values]
        return [base.values[metric] for base, _ in both], [new.values[metric] for _, new in both]

    def log_ratios(self, metric: str) -> Sequence[float] | None:
        """ln(contender / base) of each pair in order; None when some value has no logarithm."""
        if metric not in self._logs:
            base, contender = self.values(metric)
            none = min((*base, *contender), default=1.0) <= 0
            logs = (math.log(new / old) for old, new in zip(base, contender, strict=True))
            self._logs[metric] = None if none else tuple(logs)
        return self._logs[metric]

    def ratios(self, metric: str, repetitions: int) -> list[float | None]:
        """Contender over base in each repetition from 1 on; None where there is no such ratio."""
        found: list[float | None] = [None] * repetitions
        for base, contender in self.pairs:
            old, new = base.values.get(metric), contender.values.get(metric)
            if old is not None and new is not None and min(old, new) > 0:
                found[base.repetition - 1] = new / old
        return found


def pair_steps(runs: Sequence[Run], base: str, contender: str) -> tuple[StepPairs, ...]:
    """Every step that either version has a run of, in suite order; runs of other versions are ignored."""
    by_step: defaultdict[tuple[int, str], list[Run]] = defaultdict(list)
    for run in runs:
        if run.version in (base, contender):
            by_step[run.step_position, run.step].append(run)
    return tuple(
        StepPairs(step, _pairs(by_step[position, step], base, contender), _failures(by_step[position, step]))
        for position, step in sorted(by_step)
    )


def _pairs(runs: Sequence[Run], base: str, contender: str) -> tuple[tuple[Run, Run], ...]:
    finished = {(run.version, run.repetition): run for run in runs if run.status is RunStatus.FINISHED}
    repetitions = sorted({run.repetition for run in runs})
    return tuple(
        (finished[base, each], finished[contender, each])
        for each in repetitions
        if (base, each) in finished and (contender, each) in finished
    )


def _failures(runs: Sequence[Run]) -> tuple[Failure, ...]:
    grouped: defaultdict[tuple[str, RunStatus, str], list[int]] = defaultdict(list)
    for run in sorted(runs, key=lambda run: run.repetition):
        if run.status is not RunStatus.FINISHED:
            grouped[run.version, run.status, run.failure or "no reason recorded"].append(run.repetition)
    step = runs[0].step
    return tuple(
        Failure(version, step, tuple(repetitions), status, reason)
        for (version, status, reason), repetitions in grouped.items()
    )
