"""Differential profiles: which functions or waits gained or lost time per query between two versions."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from history.stats.sample_counts import Bounds, Counts, Side, interval, intervals
from suites.profiling.stacks import StepProfile, merged
from suites.server import CPU, WAITING

# What is said here of µs of CPU time is true of instructions, where both profiles are of counted ones.

Rounds = Mapping[int, StepProfile]
"""The profiles of a version on a step, by round."""

MIN_CHANGE = 0.01
"""The share of the base's CPU time per query that the total must change by for functions to have shares."""


MIN_EXACT_CHANGE = 0.001
"""The same for counted instructions."""


MIN_SHARE_NAMED = 0.1
"""The share of the change of all client time per query below which an event is not named."""

MIN_UNCERTAIN_SHARE = 0.25
"""The same for an event whose change is not certain."""

NAMED_EVENTS = 3
"""The events that are named at most."""

RENAMED_CALLS = 0.02
"""The share by which the calls of one function under two names may differ."""

_TOTAL = ""
"""Stands for the whole server among functions, all of which have names."""


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
    own_interval: Bounds | None
    """The interval of the change of `own` in µs, which holds together with those of all other functions.

    None of counted instructions, with a single round, and with too few samples (history.stats.sample_counts).
    """
    own_share: float | None
    """The change of `own` over the change of the total; None if the total changed less than MIN_CHANGE."""
    whole_share: float | None
    """The change of `whole` over the change of the total; None likewise."""
    calls: tuple[float, float] | None = None
    """The calls per query in base and contender; None unless they were counted."""
    former: str = ""
    """Its name in the base, where that is another one: see `renamed`."""

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
        """Whether the interval of the change of `own` excludes zero; False without one."""
        return self.own_interval is not None and excludes_zero(self.own_interval)


@dataclass(frozen=True)
class Differential:
    """The differential profile of base and contender on a step."""

    base: StepProfile
    contender: StepProfile
    functions: tuple[FunctionChange, ...]
    """The functions of both: first those whose change is certain, then by the change of `own`."""
    total_interval: Bounds | None = None
    """The interval of the change of the whole server's CPU time per query, in µs, by its own rounds alone."""
    rounds: int = 1
    """The rounds in which both were profiled."""

    @property
    def base_total(self) -> float:
        """CPU time per query of the whole server, in µs."""
        return total(self.base)

    @property
    def contender_total(self) -> float:
        """CPU time per query of the whole server, in µs."""
        return total(self.contender)

    @property
    def certain(self) -> tuple[FunctionChange, ...]:
        """The functions whose change is certain, the largest change of `own` first."""
        return tuple(function for function in self.functions if function.is_certain)

    def gained(self, count: int) -> tuple[FunctionChange, ...]:
        """Return the functions that gained the most, at most `count`."""
        return tuple(function for function in self.functions if function.own_change > 0)[:count]


@dataclass(frozen=True)
class ClientTime:
    """The time that a client spends on a query, in µs, by what the server says that it does meanwhile."""

    events: tuple[FunctionChange, ...]
    """Wait events, stages and CPU, whose `own` time is theirs: first those whose change is certain.

    Their intervals are over rounds and hold together. CPU includes waiting for a core.
    """

    waits: frozenset[str]
    """The names of the events in which a query waits."""

    change: float
    """By how much all of it grew."""

    interval: Bounds | None
    """The interval of that change by its own rounds; None with too few rounds or samples."""

    @property
    def cpu(self) -> FunctionChange | None:
        """The time on CPU, or waiting for a core; None without a sample of it."""
        return next((event for event in self.events if event.name == CPU), None)

    def moved(self, *, longer: bool) -> tuple[FunctionChange, ...]:
        """Return the events that take longer, or shorter: certain ones first, the largest change first.

        CPU is left out, which costs tell, and what makes up less of the whole change than MIN_SHARE_NAMED,
        or MIN_UNCERTAIN_SHARE where the change is not certain.
        """
        return tuple(
            event
            for event in self.events
            if event.name != CPU
            and event.own_interval is not None
            and (event.own_change > 0) is longer
            and (event.own_share or 0.0) >= (MIN_SHARE_NAMED if event.is_certain else MIN_UNCERTAIN_SHARE)
        )[:NAMED_EVENTS]


