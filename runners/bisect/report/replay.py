"""The replay of a bisect from its log: what was known after each round, and what the search chose next."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from math import exp
from pathlib import Path
from typing import Any

from build.errors import TidemarkError
from build.files import json_value
from history.store.bisects import GOES_ON, Bisect, BisectEvent, EventKind
from history.store.records import Machine
from runners.bisect.domain.question import CandidateRange, Question, rules_of
from runners.bisect.domain.rules import Measure
from runners.bisect.inference.whole.search import WholeSearch
from runners.bisect.report.state import FORMAT
from runners.bisect.run.event_log import Log, Round, apply_entry, new_search, rounds_of_observations


class LogError(TidemarkError):
    """A file is not the log of a bisect."""


def read_file(path: Path) -> Log:
    """Read the log that `report --format json` wrote. Raises LogError."""
    try:
        kept = json_value(path.read_bytes())
        if kept["tidemark"] != "bisect":
            raise ValueError("its key `tidemark` is not `bisect`")
        if kept["format"] > FORMAT:
            raise LogError("the log was written by a newer Tidemark", where=str(path), hint="update Tidemark")
        return _log(kept)
    except OSError as error:
        raise LogError(f"the log cannot be read: {error.strerror}", where=str(path)) from error
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise LogError(
            f"the file is not the log of a bisect: {error!r}",
            where=str(path),
            hint="./tidemark bisect report --format json writes one",
        ) from error


def _log(kept: Mapping[str, Any]) -> Log:
    events = tuple(
        BisectEvent(
            event["number"],
            EventKind(event["kind"]),
            event["session"],
            event["detail"],
            datetime.fromisoformat(event["at"]),
        )
        for event in kept["events"]
    )
    bisect = Bisect(
        id=0,
        uid=str(kept["uid"]),
        machine=Machine(**kept["machine"]),
        question=kept["question"],
        span=kept["span"],
        change=kept["change"],
        began_at=datetime.fromisoformat(kept["began_at"]),
        events=events,
    )
    # A wrong log fails here, and not in the middle of a replay.
    Question.of_json(bisect.question)
    rules_of(bisect.question)
    CandidateRange.of_json(bisect.span)
    return Log(bisect, rounds_of_observations(kept["observations"], kept.get("counted_observations", ())))


def replay(log: Log) -> Iterator[str]:
    """Yield lines for every event and round with what was known after it. Raises LogError."""
    search = new_search(log.bisect)
    span = log.span
    yield f"bisect {log.bisect.uid}: {log.question.summary}"
    ends = f"position 0 is {span.points[0].short}, {span.length} {span.points[-1].short}"
    yield f"candidates: {span.length}; {ends}"
    number = 0
    for entry in log.entries():
        try:
            apply_entry(search, entry)
            if isinstance(entry, Round):
                number += 1
                yield f"{number:>4} {_round_line(entry, span)}"
                yield f"     {_known(search, span)}"
            else:
                yield f"     {_event_line(entry, span)}"
        except (ValueError, KeyError, IndexError) as error:
            raise LogError(f"the log is wrong at round {number}: {error}", where=log.bisect.uid) from error


def _round_line(entry: Round, span: CandidateRange) -> str:
    ratios = ", ".join(
        f"{place} ({span.points[place].short}) {exp(ratio):.3f}" for place, ratio in entry.log_ratios.items()
    )
    kind = "pass" if entry.counted else "round"
    return f"{kind} {entry.number} of session {entry.session}: {ratios}"


def _known(search: WholeSearch, span: CandidateRange) -> str:
    wanted = search.next()
    if isinstance(wanted, Measure):
        names = ", ".join(map(str, wanted.positions))
        then = f"next: {'count ' if wanted.counted else ''}{wanted.rounds} x {names}"
    else:
        then = f"verdict: {wanted.kind}, {wanted.low} to {wanted.high}, {100 * wanted.confidence:.1f} %"
    if not search.is_first:
        return then  # probabilities are those of the first answer
    posterior = search.posterior
    place = int(posterior[1:].argmax()) + 1
    others = ", ".join(f"{name} {100 * share:.1f} %" for name, share in search.alternatives.items())
    return f"likeliest {place} ({span.named(place)}) {100 * posterior[place]:.1f} %; {others}; {then}"


def _event_line(entry: BisectEvent, span: CandidateRange) -> str:
    detail = entry.detail
    match entry.kind:
        case EventKind.SESSION:
            return f"session {entry.session} begins, {entry.happened_at:%Y-%m-%d %H:%M} UTC"
        case EventKind.BUILT:
            return f"compiled: {', '.join(map(str, detail['positions']))}"
        case EventKind.EXCLUDED:
            first = str(detail["reason"]).partition("\n")[0]
            excluded = "not counted" if detail.get("counted") else "excluded"
            return f"{excluded}: {detail['position']} ({span.points[detail['position']].short}): {first}"
        case EventKind.PROFILED:
            return f"session {entry.session} profiled culprit and parent"
        case EventKind.VERDICT:
            more = "; the rest of the range is searched" if detail.get(GOES_ON) else ""
            return f"verdict: {detail['verdict']['kind']}{more}"
