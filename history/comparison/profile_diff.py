"""Which functions gained or lost CPU time per query between two profiles of a step."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from history.stats.estimators import variance
from suites.profiling.stacks import StepProfile, merged

Rounds = Mapping[int, StepProfile]
"""Profiles of one version on one step, by round."""

LEAST_ROUNDS = 3
"""Below this nothing is said of how much a change scatters."""

LEAST_CHANGE = 0.01
"""Of the base's CPU time per query: a total that changed by less has no shares."""


@dataclass(frozen=True)
class Cost:
    """CPU time per query of one function, in µs."""

    own: float
    """Spent in the function itself."""
    whole: float
    """Spent in it and in what it called; recursion counts once."""


@dataclass(frozen=True)
class FunctionChange:
    """One function in base and contender."""

    name: str
    base: Cost
    contender: Cost
    own_error: float | None
    """Standard error of the change of `own` over the rounds, in µs; None below LEAST_ROUNDS."""
    own_share: float | None
    """Change of `own` over the change of the total; None when the total hardly changed."""
    whole_share: float | None

    @property
    def own_change(self) -> float:
        """In µs per query."""
        return self.contender.own - self.base.own

    @property
    def whole_change(self) -> float:
        """In µs per query."""
        return self.contender.whole - self.base.whole

    @property
    def is_certain(self) -> bool:
        """Whether the change of `own` is more than twice its standard error; not known of too few rounds."""
        return self.own_error is not None and abs(self.own_change) > 2 * self.own_error


@dataclass(frozen=True)
class Differential:
    """Base and contender of one step."""

    base: StepProfile
    contender: StepProfile
    functions: tuple[FunctionChange, ...]
    """All of both, the largest change of `own` first."""

    @property
    def base_total(self) -> float:
        """CPU time per query of the whole server, in µs."""
        return total(self.base)

    @property
    def contender_total(self) -> float:
        """CPU time per query of the whole server, in µs."""
        return total(self.contender)

    def gained(self, count: int) -> tuple[FunctionChange, ...]:
        """The functions that gained the most, at most `count`."""
        return tuple(each for each in self.functions if each.own_change > 0)[:count]


def differential(base: Rounds, contender: Rounds) -> Differential:
    """Compare two versions' profiles of a step, all rounds of each merged.

    Raises ValueError when one of them has no profile.
    """
    old, new = merged(base.values()), merged(contender.values())
    before, after = costs(old), costs(new)
    change = total(new) - total(old)
    explains = abs(change) > LEAST_CHANGE * total(old)
    errors = _errors(base, contender)
    nothing = Cost(0.0, 0.0)
    found = []
    for name in before.keys() | after.keys():
        one, other = before.get(name, nothing), after.get(name, nothing)
        found.append(
            FunctionChange(
                name,
                one,
                other,
                own_error=None if errors is None else errors.get(name, 0.0),
                own_share=(other.own - one.own) / change if explains else None,
                whole_share=(other.whole - one.whole) / change if explains else None,
            )
        )
    found.sort(key=lambda each: (-abs(each.own_change), each.name))
    return Differential(old, new, tuple(found))


def total(profile: StepProfile) -> float:
    """CPU time per query of the whole server, in µs."""
    return profile.samples * profile.microseconds_per_sample


def costs(profile: StepProfile) -> Mapping[str, Cost]:
    """By function."""
    own, whole = own_samples(profile), Counter[str]()
    for stack, count in profile.stacks.items():
        for name in set(stack.split(";")[1:]):
            whole[name] += count
    scale = profile.microseconds_per_sample
    return {name: Cost(own[name] * scale, count * scale) for name, count in whole.items()}


def own_samples(profile: StepProfile) -> Counter[str]:
    """Samples by the innermost function."""
    own: Counter[str] = Counter()
    for stack, count in profile.stacks.items():
        _, *frames = stack.split(";")
        if frames:
            own[frames[-1]] += count
    return own


def _errors(base: Rounds, contender: Rounds) -> Mapping[str, float] | None:
    """By function, the standard error of the mean change of its own time over the rounds that have both."""
    both = sorted(base.keys() & contender.keys())
    if len(both) < LEAST_ROUNDS:
        return None
    before = [_own_times(base[number]) for number in both]
    after = [_own_times(contender[number]) for number in both]
    names = {name for times in (*before, *after) for name in times}
    return {
        name: _error(
            [new.get(name, 0.0) - old.get(name, 0.0) for old, new in zip(before, after, strict=True)]
        )
        for name in names
    }


def _error(changes: Sequence[float]) -> float:
    """The standard error of their mean."""
    return math.sqrt(variance(changes) / len(changes))


def _own_times(profile: StepProfile) -> Mapping[str, float]:
    scale = profile.microseconds_per_sample
    return {name: count * scale for name, count in own_samples(profile).items()}
