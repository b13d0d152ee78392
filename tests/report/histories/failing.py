"""A history of two boxes, on one of which nothing could be measured in the last five nights."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from history.open import open_store
from tests.history.handmade import MACHINE, NIGHT, record_steps, session_start

BASE, NEW = "postgres@17.11", "postgres@REL_18_STABLE"
GOOD, BLIND = 30, 5
"""The nights of each box, and the last nights of `db1` in which no server started."""

REASON = "the server did not start: no space left on device"


def record_failing(path: Path) -> None:
    """Write the history; in its last nights every server of `db1` fails, the base's too."""
    for number in range(1, GOOD + BLIND + 1):
        _night(path, number, "db1", fails=number > GOOD)
        _night(path, number, "db2", fails=False)


def _night(path: Path, number: int, box: str, *, fails: bool) -> None:
    moment = NIGHT + timedelta(days=number, minutes=30 * (box == "db2"))
    rates = {
        step: {
            BASE: [0.0 if fails else 1000.0 + number % 7] * 3,
            NEW: [0.0 if fails else 1001.0 + number % 5] * 3,
        }
        for step in ("insert", "delete")
    }
    machine = replace(MACHINE, hostname=box, fingerprint=f"f-{box}")
    with open_store(path, clock=lambda: moment) as store:
        start = replace(session_start(f"{box}-{number:02}"), machine=machine, command="./tidemark nightly")
        record_steps(store, start, rates, failure=REASON)
