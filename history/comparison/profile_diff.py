"""Differential profiles: which functions gained or lost CPU time per query between two versions."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from history.stats.estimators import variance
from suites.profiling.stacks import StepProfile, merged

# What is said here of µs of CPU time is true of instructions, where both profiles are of counted ones.

Rounds = Mapping[int, StepProfile]
"""The profiles of a version on a step, by round."""

MIN_ROUNDS = 3
"""The rounds from which a standard error is computed at least."""

MIN_CHANGE = 0.01
"""The share of the base's CPU time per query that the total must change by for functions to have shares."""


MIN_EXACT_CHANGE = 0.001
"""The same for counted instructions."""


@dataclass(frozen=True)
class Cost:
    """The CPU time per query of one function, in µs."""

    own: float
    """The time in the function itself."""
    whole: float
    """The time in the function and its callees; recursion counts once."""


@dataclass(frozen=True)
class FunctionChange:
    """The CPU time of a function in base and contender."""

    name: str
    base: Cost
    contender: Cost
    own_error: float | None
    """The standard error of the change of `own` over the rounds, in µs; None below MIN_ROUNDS."""
    own_share: float | None
    """The change of `own` over the change of the total; None if the total changed less than MIN_CHANGE."""
    whole_share: float | None
    """The change of `whole` over the change of the total; None likewise."""
    calls: tuple[float, float] | None = None
    """The calls per query in base and contender; None unless they were counted."""

    @property
    def own_change(self) -> float:
        """The change of `own` in µs per query."""
        return self.contender.own - self.base.own

    @property
    def whole_change(self) -> float:
        """The change of `whole` in µs per query."""
        return self.contender.whole - self.base.whole

    @property
    def is_called_more(self) -> bool | None:
        """Whether more or fewer calls explain more of the change of `own` than what each call costs.

        None when calls were not counted, or in one of the versions there are none.
        """
        if self.calls is None or not all(self.calls):
            return None
        before, after = self.calls
        by_calls = (after - before) * self.base.own / before
        return abs(by_calls) > abs(self.own_change - by_calls)

    @property
    def is_certain(self) -> bool:
        """Whether the change of `own` exceeds twice its standard error; False below MIN_ROUNDS."""
        return self.own_error is not None and abs(self.own_change) > 2 * self.own_error


@dataclass(frozen=True)
class Differential:
    """The differential profile of base and contender on a step."""

    base: StepProfile
    contender: StepProfile
    functions: tuple[FunctionChange, ...]
    """The functions of both, largest change of `own` first."""

    @property
    def base_total(self) -> float:
        """CPU time per query of the whole server, in µs."""
        return total(self.base)

    @property
    def contender_total(self) -> float:
        """CPU time per query of the whole server, in µs."""
        return total(self.contender)

    def gained(self, count: int) -> tuple[FunctionChange, ...]:
        """Return the functions that gained the most, at most `count`."""
        return tuple(function for function in self.functions if function.own_change > 0)[:count]


def differential(base: Rounds, contender: Rounds) -> Differential:
    """Return the differential profile of two versions on a step, with the rounds of each merged.

    Raises ValueError when one of them has no profile.
    """
    old, new = merged(base.values()), merged(contender.values())
    before, after = costs(old), costs(new)
    change = total(new) - total(old)
    least = MIN_EXACT_CHANGE if old.is_exact else MIN_CHANGE
    explains = abs(change) > least * total(old)
    errors = _errors(base, contender)
    nothing = Cost(0.0, 0.0)
    functions = []
    for name in before.keys() | after.keys():
        earlier, later = before.get(name, nothing), after.get(name, nothing)
        functions.append(
            FunctionChange(
                name,
                earlier,
                later,
                own_error=None if errors is None else errors.get(name, 0.0),
                own_share=(later.own - earlier.own) / change if explains else None,
                whole_share=(later.whole - earlier.whole) / change if explains else None,
                calls=_calls(old, new, name) if old.is_exact and new.is_exact else None,
            )
        )
    functions.sort(key=lambda function: (-abs(function.own_change), function.name))
    return Differential(old, new, tuple(functions))


def _calls(base: StepProfile, contender: StepProfile, name: str) -> tuple[float, float]:
    return base.calls.get(name, 0) / base.queries, contender.calls.get(name, 0) / contender.queries


def total(profile: StepProfile) -> float:
    """Return the CPU time per query of the whole server, in µs."""
    return profile.samples * profile.microseconds_per_sample


def costs(profile: StepProfile) -> Mapping[str, Cost]:
    """Return the CPU time per query by function."""
    own, whole = own_samples(profile), Counter[str]()
    for stack, count in profile.stacks.items():
        for name in set(stack.split(";")[1:]):
            whole[name] += count
    scale = profile.microseconds_per_sample
    return {name: Cost(own[name] * scale, count * scale) for name, count in whole.items()}


def own_samples(profile: StepProfile) -> Counter[str]:
    """Return the number of samples by innermost function."""
    own: Counter[str] = Counter()
    for stack, count in profile.stacks.items():
        _, *frames = stack.split(";")
        if frames:
            own[frames[-1]] += count
    return own


def _errors(base: Rounds, contender: Rounds) -> Mapping[str, float] | None:
    """Return the standard error of the mean change of own time by function, over the rounds of both.

    Returns None below MIN_ROUNDS.
    """
    both = sorted(base.keys() & contender.keys())
    if len(both) < MIN_ROUNDS:
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
    """Return the standard error of the mean of the changes."""
    return math.sqrt(variance(changes) / len(changes))


def _own_times(profile: StepProfile) -> Mapping[str, float]:
    scale = profile.microseconds_per_sample
    return {name: count * scale for name, count in own_samples(profile).items()}
