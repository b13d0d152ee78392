"""Errors, retries and stalls: events that may not occur at all, judged by their counts in all rounds."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from history.comparison.pairs import StepPairs
from history.metric_words import label_of, words_of
from history.numbers import amount
from history.stats.event_counts import Events, chance_by_scatter, chance_of_more, chance_of_poisson
from suites.metrics import (
    CAUSES_OF_ERRORS,
    DEADLOCKS,
    ERRORS,
    EVENTS,
    FAILED,
    METRICS,
    SECONDS,
    SLOWEST,
    SLOWEST_SECOND,
    STALL_LIMITS,
    TAIL_LIMITS,
    TRANSACTIONS,
)

FALSE_FINDINGS = 0.0025
"""How often equal builds may have a finding in any step: 1 % in a session of a base and four of them."""

SMALLEST_RATIO, RATIO_CHANCE = 1.5, 0.05
"""More events are at least so many times as frequent, except with this probability: what is common, such as
retries of clients that meet, differs between rounds of equal builds."""

WORTH_TELLING = 0.01
"""The probability, of single errors that come by chance, up to which errors that one version alone has are
told without being decided: 7 of them in as much work as the other's. One failure says nothing."""

MIN_STALLS = 12
"""The seconds beyond a limit, on both sides together, below which no session of several steps can decide."""

MAX_STALLED_SHARE = 0.5
"""The share of all seconds up to which being beyond a limit is a stall, not the rule."""

IN_GROUPS = frozenset((ERRORS, DEADLOCKS, *CAUSES_OF_ERRORS))
"""Of which a pause or a conflict may bring one for each client. Applications draw refusals one by one."""


@dataclass(frozen=True)
class Slowest:
    """The slowest transaction of a version in a step."""

    milliseconds: float
    second: float | None
    """The second of its round in which it ended; None in older sessions."""

    round: int

    def text(self, round_name: str) -> str:
        """Return how long it took, and when: `262 ms in second 14 of round 2`."""
        second = "" if self.second is None else f"second {self.second:.0f} of "
        return f"{amount(self.milliseconds)} ms in {second}{round_name} {self.round}"


@dataclass(frozen=True)
class RareEvents:
    """The events of one metric in one step, of all rounds that both versions finished."""

    step: str
    metric: str
    base: Events
    contender: Events
    level: float = FALSE_FINDINGS
    """The probability up to which a difference is decided: a share of FALSE_FINDINGS."""
    slowest: "tuple[Slowest, Slowest] | None" = None
    """The slowest transaction of base and contender; None for errors, and where it is not known."""
    group: float = 1.0
    """How many of them one cause may bring at once, such as a pause of the server."""

    def text(self, round_name: str) -> str:
        """Return what occurred on both sides, in one line, where pairs are called by `round_name`."""
        base, new = ((round(side.total), round(side.exposure)) for side in (self.base, self.contender))
        done = label_of(METRICS[self.metric].counted_in)
        text = (
            f"{new[0]:,} of {new[1]:,} {done} {words_of(self.metric).event}, base {base[0]:,} of {base[1]:,}"
        )
        if self.slowest is not None:
            base_slowest, slowest = (side.text(round_name) for side in self.slowest)
            text += f"; the slowest took {slowest}, base {base_slowest}"
        return text if self.is_decided else f"{text}: too few to tell from chance"

    @property
    def is_worse(self) -> bool:
        """Whether the contender has more of them, which chance does not explain."""
        return self._has_more(self.contender, self.base)

    @property
    def is_better(self) -> bool:
        """Whether the base has more of them, which chance does not explain."""
        return self._has_more(self.base, self.contender)

    def _has_more(self, events: Events, others: Events) -> bool:
        larger = chance_of_more(events, others, SMALLEST_RATIO, self.group) <= RATIO_CHANCE
        by_chance = chance_of_more(events, others, group=self.group), chance_by_scatter(events, others)
        return larger and max(by_chance) <= self.level

    @property
    def is_decided(self) -> bool:
        """Whether one version has more of them, which chance does not explain."""
        return self.is_worse or self.is_better

    @property
    def is_only_one_sided(self) -> bool:
        """Whether they are errors, and one version has none."""
        is_error = self.metric in (ERRORS, *CAUSES_OF_ERRORS)
        return is_error and not min(self.base.total, self.contender.total)

    @property
    def is_told(self) -> bool:
        """Whether they are decided, or errors of one version alone that are unlikely to be chance."""
        sides = (self.contender, self.base), (self.base, self.contender)
        is_unlikely = min(chance_of_poisson(*pair) for pair in sides) <= WORTH_TELLING
        return self.is_decided or (self.is_only_one_sided and is_unlikely)


