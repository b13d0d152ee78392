"""Slow transactions: how many took longer than limits that only few exceed, judged by their counts in all
rounds."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from history.comparison.findings.rare_events import RareEvents, group_of, rare_events, slowest_of
from history.comparison.pairs import StepPairs
from history.stats.event_counts import Events
from suites.metrics import STALL_LIMITS, TAIL_LIMITS, TRANSACTIONS

FALSE_FINDINGS = 0.00025
"""How often a contender that equals the base may seem to have more slow transactions, or fewer, in any step:
0.1 % in a session of a base and four of them."""

TAILS = (0.0005, 0.005)
"""The shares of the transactions of both versions that are beyond limits which are tested, at least. Where
one version has nearly all of them, its 99.9th percentile, or the other's, lies there."""

MIN_SLOW = 24
"""The transactions beyond a limit, on both sides together, below which no session of several steps can
decide: of groups that one pause delays together, as many groups."""


def slow_tails(paired: Sequence[StepPairs]) -> tuple[RareEvents, ...]:
    """Return the transactions beyond the tested limits of the steps, by step and then by limit, the highest
    first.

    Both directions of everything that is returned are tested together.
    """
    found = [events for step in paired for events in _tested(step)]
    return tuple(replace(events, level=FALSE_FINDINGS / (2 * len(found))) for events in found)


def told_tails(paired: Sequence[StepPairs]) -> tuple[RareEvents, ...]:
    """Return the first decided limit of each step, unless its stalls tell the same."""
    stalls = (events for events in rare_events(paired) if events.metric in STALL_LIMITS and events.is_decided)
    told = {(events.step, events.is_worse) for events in stalls}
    found: dict[str, RareEvents] = {}
    for events in slow_tails(paired):
        if events.is_decided and (events.step, events.is_worse) not in told:
            found.setdefault(events.step, events)
    return tuple(found.values())


def _tested(step: StepPairs) -> Iterator[RareEvents]:
    """Yield the transactions beyond the highest limits with enough of them, by number and by share.

    The limits follow from both sides together, which leaves open on which of them the transactions are.
    """
    enough = [events for events in _beyond(step) if _total(events) >= MIN_SLOW * events.group]
    highest = [_highest(enough, share) for share in (0.0, *TAILS)]
    tested = {events.metric: events for events in highest if events is not None}
    yield from (replace(events, slowest=slowest_of(step)) for events in tested.values())


def _highest(beyond: Sequence[RareEvents], share: float) -> RareEvents | None:
    """Return the first, which is the highest, of the limits that such a share of transactions exceeds."""
    shares = (_total(events) / (events.base.exposure + events.contender.exposure) for events in beyond)
    return next((events for events, found in zip(beyond, shares, strict=True) if found >= share), None)


def _total(events: RareEvents) -> float:
    return events.base.total + events.contender.total


def _beyond(step: StepPairs) -> Iterator[RareEvents]:
    """Yield the transactions beyond each limit, the highest first, down to the lowest that all rounds have
    counted.

    Rounds in which a version does not say it are left out.
    """
    pairs = [pair for pair in step.pairs if _recorded(pair.base) and _recorded(pair.contender)]
    if not pairs:
        return
    sides = [pair.base for pair in pairs], [pair.contender for pair in pairs]
    lowest = max(min(_recorded(values)) for side in sides for values in side)
    for name in reversed(TAIL_LIMITS[lowest:]):
        # A round records no limit above the first that none of its transactions exceeds.
        base, contender = (
            Events([values.get(name, 0.0) for values in side], [values[TRANSACTIONS] for values in side])
            for side in sides
        )
        yield RareEvents(step.step, name, base, contender, group=group_of(step))


def _recorded(values: Mapping[str, float]) -> Sequence[int]:
    """Return the places of the limits that a round has counted; none of an older session."""
    return [place for place, name in enumerate(TAIL_LIMITS) if name in values and TRANSACTIONS in values]
