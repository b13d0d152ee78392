"""Files of other programs, read together: those of one run are joined, and results are numbered as rounds."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from sqlalchemy import Connection

from history.counts import counted
from history.transfer.foreign.document import Document
from history.transfer.foreign.formats import HEADLESS_QPS, ForeignFormat
from history.transfer.foreign.otava import OTAVA
from history.transfer.foreign.results import ToolFormat, known_rounds, numbered
from history.transfer.foreign.values import Given, Location, Occasion, Value, refuse
from history.transfer.row_source import TransferError

NAMED_STEPS = 4
"""The steps of a file that a note names."""


NAMED_FILES = 3
"""The files of a session that a note names; of more it gives the number."""


@dataclass
class Incoming:
    """What the files of a command hold."""

    values: list[Value] = field(default_factory=list)
    results: list[tuple[Value, ...]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    files: dict[Occasion, list[str]] = field(default_factory=dict)
    """The files that hold something of an occasion."""

    def numbered(self, connection: Connection) -> list[Value]:
        """Return all values, with the numbers of rounds that results take in a history."""
        return [*self.values, *numbered(self.results, known_rounds(connection, self.results))]


def read_files(files: Sequence[tuple[Document, ForeignFormat]], given: Given) -> Incoming:
    """Read files whose formats are known. Raises TransferError."""
    if given.columns and not any(known is HEADLESS_QPS for _, known in files):
        raise TransferError(
            "--columns is for tables without a head", hint="leave it out: the tables name their columns"
        )
    if given.metrics and not any(known is OTAVA for _, known in files):
        raise TransferError(
            "--metric is for the CSV of Otava, whose columns have names of their own",
            hint="leave it out: the files say what they hold",
        )
    incoming = Incoming()
    versions = dict(zip((document for document, _ in files), _versions(given, len(files)), strict=False))
    runs: list[tuple[Value, ...]] = []
    for known, documents in _runs(files, incoming.notes):
        version = _common_version([versions[document] for document in documents], documents)
        read = known.values(documents, replace(given, version=version))
        found = [*read.values, *(value for result in read.results for value in result)]
        if not found:
            what = "; ".join([f"this is {known.name}, and holds no value that can be taken", *read.notes])
            hint = f"what is accepted looks like this:\n{known.example}"
            raise refuse(Location(documents[0].name, "the whole file"), what, hint)
        incoming.values += read.values
        incoming.results += read.results
        if isinstance(known, ToolFormat) and not known.is_series:
            runs += read.results
        incoming.notes += [*_read_text(known, documents, read.results), *read.notes]
        for occasion in dict.fromkeys(value.occasion for value in found):
            names = incoming.files.setdefault(occasion, [])
            names += [str(document.path) for document in documents]
    incoming.notes += _times_text(runs)
    return incoming


def _versions(given: Given, files: int) -> Sequence[str | None]:
    """The version of each file. Raises TransferError for several versions that are not one for each file."""
    if given.version is None:
        return [None] * files
    versions = [version.strip() for version in given.version.split(",")]
    if len(versions) not in (1, files):
        raise TransferError(
            f"--version names {len(versions)} versions, and there are {files} files",
            hint="name one version, or one for each file in their order, separated by commas",
        )
    return versions * files if len(versions) == 1 else versions


def _common_version(versions: Sequence[str | None], documents: Sequence[Document]) -> str | None:
    if len(set(versions)) > 1:
        names = ", ".join(document.name for document in documents)
        raise TransferError(
            f"--version names several versions for the files of one run: {names}",
            hint="name the same for each",
        )
    return versions[0]


Run = tuple[ForeignFormat, list[Document]]


def _runs(files: Iterable[tuple[Document, ForeignFormat]], notes: list[str]) -> list[Run]:
    """The files of each run, in their order; a file that is there twice is left out."""
    runs: dict[object, Run] = {}
    first: dict[str, str] = {}
    for document, known in files:
        there = first.setdefault(document.digest, str(document.path))
        if there != str(document.path) or any(document in run for _, run in runs.values()):
            notes.append(f"{document.path}: left out, because it has the same content as {there}")
            continue
        run_of = known.run_of if isinstance(known, ToolFormat) else None
        key = (document.path.parent, run_of(document.plain_name)) if run_of else document
        runs.setdefault(key, (known, []))[1].append(document)
    return list(runs.values())


def _read_text(
    known: ForeignFormat, documents: Sequence[Document], results: Sequence[Sequence[Value]]
) -> Iterator[str]:
    """Say what the files of a run were taken for, and what is in them."""
    if results:
        names = ", ".join(document.name for document in documents)
        steps = [*dict.fromkeys(value.step for result in results for value in result)]
        versions = dict.fromkeys(value.version for result in results for value in result)
        more = f" and {len(steps) - NAMED_STEPS} more" if len(steps) > NAMED_STEPS else ""
        yield (
            f"{names}: {known.name}, {counted(len(results), 'result')} of {', '.join(versions)}: "
            f"{', '.join(steps[:NAMED_STEPS])}{more}"
        )


def _times_text(results: Iterable[Sequence[Value]]) -> Iterator[str]:
    """Say that versions will not be compared, because the times in files make them several sessions."""
    by_place: defaultdict[tuple[str, str, str], dict[datetime, set[str]]] = defaultdict(dict)
    for first, *_ in results:
        occasion = first.occasion
        times = by_place[occasion.machine, occasion.suite, occasion.profile]
        times.setdefault(occasion.when, set()).add(first.version)
    for (machine, suite, _), times in by_place.items():
        if len(times) > 1 and len(set.union(*times.values())) > 1:
            yield (
                f"machine {machine}, suite {suite}: the files are of {len(times)} times, and so {len(times)} "
                "sessions, whose versions are not compared with each other; --when DATE makes them one"
            )


def joined_text(files: Mapping[Occasion, Sequence[str]]) -> list[str]:
    """Say which files make up one session: whether they are of one machine is for people to see."""
    return [
        f"{', '.join(names) if len(names) <= NAMED_FILES else f'{len(names)} files'}: one session, machine "
        f"{occasion.machine}, suite {occasion.suite}, {occasion.when:%Y-%m-%d}"
        for occasion, names in files.items()
        if len(names) > 1
    ]