def rare_events(paired: Sequence[StepPairs]) -> tuple[RareEvents, ...]:
    """Return what occurred in any round of the steps, by step and then by metric.

    Both directions of everything that is returned are tested together.
    """
    found = [events for step in paired for events in (*_errors(step), *_stalls(step))]
    return tuple(replace(events, level=FALSE_FINDINGS / (2 * len(found))) for events in found)


def few_errors(paired: Sequence[StepPairs]) -> tuple[RareEvents, ...]:
    """Return the errors that one version alone has, and that are too few to be told as a finding."""
    return tuple(events for events in rare_events(paired) if events.is_only_one_sided and not events.is_told)


def _errors(step: StepPairs) -> Iterator[RareEvents]:
    """Yield the errors by cause; where none was recorded all of them together, and the server's deadlocks."""
    causes = [name for name in CAUSES_OF_ERRORS if step.rounds(name)]
    slow = (*STALL_LIMITS, *TAIL_LIMITS)
    others = [name for name in EVENTS if name not in (ERRORS, DEADLOCKS, *CAUSES_OF_ERRORS, *slow)]
    for name in (*(causes or (ERRORS, DEADLOCKS)), *others):
        events = _events(step, name)
        if events is not None:
            yield events


def _stalls(step: StepPairs) -> Iterator[RareEvents]:
    """Yield the seconds beyond the highest limit with enough of them to decide, if that is not the rule.

    The limit follows from both sides together, which leaves open on which of them the seconds are.
    """
    for name in reversed(STALL_LIMITS):
        events = _events(step, name)
        if events is None or events.base.total + events.contender.total < MIN_STALLS:
            continue
        both = events.base.exposure + events.contender.exposure
        if events.base.total + events.contender.total <= MAX_STALLED_SHARE * both:
            yield replace(events, slowest=slowest_of(step))
        return


def _events(step: StepPairs, metric: str) -> RareEvents | None:
    """Return the events of a metric; None where it was not recorded, or nothing occurred."""
    exposure = METRICS[metric].counted_in
    numbers = {*step.rounds(metric)} & {*step.rounds(exposure)}
    pairs = [pair for pair in step.pairs if pair.number in numbers]
    # Transactions that failed are none of those that finished.
    beside = metric if metric in FAILED else None
    base, contender = (
        Events(
            [values[metric] for values in side],
            [values[exposure] + (values[beside] if beside else 0.0) for values in side],
        )
        for side in ([pair.base for pair in pairs], [pair.contender for pair in pairs])
    )
    occurred = base.total + contender.total > 0 and min(base.exposure, contender.exposure) > 0
    group = group_of(step) if metric in IN_GROUPS else 1.0
    return RareEvents(step.step, metric, base, contender, group=group) if occurred else None


def group_of(step: StepPairs) -> float:
    """Return how many transactions of a step one pause of the server can delay or fail, at least 1.

    These are one of each client. Where they arrive at a rate, or the clients are not known, they are those
    that begin while the slowest one waits.
    """
    if step.clients is not None:
        return float(step.clients)
    known = (TRANSACTIONS, SECONDS, SLOWEST)
    sides = (side for pair in step.pairs for side in (pair.base, pair.contender))
    rounds = [side for side in sides if all(side.get(name) for name in known)]
    begun = [side[TRANSACTIONS] / side[SECONDS] * side[SLOWEST] / 1000 for side in rounds]
    return max([1.0, *begun])


def slowest_of(step: StepPairs) -> tuple[Slowest, Slowest] | None:
    """Return the slowest transaction of base and contender, of the rounds in which both know it; None
    without."""
    pairs = [pair for pair in step.pairs if SLOWEST in pair.base and SLOWEST in pair.contender]
    if not pairs:
        return None
    sides = [[(pair.base, pair.number) for pair in pairs], [(pair.contender, pair.number) for pair in pairs]]
    base, contender = (
        Slowest(values[SLOWEST], values.get(SLOWEST_SECOND), number)
        for values, number in (max(side, key=lambda entry: entry[0][SLOWEST]) for side in sides)
    )
    return base, contender
