"""Warnings of a comparison: what makes its session, its builds, its rounds or its runs doubtful."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from build.version import Version
from history.store.records import DroppedRound, Run, Session, SessionStatus

DISTURBED_PREFIX = "disturbed: "
"""How a warning of a run begins that says what disturbed its round."""

_FIGURE = re.compile(r"\d+(?:\.\d+)?")
_DETAIL = re.compile(r" \(limit [^)]*\)|:.*")


@dataclass(frozen=True)
class Disturbed:
    """One reason why a round was disturbed, with its figures: a sentence of suites.accounting.disturbance."""

    step: str
    round: int
    reason: str


def comparison_warnings(
    session: Session, base: Version, contender: Version, runs: Sequence[Run]
) -> tuple[str, ...]:
    """All warnings, one text each; `runs` are those of base and contender."""
    return (
        *_of_session(session),
        *of_engines(session, base, contender),
        *_of_builds(runs),
        *_of_disturbed_rounds(runs),
        *warnings_of_runs(runs),
    )


def _of_session(session: Session) -> Iterator[str]:
    if session.status is not SessionStatus.FINISHED:
        yield f"session {session.uid} is {session.status}, not finished: steps and rounds may be missing"
    if session.is_imported:
        yield (
            f"session {session.uid} was imported: whether its versions were measured alike is not known, and "
            "its costs may be the whole machine's, the load generator included"
        )
    changed = session.options.get("machine_changed")
    if isinstance(changed, list) and changed:
        said = "; ".join(map(str, changed))
        yield f"the machine has changed since its last session: {said}; do not join older sessions"


def of_engines(session: Session, base: Version, contender: Version) -> Iterator[str]:
    """That more than versions differ, when engines do."""
    if base.engine is not contender.engine:
        yield (
            f"{base.engine} and {contender.engine} are different engines: configuration and durability "
            f"({session.durability}) are part of the comparison"
        )


def _of_builds(runs: Sequence[Run]) -> Iterator[str]:
    keys: dict[str, set[str]] = {}
    for run in runs:
        keys.setdefault(run.version, set()).add(run.build_key)
    for version, found in keys.items():
        if len(found) > 1:
            yield f"{version} was more than one build within the session"
    if len(keys) > 1 and len(set.union(*keys.values())) == 1:
        yield "base and contender are the same build: every difference is noise"


def _of_disturbed_rounds(runs: Sequence[Run]) -> Iterator[str]:
    for reason, rounds in by_reason(disturbed_rounds(runs)).items():
        counted = "1 round" if len(rounds) == 1 else f"{len(rounds)} rounds"
        yield f"disturbed, {counted}: {reason}: {steps_and_rounds(rounds)}"


def warnings_of_runs(runs: Sequence[Run]) -> Iterator[str]:
    """What is to be known of single rounds, one line for each, but for what disturbed them."""
    for run in runs:
        for text in run.warnings:
            if not text.startswith(DISTURBED_PREFIX):
                # An older Tidemark stored the whole output of other programs in further lines.
                first, _, _ = text.partition("\n")
                yield f"{run.version}, {run.step}, round {run.repetition}: {first}"


def disturbed_rounds(runs: Iterable[Run]) -> list[Disturbed]:
    """The reasons of rounds that were kept although disturbed: all versions of a round have the same ones."""
    found = [
        Disturbed(run.step, run.repetition, text.removeprefix(DISTURBED_PREFIX))
        for run in runs
        for text in run.warnings
        if text.startswith(DISTURBED_PREFIX)
    ]
    return list(dict.fromkeys(found))


def remeasured_rounds(dropped: Iterable[DroppedRound]) -> list[Disturbed]:
    """The reasons of rounds that were measured again, as often as they were."""
    return [
        Disturbed(each.step, each.repetition, reason)
        for each in dropped
        for reason in each.reason.split("; ")
    ]


def by_reason(disturbed: Iterable[Disturbed]) -> dict[str, list[Disturbed]]:
    """Short reason -> what was disturbed for it. Reasons that differ in figures only are one, with ranges."""
    kinds: defaultdict[str, list[Disturbed]] = defaultdict(list)
    for each in disturbed:
        kinds[_FIGURE.sub("#", _short(each.reason))].append(each)
    return {_joined([_short(each.reason) for each in found]): found for found in kinds.values()}


def steps_and_rounds(disturbed: Sequence[Disturbed]) -> str:
    """Steps with their rounds: `insert 1, 3-5; delete 2`."""
    rounds: defaultdict[str, set[int]] = defaultdict(set)
    for each in disturbed:
        rounds[each.step].add(each.round)
    return "; ".join(f"{step} {ranges(found)}" for step, found in rounds.items())


def ranges(rounds: Iterable[int]) -> str:
    """Round numbers in order, three and more in a row as a range: `1, 3-5`."""
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
    spans = iter([_range(sorted(set(each), key=float)) for each in figures])
    return _FIGURE.sub(lambda _: next(spans), reasons[0])


def _range(figures: Sequence[str]) -> str:
    return figures[0] if len(figures) == 1 else f"{figures[0]} to {figures[-1]}"
