"""Nights by hand: sessions of a base and a contender, one a day."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta

from history.open import open_store
from history.store.records import SessionStatus
from history.store.writer import Store
from tests.history.conftest import Target
from tests.history.handmade import NIGHT, record_steps, session_start

BASE, NEW = "postgres@17.11", "postgres@REL_18_STABLE"
GROUPS = {"update-index": "updates", "update-one": "updates", "insert": "churn"}


class Calendar:
    """A clock that stands where it was put."""

    def __init__(self, moment: datetime = NIGHT) -> None:
        self.moment = moment

    def __call__(self) -> datetime:
        return self.moment

    def next_day(self) -> None:
        """Go on by a day."""
        self.moment += timedelta(days=1)


@contextmanager
def opened(target: Target, clock: Calendar) -> Iterator[Store]:
    with open_store(target, clock=clock) as store:
        yield store


def record_nights(
    store: Store,
    clock: Calendar,
    ratios: Sequence[float],
    *,
    steps: Sequence[str] = ("update-index", "update-one", "insert"),
    base: str = BASE,
    new: str = NEW,
    box: str = "db1",
    moved: Mapping[str, float] | None = None,
) -> None:
    """One session a day; in night n every step of `new` is ratios[n] times as fast; 0 is a failure.

    The base itself is as fast as the night is: another night has another speed. `moved` are factors of steps.
    """
    for ratio in ratios:
        clock.next_day()
        speed = 1000 + 137 * (clock.moment.day % 7)
        start = session_start(f"{box}-{base}-{clock.moment:%m%d}")
        start = replace(
            start,
            machine=replace(start.machine, hostname=box, fingerprint=f"of {box}"),
            options={"versions": [base, new], "groups": GROUPS},
        )
        rates = {
            step: {
                base: [speed * factor for factor in (1.0, 1.01, 0.99)],
                new: [speed * ratio * (moved or {}).get(step, 1.0) * factor for factor in (1.0, 1.01, 0.99)],
            }
            for step in steps
        }
        record_steps(store, start, rates, SessionStatus.FINISHED)
