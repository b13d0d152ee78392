"""Pairs of base and contender by step: from the rounds of one session, or from nights.

Only values of the same session are paired: between a base and a contender of different nights the machine has
drifted.
"""

import math
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from history.stats.bursts import are_alike, blocks_with_bursts
from history.stats.estimators import MINIMUM_REPETITIONS, variance
from history.store.records import Run, RunStatus, StepNoise
from suites.metrics import EQUAL_WORK, METRICS, TRANSACTIONS, metrics_at_equal_work

ROUNDING = 1e-12
"""Log ratios within this distance count as equal, because quotients are rounded."""

MAX_UNEQUAL_WORK = 0.03
"""How much more work one version may have done where costs were not recorded at equal work: WAL per query has
moved by up to 0.6 of it."""

WORK_METRICS = (EQUAL_WORK, TRANSACTIONS)
"""The metrics by which rounds of older versions of Tidemark are recognised."""


WHOLE_LINES = 4
"""The lines of a reason up to which all of it is told."""

ERRORS = 2
"""The lines of a log that are told of a longer one: the first that are errors, else the last."""

# What makes lines of two logs differ that say the same.
_STAMP = re.compile(r"^\s*\d{4}-\d\d-\d\d[ T]\s*\d{1,2}:\d\d:\d\d\S*(?: UTC| \[?\d+\]?)*\s*")

_ERROR = re.compile(r"\b(?:ERROR|FATAL|PANIC)\b")


@dataclass(frozen=True)
class Failure:
    """The runs of a version in a step that did not finish for the same reason."""

    version: str
    step: str
    repetitions: tuple[int, ...]
    status: RunStatus
    reason: str
    over_limit: frozenset[str] = frozenset()
    """The versions of the session that were over the limit of a query in this step, which ends it for all."""

    limit_seconds: float = 0.0
    """That limit; 0 without one."""

    took_seconds: float | None = None
    """How long the query took this version where others were over the limit; None where it is not known."""

    @property
    def gist(self) -> str:
        """The reason in one line: of a log, the lines with errors, without their times, and what to do."""
        lines = [line for line in map(str.strip, self.reason.splitlines()) if line]
        if len(lines) <= WHOLE_LINES:
            return " ".join(self.reason.split())
        first, *rest = lines
        # The log's folder is another one for each session, and its data are removed.
        log = [_STAMP.sub("", line) for line in rest if not line.startswith(("where:", "to do:"))]
        told = [line for line in log if _ERROR.search(line)][:ERRORS] or log[-ERRORS:]
        told += [line for line in rest if line.startswith("to do:")]
        return " ".join(f"{first} {'; '.join(told)}".split())


@dataclass(frozen=True)
class Pair:
    """The values of base and contender from one round of a session, or from one night.

    Values are by metric, in the metric's unit.
    """

    number: int
    """The number of the round or night, from 1."""

    base: Mapping[str, float]
    contender: Mapping[str, float]
    unequal_work: bool = False
    """Whether metrics were left out that compare only at equal work, which was not recorded."""

    def per_transaction(self, metric: str) -> "Pair":
        """Return the pair with one metric alone, per transaction of each version if both counted them."""
        base, contender = (
            {metric: values[metric]} if metric in values else {} for values in (self.base, self.contender)
        )
        done = self.base.get(TRANSACTIONS), self.contender.get(TRANSACTIONS)
        if base and contender and done[0] and done[1]:
            base, contender = {metric: base[metric] / done[0]}, {metric: contender[metric] / done[1]}
        return Pair(self.number, base, contender)


