"""Numbers and times as people write them: what has one meaning is read, and what has two is refused."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from history.transfer.foreign.cells import number_of, time_of


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1234.5", 1234.5),
        ("1234,5", 1234.5),
        ("1,234.5", 1234.5),
        ("1.234,5", 1234.5),
        ("-1,234,567", -1234567),
        ("1.234.567", 1234567),
        ("1,234,567.25", 1234567.25),
        ("0,125", 0.125),
        ("1234,567", 1234.567),
        ("1.234", 1.234),
        ("1e3", 1000),
    ],
)
def test_numbers(text: str, number: float) -> None:
    assert number_of(text) == pytest.approx(number)


@pytest.mark.parametrize("text", ["", "fast", "nan", "1_000", "1,234", "1,23,456", "1.2.3", "1,2.5", "1e999"])
def test_what_is_no_number_or_two(text: str) -> None:
    with pytest.raises(ValueError, match=r"number|thousands"):
        number_of(text)


@given(st.floats(-1e15, 1e15), st.integers(4, 6))
def test_a_number_is_the_same_in_either_notation(value: float, places: int) -> None:
    english = f"{value:,.{places}f}"
    german = english.translate({ord(","): ".", ord("."): ","})
    assert number_of(english) == number_of(german) == float(f"{value:.{places}f}")


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026.01.01 3:00:00 +0100", datetime(2026, 1, 1, 2, tzinfo=UTC)),
        ("2026/1/2", datetime(2026, 1, 2, tzinfo=UTC)),
        ("1766000000", datetime(2025, 12, 17, 19, 33, 20, tzinfo=UTC)),
        ("1766000000000", datetime(2025, 12, 17, 19, 33, 20, tzinfo=UTC)),
        ("20251105", datetime(2025, 11, 5, tzinfo=UTC)),
        ("2025-11", datetime(2025, 11, 1, tzinfo=UTC)),
    ],
)
def test_times(text: str, moment: datetime) -> None:
    assert time_of(text) == moment


@pytest.mark.parametrize(
    "text", ["05/11/2025", "5.11.2025 03:00", "2025", "insert", "2026.13.01", "-1766000000"]
)
def test_what_is_no_time_or_two(text: str) -> None:
    with pytest.raises(ValueError, match=r"date|month"):
        time_of(text)
