"""Logs of HammerDB's TPROC-C, with a line for each test:

Vuser 1:TEST RESULT : System achieved 12000 NOPM from 27600 PostgreSQL TPM

Before HammerDB 4 the line is `System achieved 27600 PostgreSQL TPM at 12000 NOPM`. NOPM are new orders, and
TPM what the server counts as transactions, both per minute; they become steps of their own.
"""

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from build.engines import ENGINES
from history.transfer.foreign.document import Document
from history.transfer.foreign.results import LinesAbove, Result, ToolFormat, aborted
from history.transfer.foreign.values import Given, Location, refuse
from suites.metric_names import TPS

_RESULT = re.compile(
    r"System achieved (?:(\d{1,12}) NOPM from (\d{1,12}) (.+?) TPM|(\d{1,12}) (.+?) TPM at (\d{1,12}) NOPM)"
)
_USERS = re.compile(r"(\d{1,5}) Active Virtual Users configured")
_ABORTED = re.compile(r"Vuser \d+:FINISHED FAILED|Error in Virtual User \d+")
_OTHER_LINES = re.compile(
    r"(?!.*DBVersion:|Changed connection:)"  # these say which server it is
    r"(?:.*Vuser \d|Hammerdb Log|HammerDB|\W*$|Timestamp |.* tpm$|VU \d|Virtual|ALL VIRTUAL|Logging|Script "
    r"|Loading|Clearing|Changed |Value |Copyright|Type |The xml|Database set|Benchmark set|Initialized)"
)
_DATE = re.compile(r"Hammerdb Log @ \w+ (\w+) +(\d+) (\d+:\d+:\d+) (\w+) (\d{4})")
_ENGINES = {description.product: engine for engine, description in ENGINES.items()}
_STEP = "TPROC-C"
_SECONDS = 60


def _recognises(document: Document) -> bool:
    marks = ("Hammerdb Log @", "HammerDB", "Vuser 1:", "TEST RESULT : System achieved")
    return any(mark in document.head for mark in marks)


def _read(documents: Sequence[Document], given: Given, notes: list[str]) -> Iterator[Result]:
    (document,) = documents
    users, when, seen, above = None, None, False, LinesAbove()
    for number, line in document.lines():
        if _ABORTED.search(line):
            raise aborted(document.place(number), line[:80])
        if match := _DATE.search(line):
            when = _moment(match)
        elif match := _USERS.search(line):
            users = int(match[1])
        elif match := _RESULT.search(line):
            seen = True
            for name, rate in _rates(match, document.place(number), given, notes):
                step = f"{given.step or _STEP} {name}"
                values = {TPS: rate / _SECONDS}
                yield Result(values, document.place(number), step, users, when=when, below=above.now)
        elif not _OTHER_LINES.match(line):
            above.add(line)
    if not seen:
        notes.append("it has no line 'TEST RESULT : System achieved N NOPM from N PostgreSQL TPM'")


def _rates(
    match: re.Match[str], place: Location, given: Given, notes: list[str]
) -> Sequence[tuple[str, int]]:
    """NOPM and TPM of a result; nothing of an engine that is not measured here."""
    nopm, tpm, server = (match[1], match[2], match[3]) if match[1] else (match[6], match[4], match[5])
    engine = _ENGINES.get(server)
    if engine is None:
        notes.append(f"{place}: a result of {server} is left out: this Tidemark does not measure it")
        return ()
    if given.version and "@" in given.version and not given.version.startswith(f"{engine}@"):
        what = f"it is a result of {server}, and --version says {given.version}"
        raise refuse(place, what, f"name a version of {server}: --version {engine}@RELEASE")
    return ("NOPM", int(nopm)), ("TPM", int(tpm))


def _moment(match: re.Match[str]) -> datetime | None:
    """The time of a log, or its day if its time zone is none that has one meaning."""
    month, day, time, zone, year = match.groups()
    time = time if zone in {"UTC", "GMT"} else "00:00:00"
    try:
        return datetime.strptime(f"{month} {day} {year} {time}", "%b %d %Y %H:%M:%S").replace(tzinfo=UTC)
    except ValueError:
        return None


HAMMERDB = ToolFormat(
    "a log of HammerDB",
    "hammerdb",
    _recognises,
    _read,
    """Vuser 1:8 Active Virtual Users configured
Vuser 1:TEST RESULT : System achieved 12000 NOPM from 27600 PostgreSQL TPM""",
)
