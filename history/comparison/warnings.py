"""Warnings of a comparison about its session, its builds, its rounds and its runs."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from build.version import Version
from history.counts import counted
from history.series.variants import definition_in
from history.store.records import DroppedRound, Run, Session, SessionStatus

DISTURBED_PREFIX = "disturbed: "
"""The prefix of a run's warning about the disturbance of its round."""

MAX_STEPS = 3
"""The steps whose rounds a warning lists."""

_FIGURE = re.compile(r"\d+(?:\.\d+)?")
_DETAIL = re.compile(r" \(limit [^)]*\)|:.*")


@dataclass(frozen=True)
class Disturbed:
    """One reason why a round was disturbed, with figures, as reported by suites.accounting.disturbance."""

    step: str
    round: int
    reason: str


def comparison_warnings(
    session: Session, base: Version, contender: Version, runs: Sequence[Run]
) -> tuple[str, ...]:
    """Return the warnings of a comparison; `runs` are those of base and contender."""
    return (
        *_of_session(session),
        *engine_warnings(session, base, contender),
        *_of_builds(runs, _definition(session, base) != _definition(session, contender)),
        *_of_disturbed_rounds(runs, session.round_name),
        *warnings_of_runs(runs),
    )


def _definition(session: Session, version: Version) -> Mapping[str, Any]:
    return definition_in(session.options, version.variant)


def _of_session(session: Session) -> Iterator[str]:
    if session.status is not SessionStatus.FINISHED:
        missing = f"steps and {session.round_name}s may be missing"
        yield f"session {session.uid} is {session.status}, not finished: {missing}"
    if session.is_imported:
        yield (
            f"session {session.uid} was imported: whether its versions were measured alike is not known, and "
            "its costs may be the whole machine's, the load generator included"
        )
    changed = session.options.get("machine_changed")
    if isinstance(changed, list) and changed:
        changes = "; ".join(map(str, changed))
        yield f"the machine has changed since its last session: {changes}; do not join older sessions"


def warnings_of_lookup(session: Session, passed_over: Session | None) -> Iterator[str]:
    """Warn that a later session was not taken, because it did not finish."""
    if passed_over is not None:
        yield (
            f"session {passed_over.uid} of {passed_over.started_at:%Y-%m-%d %H:%M} UTC is later and"
            f" {'failed' if passed_over.status is SessionStatus.FAILED else 'was interrupted'};"
            f" this is the last that finished, {session.uid}: --session {passed_over.uid} compares the other"
        )


def engine_warnings(session: Session, base: Version, contender: Version) -> Iterator[str]:
    """Warn that configuration and durability differ too, when the engines are different."""
    if base.engine is not contender.engine:
        yield (
            f"{base.engine} and {contender.engine} are different engines: configuration and durability "
            f"({session.durability}) are part of the comparison"
        )


def _of_builds(runs: Sequence[Run], differs: bool) -> Iterator[str]:
    """Warn about builds; `differs` says that what the versions got besides their builds is not the same."""
    keys: dict[str, set[str]] = {}
    for run in runs:
        keys.setdefault(run.version, set()).add(run.build_key)
    for version, build_keys in keys.items():
        if len(build_keys) > 1:
            yield f"{version} was more than one build within the session"
    if len(keys) > 1 and len(set.union(*keys.values())) == 1 and not differs:
        yield "base and contender are the same build: every difference is noise"


def _of_disturbed_rounds(runs: Sequence[Run], what: str) -> Iterator[str]:
    for reason, rounds in by_reason(disturbed_rounds(runs)).items():
        yield f"disturbed, {counted(len(rounds), what)}: {reason}: {steps_and_rounds(rounds)}"


def warnings_of_runs(runs: Sequence[Run]) -> Iterator[str]:
    """What is to be known of single rounds of each version, but for what disturbed them.

    Texts that differ only in figures are one line, with the steps and rounds.
    """
    kinds: defaultdict[tuple[str, str], list[Disturbed]] = defaultdict(list)
    for run in runs:
        for text in run.warnings:
            if not text.startswith(DISTURBED_PREFIX):
                # An older Tidemark stored the whole output of other programs in further lines.
                first, _, _ = text.partition("\n")
                kinds[run.version, _FIGURE.sub("#", first)].append(Disturbed(run.step, run.repetition, first))
    for (version, _), rounds in kinds.items():
        yield f"{version}, {steps_and_rounds(rounds)}: {_merged([same.reason for same in rounds])}"


def disturbed_rounds(runs: Iterable[Run]) -> list[Disturbed]:
    """Return the disturbances of rounds that were kept; those of all versions of a round are equal."""
    disturbed = [
        Disturbed(run.step, run.repetition, text.removeprefix(DISTURBED_PREFIX))
        for run in runs
        for text in run.warnings
        if text.startswith(DISTURBED_PREFIX)
    ]
    return list(dict.fromkeys(disturbed))


def remeasured_rounds(dropped: Iterable[DroppedRound]) -> list[Disturbed]:
    """Return the disturbances of dropped rounds, once for every time that a round was measured again."""
    return [
        Disturbed(round_.step, round_.repetition, reason)
        for round_ in dropped
        for reason in round_.reason.split("; ")
    ]


def by_reason(disturbed: Iterable[Disturbed]) -> dict[str, list[Disturbed]]:
    """Return disturbances by short reason; reasons that differ only in figures are merged, with ranges."""
    kinds: defaultdict[str, list[Disturbed]] = defaultdict(list)
    for disturbance in disturbed:
        kinds[_FIGURE.sub("#", _short(disturbance.reason))].append(disturbance)
    return {_merged([_short(same.reason) for same in kind]): kind for kind in kinds.values()}


def steps_and_rounds(disturbed: Sequence[Disturbed]) -> str:
    """Return the steps with their rounds, such as `insert 1, 3-5; delete 2`, at most MAX_STEPS of them."""
    rounds: defaultdict[str, set[int]] = defaultdict(set)
    for round_ in disturbed:
        rounds[round_.step].add(round_.round)
    named = [f"{step} {ranges(numbers)}" for step, numbers in rounds.items()]
    more = len(named) - MAX_STEPS
    return "; ".join(named[:MAX_STEPS]) + (
        f"; {counted(more, 'more step', 'more steps')}" if more > 0 else ""
    )


def ranges(rounds: Iterable[int]) -> str:
    """Return round numbers in order, with three or more consecutive ones as a range: `1, 3-5`."""
    rows: list[list[int]] = []
    for number in sorted(set(rounds)):
        if rows and number == rows[-1][-1] + 1:
            rows[-1].append(number)
        else:
            rows.append([number])
    return ", ".join(f"{row[0]}-{row[-1]}" if len(row) > 2 else ", ".join(map(str, row)) for row in rows)


def _short(reason: str) -> str:
    """Return a reason without its limit and the processes responsible, and as it is spelt today."""
    return re.sub(r"(?<=\d)%", " %", _DETAIL.sub("", reason))


def _merged(reasons: Sequence[str]) -> str:
    """Return reasons that differ only in their figures as one, with ranges of figures."""
    figures = zip(*(_FIGURE.findall(reason) for reason in reasons), strict=True)
    spans = iter([_range(sorted(set(values), key=float)) for values in figures])
    return _FIGURE.sub(lambda _: next(spans), reasons[0])


def _range(figures: Sequence[str]) -> str:
    return figures[0] if len(figures) == 1 else f"{figures[0]} to {figures[-1]}"