@dataclass(frozen=True)
class StepPairs:
    """The pairs of one step, for one base and one contender."""

    step: str
    pairs: tuple[Pair, ...]
    """The pairs in order: one per round in which both finished, or per night in which both have values."""

    failures: tuple[Failure, ...]
    bursts: frozenset[int] = frozenset()
    """The rounds in which either version had background work that comes in bursts, where that is known."""

    clients: int | None = None
    """How many clients wait for an answer at once; None where that is not known, or where work arrives at a
    rate."""

    _logs: dict[str, Sequence[tuple[int, float | None]]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    """The log ratios by metric, cached because pooling the noise of all steps needs them repeatedly."""

    @property
    def has_unequal_work(self) -> bool:
        """Whether metrics that need equal work were left out of a pair."""
        return any(pair.unequal_work for pair in self.pairs)

    def values(self, metric: str) -> tuple[list[float], list[float]]:
        """Return the values of base and contender, from the pairs in which both have the metric."""
        both = [pair for pair in self.pairs if metric in pair.base and metric in pair.contender]
        return [pair.base[metric] for pair in both], [pair.contender[metric] for pair in both]

    def last_round(self, metric: str) -> int:
        """Return the number of the last round in which both versions have the metric; 0 without one."""
        return next((number for number in reversed(self.rounds(metric))), 0)

    def log_ratios(self, metric: str, until: int | None = None) -> Sequence[float] | None:
        """ln(contender / base) of each pair in order, up to round `until`; None when one has no logarithm."""
        if metric not in self._logs:
            self._logs[metric] = tuple(self._numbered_logs(metric))
        logs = [log for number, log in self._logs[metric] if until is None or number <= until]
        usable = tuple(log for log in logs if log is not None)
        return usable if len(usable) == len(logs) else None

    def left_out(self, metric: str, until: int | None = None) -> frozenset[int]:
        """Return the rounds up to `until` whose ratio does not count, because bursts reached them."""
        numbers = [number for number in self.rounds(metric) if until is None or number <= until]
        return blocks_with_bursts(numbers, self.bursts) if self.bursts else frozenset()

    def places_left_out(self, metric: str) -> Collection[int]:
        """Return the places of the log ratios of these rounds, from 0."""
        left_out = self.left_out(metric)
        return [place for place, number in enumerate(self.rounds(metric)) if number in left_out]

    def even_logs(self, metric: str, until: int | None = None) -> Sequence[float] | None:
        """Return the log ratios without the rounds that are left out; None when one has no logarithm."""
        logs = self.log_ratios(metric, until)
        left_out = self.left_out(metric, until)
        if logs is None or not left_out:
            return logs
        numbered = zip(self.rounds(metric), logs, strict=False)  # later rounds than `until` have no log here
        return tuple(log for number, log in numbered if number not in left_out)

    def rounds(self, metric: str) -> Sequence[int]:
        """Return the number of the round or night of each log ratio."""
        return [number for number, _ in self._numbered_logs(metric)]

    def _numbered_logs(self, metric: str) -> Iterator[tuple[int, float | None]]:
        for pair in self.pairs:
            old, new = pair.base.get(metric), pair.contender.get(metric)
            if old is not None and new is not None:
                yield pair.number, math.log(new / old) if min(old, new) > 0 else None

    def per_transaction(self, metric: str) -> "StepPairs":
        """Return the step with the values of one metric alone, divided by the transactions of both versions.

        They are not divided in rounds in which transactions were not counted.
        """
        return replace(self, pairs=tuple(pair.per_transaction(metric) for pair in self.pairs))

    def ratios(self, metric: str, count: int) -> list[float | None]:
        """Return contender over base in each round or night from 1 to `count`; None without a ratio."""
        ratios: list[float | None] = [None] * count
        for pair in self.pairs:
            old, new = pair.base.get(metric), pair.contender.get(metric)
            if old is not None and new is not None and min(old, new) > 0:
                ratios[pair.number - 1] = new / old
        return ratios


def pair_steps(
    runs: Sequence[Run], base: str, contender: str, bursts: Collection[int] = ()
) -> tuple[StepPairs, ...]:
    """Return every step with a run of either version, in suite order, ignoring other versions.

    `bursts` are the ids of runs with background work that comes in bursts, where rounds are compared for it.
    Between two engines they count as all others.
    """
    if not are_alike((base, contender)):
        bursts = ()
    by_step: defaultdict[tuple[int, str], list[Run]] = defaultdict(list)
    for run in runs:
        if run.version in (base, contender):
            by_step[run.step_position, run.step].append(run)
    return tuple(
        StepPairs(
            step,
            _pairs(by_step[position, step], base, contender),
            _failures(by_step[position, step]),
            frozenset(run.repetition for run in by_step[position, step] if run.id in bursts),
        )
        for position, step in sorted(by_step)
    )


def noise_of(runs: Sequence[Run], base: str, twin: str, bursts: Collection[int] = ()) -> list[StepNoise]:
    """Return the noise of every step and metric that has a ratio, from the rounds of two identical builds.

    It is the sample standard deviation of the log ratios. A metric with fewer than MINIMUM_REPETITIONS rounds
    is left out, and so is one with equal ratios, which does not predict later rounds. `bursts` as in
    pair_steps.
    """
    noise = []
    for step in pair_steps(runs, base, twin, bursts):
        for metric in METRICS:
            logs = step.even_logs(metric)
            if logs is None or len(logs) < MINIMUM_REPETITIONS:
                continue
            if max(logs) - min(logs) > ROUNDING:
                spread = math.sqrt(variance(logs))
                noise.append(StepNoise(step.step, metric, spread, len(logs) - 1, len(logs)))
    return noise


def _pairs(runs: Sequence[Run], base: str, contender: str) -> tuple[Pair, ...]:
    finished = {(run.version, run.repetition): run for run in runs if run.status is RunStatus.FINISHED}
    repetitions = sorted({run.repetition for run in runs})
    return tuple(
        _pair(repetition, finished[base, repetition].values, finished[contender, repetition].values)
        for repetition in repetitions
        if (base, repetition) in finished and (contender, repetition) in finished
    )


def _pair(number: int, base: Mapping[str, float], contender: Mapping[str, float]) -> Pair:
    """Return a pair without the metrics that need equal work, if both versions did unlike work."""
    if has_equal_work(base, contender):
        return Pair(number, base, contender)
    left_out = {*metrics_at_equal_work()}
    old, new = (
        {name: value for name, value in values.items() if name not in left_out}
        for values in (base, contender)
    )
    return Pair(number, old, new, unequal_work=True)


def has_equal_work(base: Mapping[str, float], contender: Mapping[str, float]) -> bool:
    """Return whether costs of a round can be compared: its work was equal or nearly so, or is not known."""
    for metric in WORK_METRICS:
        works = base.get(metric), contender.get(metric)
        if works[0] and works[1]:
            return abs(math.log(works[1] / works[0])) <= math.log1p(MAX_UNEQUAL_WORK)
    return True


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