def differential(base: Rounds, contender: Rounds) -> Differential:
    """Return the differential profile of two versions on a step, with the rounds of each merged.

    Raises ValueError when one of them has no profile.
    """
    old, new = merged(base.values()), merged(contender.values())
    before, after = costs(old), costs(new)
    former = renamed(old, new)
    change = total(new) - total(old)
    least = MIN_EXACT_CHANGE if old.is_exact else MIN_CHANGE
    explains = abs(change) > least * total(old)
    found = _intervals(base, contender)
    nothing = Cost(0.0, 0.0)
    functions = []
    for name in (before.keys() | after.keys()) - set(former.values()):
        was = former.get(name, name)
        earlier, later = before.get(was, nothing), after.get(name, nothing)
        functions.append(
            FunctionChange(
                name,
                earlier,
                later,
                own_interval=found.get(name),
                own_share=(later.own - earlier.own) / change if explains else None,
                whole_share=(later.whole - earlier.whole) / change if explains else None,
                calls=_calls(old, new, was, name) if old.is_exact and new.is_exact else None,
                former=former.get(name, ""),
            )
        )
    functions.sort(key=lambda function: (not function.is_certain, -abs(function.own_change), function.name))
    rounds = len(base.keys() & contender.keys())
    return Differential(old, new, tuple(functions), found.get(_TOTAL), rounds)


def client_time(base: Rounds, contender: Rounds) -> ClientTime:
    """Return what became of the client time per query of a step, by the samples of both versions by round.

    Raises ValueError when one of them has none.
    """
    both = differential(base, contender)
    stacks = (stack for side in (both.base, both.contender) for stack in side.stacks)
    waits = frozenset(stack.partition(";")[2] for stack in stacks if stack.startswith(f"{WAITING};"))
    change = both.contender_total - both.base_total
    return ClientTime(both.functions, waits, change, both.total_interval)


def renamed(base: StepProfile, contender: StepProfile) -> Mapping[str, str]:
    """Return name in contender -> name in base of the functions that seem to have another name.

    Only of counted profiles. One of the names is only in the base, the other only in the contender, one
    begins with the other or they differ in their parameters, and a query calls them as often. Of several such
    names, the one whose number of calls is nearest.
    """
    gone, come = (
        {
            name: count / mine.queries
            for name, count in mine.calls.items()
            if name not in other.calls and count
        }
        for mine, other in ((base, contender), (contender, base))
    )
    found: dict[str, str] = {}
    for name in sorted(come):
        alike = [
            (abs(gone[was] - come[name]), was)
            for was in gone
            if _is_alike(name, was) and abs(gone[was] - come[name]) <= RENAMED_CALLS * come[name]
        ]
        if alike and (was := min(alike)[1]) not in found.values():
            found[name] = was
    return found


def _is_alike(name: str, was: str) -> bool:
    before, after = was.partition("("), name.partition("(")
    same_but_parameters = bool(before[1] and after[1]) and before[0] == after[0]
    return same_but_parameters or name.startswith(was) or was.startswith(name)


def _calls(base: StepProfile, contender: StepProfile, was: str, name: str) -> tuple[float, float]:
    return base.calls.get(was, 0) / base.queries, contender.calls.get(name, 0) / contender.queries


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


def excludes_zero(bounds: Bounds) -> bool:
    """Return whether an interval says that there is a change."""
    return bounds[0] > 0 or bounds[1] < 0


def _intervals(base: Rounds, contender: Rounds) -> Mapping[str, Bounds]:
    """Return the intervals of the change of own time by function, and that of the total as _TOTAL."""
    both = sorted(base.keys() & contender.keys())
    sides = [[of[number] for number in both] for of in (base, contender)]
    if not both or any(profile.is_exact for side in sides for profile in side):
        return {}
    own = [[own_samples(profile) for profile in side] for side in sides]
    names = sorted({name for side in own for counted in side for name in counted})
    counts: dict[str, Counts] = {
        name: ([counted[name] for counted in own[0]], [counted[name] for counted in own[1]]) for name in names
    }
    weights = [
        Side(
            [profile.microseconds_per_sample for profile in side],
            merged(side).microseconds_per_sample,
        )
        for side in sides
    ]
    totals = ([profile.samples for profile in sides[0]], [profile.samples for profile in sides[1]])
    whole = interval(totals, *weights)
    return {**intervals(counts, *weights), **({} if whole is None else {_TOTAL: whole})}
