"""Carrying out the attempts of a kind, in a home of its own, and keeping what they told."""

import json
import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.kinds.catalogue import FOLDER, Attempt, AttemptCommand, PlantedKind
from benchmarks.kinds.told import ToldDifference, missed, told_worse
from benchmarks.output.figures import Figure
from benchmarks.surroundings.scratch_home import CommandRun, link_home, tidemark
from build.home import Home
from runners.own_version import own_version
from suites.metrics import INSTRUCTIONS

SESSION = re.compile(r"\bsession ([0-9a-f]{8})\b")
"""How `run` and `try` name their sessions."""

HISTORIES = {AttemptCommand.TRY: "tries.db", AttemptCommand.RUN: "history.db"}


@dataclass(frozen=True)
class AttemptResult:
    """What one attempt told."""

    command: str
    minutes: float
    exit_code: int
    missed: str
    """What it lacks; empty where it told what it must."""

    told: tuple[str, ...]
    """The differences for the worse, a line each."""

    printed: str
    commit: str
    """The Tidemark that was tried."""

    def figure(self, kind: PlantedKind, number: int) -> Figure:
        """Whether it told its kind, as a figure with its target."""
        attempt = kind.attempts[number]
        name = f"{kind.name}: {attempt.command}{'' if attempt.is_seen else ', why not'} ({number + 1})"
        note = self.missed or "; ".join(self.told) or attempt.expected
        by = "" if self.commit == own_version() else f" by {self.commit}"
        note = f"{self.minutes:.0f} min{by}: {note}"
        return Figure(name, float(not self.missed), "told", at_least=1, note=note)


def kind_figures(
    kind: PlantedKind, home: Home, *, again: bool = False, busy: bool = False
) -> Iterator[Figure]:
    """Yield a figure for each attempt of a kind.

    Results of the same definition of the kind are kept, unless `again` is given: all kinds take hours, and
    those that another commit of Tidemark has tried name it. A `busy` machine's rounds are accepted.
    """
    folder = home.path / "kinds" / kind.name
    kept = folder / "results.json"
    known = [] if again else _kept(kept, kind.digest)
    if not known:
        shutil.rmtree(folder, ignore_errors=True)
    scratch = Home(folder / "home")
    link_home(home, scratch, keeps_builds=True)
    for number, attempt in enumerate(kind.attempts):
        if number >= len(known):
            known.append(carried_out(kind, attempt, scratch, busy=busy))
            content = {"digest": kind.digest, "results": [asdict(result) for result in known]}
            kept.write_text(json.dumps(content, indent=1), encoding="utf-8")
        yield known[number].figure(kind, number)
    shutil.rmtree(scratch.data, ignore_errors=True)


def _kept(file: Path, digest: str) -> list[AttemptResult]:
    if not file.is_file():
        return []
    content = json.loads(file.read_text(encoding="utf-8"))
    if content.get("digest") != digest:
        return []
    return [AttemptResult(**{**fields, "told": tuple(fields["told"])}) for fields in content["results"]]


def carried_out(kind: PlantedKind, attempt: Attempt, scratch: Home, *, busy: bool) -> AttemptResult:
    """Carry out an attempt in a home, beside the files of kinds.toml, and look at what it told."""
    # Another measurement, or a report, may hold the machine: what it refuses is no answer about the kind.
    words = [*kind.words(attempt), "--wait", "120", *["--keep-disturbed"] * busy]
    done = tidemark(words, scratch, FOLDER)
    uids = list(dict.fromkeys(SESSION.findall(done.printed)))
    sides = [kind.version, kind.contender[attempt.command]]
    where = ["--history", str(scratch.path / HISTORIES[attempt.command])]
    answer, printed = done, done.printed
    if attempt.command is AttemptCommand.RUN and uids:
        compared = tidemark(["compare", *sides, "--session", uids[0], *where], scratch, FOLDER)
        answer = CommandRun(done.minutes + compared.minutes, compared.exit_code, compared.printed)
        printed += compared.printed
    told = _told(sides, uids, where, scratch)
    lacks = missed(attempt, answer.exit_code, answer.printed, told)
    lines = tuple(difference.line for difference in told)
    return AttemptResult(
        " ".join(words), answer.minutes, answer.exit_code, lacks, lines, printed, own_version()
    )


def _told(
    sides: Sequence[str], uids: Sequence[str], where: Sequence[str], home: Home
) -> list[ToldDifference]:
    """Return the differences for the worse of sessions, in JSON by their own metric and by instructions."""
    differences: dict[ToldDifference, None] = {}
    for uid in uids:
        for metric in ([], ["--metric", INSTRUCTIONS]):
            words = ["compare", *sides, "--session", uid, *where, *metric, "--format", "json"]
            done = tidemark(words, home, FOLDER, shows=False)
            if done.printed.startswith("{"):
                differences |= dict.fromkeys(told_worse(_object(done.printed)))
    return list(differences)


def _object(text: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(text)
    return content
