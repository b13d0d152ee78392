"""A history of one session: two releases, of which the newer one is slower in two of four steps."""

from dataclasses import replace
from pathlib import Path

from history.open import open_store
from tests.history.handmade import NIGHT, record_steps, session_start

BASE, NEW = "postgres@17.11", "postgres@18.6"
ROUNDS = 6
FACTORS = {"insert": 0.9, "delete": 0.95, "update-one": 1.0, "update-index": 1.0}


def record_single(path: Path) -> None:
    """Write the history."""
    drift = (0.0, 4.0, -3.0, 2.0, -5.0, 1.0)
    steps = {
        step: {
            BASE: [1000.0 + moved for moved in drift],
            NEW: [factor * (1000.0 + moved) + moved / 9 for moved in drift],
        }
        for step, factor in FACTORS.items()
    }
    with open_store(path, clock=lambda: NIGHT) as store:
        record_steps(store, replace(session_start("only"), repetitions=ROUNDS), steps)
