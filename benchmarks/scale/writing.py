"""Twenty boxes that record as fast as they can; one judges, compares, reports and copies beside them."""

import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from benchmarks.output.figures import Figure
from benchmarks.scale.sessions import VERSIONS, RecordedRound, differences
from benchmarks.scale.stand import WriterBox, new_server
from build.progress import Silent
from build.version import parse_version
from history.backups.backup import back_up
from history.changes.detector import judge
from history.comparison.compare import compare
from history.comparison.options import CompareOptions
from history.open import open_reader, open_store
from report.writing.site import SiteOptions, write_site

BOXES = 20
PAUSE_SECONDS = 10.0
"""Between two looks of the one beside them."""

RECORDING_SECONDS = 600.0
MEDIAN_SECONDS, WORST_SECONDS, ROUNDS_PER_SECOND = 0.05, 1.0, 100.0


def writing_figures(seconds: float = RECORDING_SECONDS) -> Iterator[Figure]:
    """Yield how fast rounds are recorded for so many seconds, and whether all arrived."""
    with new_server() as (server, folder):
        boxes = [WriterBox(folder, number, server.url) for number in range(BOXES)]
        for box in boxes:
            box.start(seconds)
        looked = _look_beside(server.url, time.monotonic() + seconds, folder)
        recordings = [box.ended() for box in boxes]
        taken = [duration for recording in recordings for duration in recording.taken]
        elapsed = max(writer.ended for writer in recordings) - min(writer.began for writer in recordings)
        problems = [problem for box in boxes for problem in box.deliver()]
        told: Counter[RecordedRound] = sum((box.logged()[1] for box in boxes), Counter())
        wrong = differences(server.url, told)
    yield Figure("rounds lost, doubled or half", len(wrong), "", at_most=0, note="; ".join(wrong[:3]))
    yield Figure("problems of the boxes", len(problems), "", at_most=0, note="; ".join(problems[:1]))
    yield Figure(
        "recording a round, median", median(taken), "s", at_most=MEDIAN_SECONDS, note=f"{len(taken)} rounds"
    )
    yield Figure("recording a round, worst", max(taken), "s", at_most=WORST_SECONDS)
    yield Figure(
        "rounds in all, until delivered",
        len(taken) / elapsed,
        "/s",
        at_least=ROUNDS_PER_SECOND,
        note=f"{BOXES} boxes, {elapsed:.0f} s",
    )
    yield Figure("judged, compared and reported beside them", looked, "times", at_least=1)


def _look_beside(url: str, until: float, folder: Path) -> int:
    """Judge, compare and renew the report again and again until a time, and copy once; return how often."""
    base, contender = map(parse_version, VERSIONS)
    number = 0
    with open_store(url) as store:
        while store.latest_session([base, contender]) is None:
            time.sleep(1.0)
    while not number or time.monotonic() + PAUSE_SECONDS < until:
        time.sleep(min(PAUSE_SECONDS, max(0.0, until - time.monotonic()) / 2))
        with open_store(url) as store:
            judge(store.database)
            compare(store, base, [contender], CompareOptions())
        with open_reader(url) as reader:
            write_site(reader, SiteOptions(folder / "report"), Silent())
        if not number:
            with tempfile.TemporaryDirectory(dir=folder) as copies:
                back_up(url, Path(copies) / "backup.db")
        number += 1
    return number
