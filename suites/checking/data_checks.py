"""Asking the checks of a suite, and the error that says what they found."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from build.errors import TidemarkError
from suites.checking.queries import QueryError, connected
from suites.keys.check import CheckOccasion, DataCheck
from suites.server import Address

SHOWN_ROWS = 5
"""The rows of what a check found that its error shows."""

SHOWN_CHARACTERS = 60
"""The most of one value that it shows."""


class DataError(TidemarkError):
    """The data are not as a check says that they must be."""


@dataclass(frozen=True)
class DataChecks:
    """The checks of a suite in one profile."""

    checks: Sequence[DataCheck]
    profile: str
    rows: Mapping[str, int] = field(default_factory=dict)
    """The loaded rows by table, in a suite with a scale."""

    def require(
        self,
        address: Address,
        occasion: CheckOccasion,
        step: str | None = None,
        committed: Mapping[str, int] | None = None,
    ) -> float | None:
        """Ask every check that applies; return the seconds that this took, None if there is no check.

        `step` is the plain name of the step that was measured, `committed` the transactions by kind that
        clients saw committed since the data were loaded. Raises DataError with everything that was found.
        """
        asked = [
            check for check in self.checks if check.applies(occasion, address.engine, self.profile, step)
        ]
        if not asked:
            return None
        began = time.monotonic()
        wrong = [found for check in asked if (found := finding(address, check, committed or {}, self.rows))]
        if wrong:
            raise DataError(
                "the data are not as they must be: " + "; ".join(wrong),
                hint="a transaction was lost, doubled or done by halves: no figure of this step can be used",
            )
        return time.monotonic() - began


def finding(address: Address, check: DataCheck, committed: Mapping[str, int], rows: Mapping[str, int]) -> str:
    """Return what a check found, in words; empty if nothing is wrong."""
    try:
        with connected(address) as connection, connection.cursor() as cursor:
            cursor.execute(check.text(committed, rows))
            found = cursor.fetchmany(SHOWN_ROWS + 1)
            names = [column[0] for column in cursor.description or ()]
    except QueryError as error:
        return f"check {check.name} cannot be asked: {error.what}"
    if not found or (len(found) == 1 and len(found[0]) == 1 and found[0][0] == 0):
        return ""
    shown = "; ".join(_in_words(names, row) for row in found[:SHOWN_ROWS])
    more = "; and more" if len(found) > SHOWN_ROWS else ""
    return f"check {check.name} ({check.title}) found {shown}{more}"


def _in_words(names: Sequence[str], row: Sequence[Any]) -> str:
    return ", ".join(f"{name} {_shortened(value)}" for name, value in zip(names, row, strict=True))


def _shortened(value: Any) -> str:
    text = " ".join(str(value).split())
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}…"
