"""What disturbed the rounds of a session, summed up: one line for each kind of reason."""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from history.store.records import DroppedRound, Run

PREFIX = "disturbed: "
"""How a warning of a run begins that says what disturbed its round."""

_FIGURE = re.compile(r"\d+(?:\.\d+)?")
_DETAIL = re.compile(r" \(limit [^)]*\)|:.*")


@dataclass(frozen=True)
class Disturbed:
    """One reason why a round was disturbed, with its figures: a sentence of suites.disturbance."""

    step: str
    round: int
    reason: str


def taken(runs: Iterable[Run]) -> list[Disturbed]:
    """Of the rounds that were taken all the same: all versions of a round have the same reasons."""
    found = [
        Disturbed(run.step, run.repetition, text.removeprefix(PREFIX))
        for run in runs
        for text in run.warnings
        if text.startswith(PREFIX)
    ]
    return list(dict.fromkeys(found))


def measured_again(dropped: Iterable[DroppedRound]) -> list[Disturbed]:
    """Of the rounds that were measured again, each as often as it was."""
    return [
        Disturbed(each.step, each.repetition, reason)
        for each in dropped
        for reason in each.reason.split("; ")
    ]


def by_kind(disturbed: Iterable[Disturbed]) -> dict[str, list[Disturbed]]:
    """Short reason -> what has a reason of this kind; what they say in figures is one range."""
    kinds: defaultdict[str, list[Disturbed]] = defaultdict(list)
    for each in disturbed:
        kinds[_FIGURE.sub("#", _short(each.reason))].append(each)
    return {_joined([_short(each.reason) for each in found]): found for found in kinds.values()}


def where(disturbed: Sequence[Disturbed]) -> str:
    """Steps with their rounds: `insert 1, 3-5; delete 2`."""
    rounds: defaultdict[str, set[int]] = defaultdict(set)
    for each in disturbed:
        rounds[each.step].add(each.round)
    return "; ".join(f"{step} {numbers(found)}" for step, found in rounds.items())


def numbers(rounds: Iterable[int]) -> str:
    """Numbers in order, of three and more in a row the ends: `1, 3-5`."""
    rows: list[list[int]] = []
    for each in sorted(set(rounds)):
        if rows and each == rows[-1][-1] + 1:
            rows[-1].append(each)
        else:
            rows.append([each])
    return ", ".join(f"{row[0]}-{row[-1]}" if len(row) > 2 else ", ".join(map(str, row)) for row in rows)


def _short(reason: str) -> str:
    """Without its limit and culprits."""
    return _DETAIL.sub("", reason)


def _joined(reasons: Sequence[str]) -> str:
    """Sentences that differ in their figures only, as one with least and most."""
    figures = zip(*(_FIGURE.findall(each) for each in reasons), strict=True)
    ranges = iter([_range(sorted(set(each), key=float)) for each in figures])
    return _FIGURE.sub(lambda _: next(ranges), reasons[0])


def _range(figures: Sequence[str]) -> str:
    return figures[0] if len(figures) == 1 else f"{figures[0]} to {figures[-1]}"
