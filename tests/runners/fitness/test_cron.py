"""Tables of cron: fields against the numbers they were written from, days, and what is no job."""

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runners.fitness.cron import DAYS, MONTHS, NICKNAMES, CronJob, jobs, values

BOUNDS = [(0, 59), (0, 23), (1, 31), (1, 12), (0, 7)]


@st.composite
def fields(draw: st.DrawFn) -> tuple[int, str, set[int]]:
    """Place of a field, its text, and the numbers that it means."""
    place = draw(st.integers(0, 4))
    least, most = BOUNDS[place]
    parts, meant = [], set()
    for _ in range(draw(st.integers(1, 4))):
        low = draw(st.integers(least, most))
        high = draw(st.integers(low, most))
        step = draw(st.integers(1, 70))
        kind = draw(st.sampled_from(["number", "range", "stepped", "open", "star", "all"]))
        text, numbers = {
            "number": (f"{low}", {low}),
            "range": (f"{low}-{high}", set(range(low, high + 1))),
            "stepped": (f"{low}-{high}/{step}", set(range(low, high + 1, step))),
            "open": (f"{low}/{step}", set(range(low, most + 1, step))),
            "star": (f"*/{step}", set(range(least, (6 if place == 4 else most) + 1, step))),
            "all": ("*", set(range(least, most + 1))),
        }[kind]
        parts.append(text)
        meant |= numbers
    return place, ",".join(parts), {n % 7 for n in meant} if place == 4 else meant


@given(fields())
def test_a_field_means_its_numbers(field: tuple[int, str, set[int]]) -> None:
    place, text, meant = field
    assert values(text, place) == meant


@given(st.text("0123456789*/-,ajn ", max_size=12), st.integers(0, 4))
def test_any_text_is_a_field_or_none(text: str, place: int) -> None:
    least, most = BOUNDS[place]
    try:
        found = values(text, place)
    except ValueError:
        return
    assert found
    assert all(least <= seconds <= most for seconds in found)


def test_names() -> None:
    assert values("jan,Dec", 3) == {1, 12}
    assert values("mon-fri", 4) == {1, 2, 3, 4, 5}
    assert values("sun", 4) == values("7", 4) == values("0", 4) == {0}
    assert [values(name, 3) for name in MONTHS] == [{n} for n in range(1, 13)]
    assert [values(name, 4) for name in DAYS] == [{n} for n in range(7)]


@pytest.mark.parametrize("text", ["", "60", "-1", "5-1", "*/0", "1/", "/2", "x", "1,,2", "١"])
def test_what_is_no_field(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 # int() raises it too
        values(text, 0)


def one(line: str) -> CronJob:
    (job,) = jobs(line, names_user=False)
    return job


MONDAY = datetime(2026, 3, 2, 1, 0)


@pytest.mark.parametrize(
    ("line", "at"),
    [
        ("30 3 * * * backup", "2026-03-02 03:30"),
        ("0 1 * * * now", None),  # has begun
        ("1 1 * * * soon", "2026-03-02 01:01"),
        ("0 5 * * * at the end", "2026-03-02 05:00"),
        ("1 5 * * * too late", None),
        ("*/15 * * * * often", "2026-03-02 01:15"),
        ("0 2 * * 2 tuesday", None),
        ("0 2 3 * * the third", None),
        ("0 2 3 * 1 the third or a monday", "2026-03-02 02:00"),
        ("0 2 */2 * 1 a star limits both", None),
        ("0 2 2 4 * april", None),
        ("@hourly report", "2026-03-02 02:00"),
        ("@daily report", None),
    ],
)
def test_when_a_job_begins(line: str, at: str | None) -> None:
    found = one(line).first_within(MONDAY, 4)
    assert found == (at and datetime.fromisoformat(at))


@given(st.integers(0, 59), st.integers(0, 23), st.integers(0, 10**6))
def test_a_daily_job_begins_within_a_day(minute: int, hour: int, seconds: int) -> None:
    begin = MONDAY + timedelta(seconds=seconds)
    found = one(f"{minute} {hour} * * * x").first_within(begin, 24)
    assert found is not None
    assert (found.minute, found.hour) == (minute, hour)
    assert timedelta(0) < found - begin <= timedelta(days=1)


def test_lines_that_are_no_jobs() -> None:
    table = """# a comment
SHELL=/bin/sh
PATH = /bin
@reboot root at start

61 * * * * root wrong
* * * * root
5 4 * * sun root weekly  with words
"""
    assert [job.command for job in jobs(table, names_user=True)] == ["weekly  with words"]


words = st.sampled_from(["*", "5", "*/7", "1", "2-4", "61", "root", "٣"])
likely = st.lists(words, min_size=5, max_size=8).map(" ".join)
others = st.sampled_from(["# 1 1 1 1 1 x y", "@daily root x", "@reboot x", "A = b", ""])


@given(st.lists(st.one_of(likely, others, st.text(max_size=40)), max_size=8).map("\n".join), st.booleans())
def test_each_line_of_any_text_is_a_job_that_can_begin_or_none(text: str, names_user: bool) -> None:
    lines = text.splitlines()
    by_line = [list(jobs(line, names_user=names_user)) for line in lines]
    assert list(jobs(text, names_user=names_user)) == [job for line_jobs in by_line for job in line_jobs]
    assert not list(jobs("\n".join(f" #{line}" for line in lines), names_user=names_user))
    for line, line_jobs in zip(lines, by_line, strict=True):
        for job in line_jobs:
            assert job.command
            assert line.rstrip().endswith(job.command)
            fields = (job.minutes, job.hours, job.days, job.months, job.weekdays)
            for numbers, (least, most) in zip(fields, BOUNDS, strict=True):
                assert numbers
                assert all(least <= number <= most for number in numbers)


def test_all_nicknames_are_jobs() -> None:
    assert all(one(f"{name} x").command == "x" for name in NICKNAMES)
