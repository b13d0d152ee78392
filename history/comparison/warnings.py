"""What a person should know before believing a comparison: of the session, the builds and the runs."""

from collections.abc import Iterator, Sequence

from build.version import Version
from history.comparison import disturbed
from history.store.records import Run, Session, SessionStatus


def doubts(session: Session, base: Version, contender: Version, runs: Sequence[Run]) -> tuple[str, ...]:
    """All of them, one text each; `runs` are those of base and contender."""
    return (
        *_of_session(session),
        *of_engines(session, base, contender),
        *_of_builds(runs),
        *_of_disturbed_rounds(runs),
        *_of_runs(runs),
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
    for reason, found in disturbed.by_kind(disturbed.taken(runs)).items():
        counted = "1 round" if len(found) == 1 else f"{len(found)} rounds"
        yield f"disturbed, {counted}: {reason}: {disturbed.where(found)}"


def _of_runs(runs: Sequence[Run]) -> Iterator[str]:
    for run in runs:
        for text in run.warnings:
            if not text.startswith(disturbed.PREFIX):
                yield f"{run.version}, {run.step}, round {run.repetition}: {text}"
