"""The background work of two versions beside each other: in how many of its seconds each of them had any."""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from history.comparison.finding import Bearing, Finding
from history.comparison.pairs import StepPairs
from history.comparison.rounds.onset import Seconds
from history.comparison.rounds.stalls import Runs
from history.counts import counted
from history.numbers import signed_percent
from history.stats.bursts import are_alike
from history.stats.estimators import mean
from suites.accounting.activity import BURSTS, CHECKPOINT, PURGE, VACUUM, Activity

SOURCE = "background"

WORDS: Mapping[str, str] = {CHECKPOINT: "checkpoints", VACUUM: "autovacuum", PURGE: "purge"}
"""The work that a server does for what its clients wrote, and how it is told."""

MIN_SECONDS = 60
"""The seconds of each version below which nothing is told: a checkpoint more or less is chance."""

SMALLEST_DIFFERENCE = 0.1
"""The difference of shares of seconds from which on it is told."""

MOSTLY = 0.5
"""The difference of a round's shares of seconds from which on it is said that work was on one side."""


def bursts_left_out(steps: Iterable[StepPairs], metric: str) -> Iterator[Finding]:
    """Yield the steps with blocks that bursts reached and that are left out, with the ratio of all blocks.

    The finding is only told: `metric` is judged without these blocks.
    """
    for step in steps:
        left_out, logs = step.left_out(metric), step.log_ratios(metric)
        if left_out and logs:
            number = len(step.bursts.intersection(step.rounds(metric)))
            text = (
                f"autovacuum in {number} of {counted(len(logs), 'block')}; {len(left_out)} are left out, "
                f"with those after it; all {len(logs)}: {signed_percent(math.exp(mean(logs)) - 1)}"
            )
            yield Finding(SOURCE, step.step, "", Bearing.TOLD, text)


def why_left_out(step: StepPairs, metric: str) -> Mapping[int, str]:
    """Return the blocks of a step that have no part in the interval of a metric, each with the reason."""
    reasons = ("left out, after autovacuum", "left out, autovacuum")
    return {number: reasons[number in step.bursts] for number in step.left_out(metric)}


def background_shares(
    found: Mapping[int, Sequence[Activity]],
    runs: Runs,
    versions: tuple[str, str],
    seconds: Seconds,
    without_bursts: Collection[str] = (),
) -> Iterator[Finding]:
    """Yield the steps in which base and contender, the `versions`, had other shares of background work, over
    all rounds or in single ones.

    `found` is what went on in runs, by id; `seconds` is called for steps in which there was any. Blocks with
    bursts do not count in the steps `without_bursts`. The finding is only told: how much there is may belong
    to a version, or be chance. Between engines, whose work has other kinds, there is none.
    """
    if not are_alike(versions):
        return
    for step in dict.fromkeys(step for step, _, _ in runs):
        both = [
            number
            for name, version, number in runs
            if (name, version) == (step, versions[0]) and (step, versions[1], number) in runs
        ]
        sides = [
            [activity for number in both for activity in found.get(runs[step, version, number], ())]
            for version in versions
        ]
        if not any(activity.name in WORDS for side in sides for activity in side):
            continue
        known = seconds(step)
        lengths = [sum(len(pair[place]) for pair in known) for place in (0, 1)]
        if min(lengths) < MIN_SECONDS:
            continue
        pairs = [[found.get(runs[step, version, number], ()) for version in versions] for number in both]
        seconds_of_round = sum(lengths) / 2 / len(both)
        names = [name for name in WORDS if name not in BURSTS or step not in without_bursts]
        told = "; ".join([*_differences(sides, lengths), *_on_one_side(names, pairs, seconds_of_round)])
        if told:
            yield Finding(SOURCE, step, "", Bearing.TOLD, f"{told}: unequal shares of background work")


def _differences(sides: Sequence[Sequence[Activity]], lengths: Sequence[int]) -> Iterator[str]:
    """Yield the kinds of work with other shares: `checkpoints in 22 % of the seconds, base 40 %`."""
    where = " of the seconds"
    for name, words in WORDS.items():
        base, contender = (_seconds(side, name) / length for side, length in zip(sides, lengths, strict=True))
        if abs(base - contender) >= SMALLEST_DIFFERENCE:
            yield f"{words} in {100 * contender:.0f} %{where}, base {100 * base:.0f} %"
            where = ""


def _on_one_side(
    names: Sequence[str], pairs: Sequence[Sequence[Sequence[Activity]]], seconds: float
) -> Iterator[str]:
    """Yield the kinds of work that went on in one version alone in some rounds of so many seconds.

    These scatter more than others: a vacuum writes as much log as thousands of queries.
    """
    for name in names:
        apart = [abs(_seconds(base, name) - _seconds(contender, name)) for base, contender in pairs]
        number = sum(difference >= MOSTLY * seconds for difference in apart)
        if number:
            yield f"{WORDS[name]} in {number} of {counted(len(pairs), 'block')} mostly on one side"


def _seconds(found: Sequence[Activity], name: str) -> int:
    return sum(activity.last - activity.first + 1 for activity in found if activity.name == name)
