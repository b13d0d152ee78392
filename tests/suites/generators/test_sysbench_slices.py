"""sysbench on servers that take turns: its command lines, and reading what it says of its slices."""

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from build.version import Engine
from suites.definition import load_suite
from suites.generators import sysbench
from suites.generators.load import LoadError, Share
from suites.generators.sysbench import Sysbench, walk_from
from suites.generators.transcript import Slice, seconds_in, seconds_of
from suites.server import Address
from suites.sizing import WalkedRows
from suites.slices import Schedule
from tests.suites.generators.test_sysbench import CAPTURE, transcript
from tests.suites.golden import lines, require_golden
from tests.suites.servers import small

SLICES = "sysbench-slices.txt"
SUITE = load_suite("write-heavy")
SCHEDULE = Schedule(0.5, (0, 1, 0, 1, 1, 0), warming=2)
ADDRESSES = [Address(Engine.POSTGRES, Path(f"/srv/{n}/.s.PGSQL.5432"), "someone", "it") for n in (1, 2)]


# --- a whole report


def test_a_real_report() -> None:
    load = transcript(*lines(SLICES)).load()
    require_golden("sysbench-slices.json", json.dumps(asdict(load), indent=1) + "\n")


def test_the_numbers_of_a_real_report_agree_with_each_other() -> None:
    read = transcript(*lines(SLICES))
    load = read.load()
    assert load.transactions == int(read.summary["transactions"]) == sum(read.counts)
    assert read.warming > 10_000
    assert load.queries == pytest.approx(6 * load.transactions, rel=1e-3), "write-only has six queries"
    assert load.watched_queries == pytest.approx(6 * (load.transactions + read.warming), rel=1e-3)
    assert load.errors == 1
    # Two slices of 1.2 s less their gap, of which one whole second each has a rate.
    assert load.seconds == pytest.approx(2 * 1.18, abs=0.01)
    assert len(load.per_second) == 2
    assert sum(load.per_second) / 2 == pytest.approx(load.queries / load.seconds, rel=0.05)
    assert load.watched_seconds == pytest.approx(3 * 1.2 + 1.18, abs=0.01), "from the first slice on"
    assert {part.place for part in read.slices} == {2, 3}
    assert load.latency_ms["p99"] < 10


def test_a_report_without_its_slices_is_one_of_a_server_that_never_waited() -> None:
    read = [line for line in lines(SLICES) if "slice" not in line and "warm-up" not in line]
    assert transcript(*read).load().seconds == pytest.approx(7.2, abs=0.01)


def test_a_slice_in_which_nothing_was_done() -> None:
    """A server that stood still, or whose work limit was reached before."""
    idle = "tidemark: slice 4 of thread 0 from 14950.000000 to 14950.000000: "
    load, without = transcript(idle, *lines(SLICES)).load(), transcript(*lines(SLICES)).load()
    assert replace(load, watched_seconds=0.0, progress=()) == replace(
        without, watched_seconds=0.0, progress=()
    )
    assert load.progress[-1] == (14950.0, without.progress[-1][1])


def test_progress_counts_the_queries_of_the_warm_up() -> None:
    load = transcript(*lines(SLICES)).load()
    assert load.progress[0][1] == 0
    assert load.progress[-1][1] == pytest.approx(load.watched_queries)
    assert len(load.progress) == 2 * 3
    assert [*load.progress] == sorted(load.progress)


# --- what threads did in a slice

counts = st.lists(st.integers(0, 1000), max_size=6)
begins = st.floats(1000, 1000.5)


@st.composite
def a_slice(draw: st.DrawFn) -> Slice:
    """As the script prints it: the last second ends with the last transaction."""
    per_second, began = draw(counts), draw(begins)
    ended = began + max(0, len(per_second) - 1) + draw(st.floats(0.001, 0.999)) * bool(per_second)
    return Slice(1, began, ended, tuple(per_second))


def rates_of(slices: Sequence[Sequence[Slice]]) -> list[float]:
    return [second.rate for second in seconds_in(slices, {}) if second.rate is not None]


@given(st.lists(a_slice(), min_size=1, max_size=4))
def test_rates_hold_every_transaction_of_the_whole_seconds(threads: list[Slice]) -> None:
    length, rates = seconds_of(threads), rates_of([threads])
    total = sum(sum(thread.per_second) for thread in threads)
    assume(length > 0.01)
    if length < 1:
        assert len(rates) == 1
        assert rates[0] * length == pytest.approx(total)
        return
    whole, rest = int(length), length - int(length)
    assert len(rates) == whole + (rest >= 0.5)
    last = sum(sum(thread.per_second[whole:]) for thread in threads)
    assert sum(rates[:whole]) + last == total
    if rest >= 0.5:
        assert rates[whole] * rest == pytest.approx(
            sum(sum(thread.per_second[whole:][:1]) for thread in threads)
        )


def test_two_hours_in_slices_of_a_minute_keep_all_their_seconds() -> None:
    """As in profile long, whose slices end a gap before their last second is over."""
    slices = [[Slice(place, 120 * place, 120 * place + 59.985, (50,) * 60)] for place in range(120)]
    assert len(rates_of(slices)) == 7200
    assert sum(rates_of(slices)) == pytest.approx(7200 * 50, rel=0.001)


@given(
    st.lists(st.integers(0, 1000), min_size=1, max_size=200),
    st.floats(0.02, 0.9),
)
def test_short_slices_are_joined_to_seconds(counts: list[int], length: float) -> None:
    slices = [[Slice(place, place, place + length, (count,))] for place, count in enumerate(counts, start=1)]
    rates = rates_of(slices)
    exactly = 1 / length - 0.5
    assume(abs(exactly - round(exactly)) > 1e-6)  # either number of slices is as near to a second
    together = max(1, math.ceil(exactly))
    for place, rate in enumerate(rates[: len(counts) // together]):
        group = counts[place * together : (place + 1) * together]
        assert rate == pytest.approx(sum(group) / (together * length), rel=1e-6)
    rest = len(counts) % together * length
    assert len(rates) - len(counts) // together == (rest >= 0.5 or len(counts) < together)


@given(st.lists(a_slice(), min_size=1, max_size=4))
def test_a_slice_is_as_long_as_its_threads_together(threads: list[Slice]) -> None:
    assert seconds_of(threads) >= max(thread.ended - thread.began for thread in threads)
    assert seconds_of(threads) <= sum(thread.ended - thread.began for thread in threads) + 0.5


def said(thread: int, place: int, kind: str, part: Slice) -> str:
    per_second = " ".join(map(str, part.per_second))
    return (
        f"tidemark: {kind} {place} of thread {thread} from {part.began:.6f} to {part.ended:.6f}: {per_second}"
    )


@pytest.mark.deep("simulates many rounds, or waits for real processes")
@given(
    st.lists(st.tuples(a_slice(), a_slice()), min_size=1, max_size=6), st.integers(0, 3), st.integers(1, 20)
)
def test_a_load_holds_what_its_slices_hold(
    slices: list[tuple[Slice, Slice]], warm: int, queries: int
) -> None:
    """For two threads: the totals are kept, and what warmed up is only among what was watched."""
    kinds = ["warm-up" if place < warm else "slice" for place in range(len(slices))]
    report = [
        said(thread, place + 1, kinds[place], part)
        for place, threads in enumerate(slices)
        for thread, part in enumerate(threads)
    ]
    counted = sum(sum(part.per_second) for both in slices[warm:] for part in both)
    warmed = sum(sum(part.per_second) for both in slices[:warm] for part in both)
    assume(counted > 0)
    summary = [
        f"    transactions: {counted} (1 per sec.)",
        f"    queries: {(counted + warmed) * queries} (1 per sec.)",
        "    total time: 60.0s",
        "    avg: 1.0",
        "    max: 2.0",
    ]
    load = transcript(*report, *summary).load()
    assert load.transactions == counted
    assert load.queries == pytest.approx(counted * queries)
    assert load.watched_queries == (counted + warmed) * queries
    assert load.seconds == pytest.approx(sum(map(seconds_of, slices[warm:])), abs=1e-4)
    assert sum(load.per_second) >= 0


# --- several at once


class Noting:
    """An observer that notes when it is told something, after how many lines."""

    def __init__(self) -> None:
        self.told: list[tuple[str, int]] = []

    def begin(self, pid: int) -> None:
        self.told.append(("begin", pid))

    def end(self, pid: int) -> None:
        self.told.append(("end", pid))


def alternating(monkeypatch: pytest.MonkeyPatch, reports: Sequence[Sequence[str]]) -> list[Noting]:
    """What the observers are told when programs of two threads print `reports`, line by line in turns."""

    def interleaved(*_: object, **__: object) -> Iterator[tuple[int, int, str]]:
        for number in range(max(map(len, reports))):
            for place, report in enumerate(reports):
                if number < len(report):
                    yield place, 1000 * (place + 1) + number, report[number]

    monkeypatch.setattr(sysbench, "lines_of_all", interleaved)
    observers = [Noting() for _ in reports]
    generator = Sysbench(SUITE, small(threads=2))
    generator.alternate(ADDRESSES[: len(reports)], SUITE.steps[0], Share(SCHEDULE, 1), observers)
    return observers


def test_each_observer_is_told_once_when_its_server_begins_and_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = lines(SLICES)
    ended = [place for place, line in enumerate(whole) if line.startswith("tidemark: thread")]
    started = whole.index("Threads started!")
    observers = alternating(monkeypatch, [whole, ["", *whole]])
    assert observers[0].told == [("begin", 1000 + started), ("end", 1000 + ended[-1])]
    assert observers[1].told == [("begin", 2001 + started), ("end", 2001 + ended[-1])]


@pytest.mark.parametrize("place", [0, 1])
def test_a_report_that_is_not_whole_is_blamed_on_its_server(
    monkeypatch: pytest.MonkeyPatch, place: int
) -> None:
    reports = [lines(SLICES), lines(SLICES)]
    reports[place] = lines(SLICES)[:20]
    with pytest.raises(LoadError, match="is incomplete") as caught:
        alternating(monkeypatch, reports)
    assert caught.value.place == place


# --- the command line


def words(place: int, share: Share, rows: int = 5000, tables: int = 2, threads: int = 3) -> list[str]:
    generator = Sysbench(SUITE, small(rows=rows, tables=tables, threads=threads))
    (step,) = SUITE.select(("read-write-10",))
    return generator.arguments_of_turns(ADDRESSES[place], step, share, place, 1234.5678901)


def test_the_command_line_says_everything_that_a_turn_depends_on() -> None:
    said = words(1, Share(SCHEDULE, 4, 123))
    assert said[-1] == "run"
    assert set(said) >= {
        "--pgsql-host=/srv/2",
        "--tables=2",
        "--table_size=5000",
        "--threads=3",
        "--rand-seed=20260147",  # the suite's, the step's place, and ten for each round
        "--events=123",
        "--slices=0w0110",
        "--slice_origin=1234.567890",
        "--slice_ms=500",
        "--slice_gap_ms=20",
        "--walk_from=0",
        "--linger_ms=2000",
        "--workload=read-write",
        "--range_size=10",
    }
    (limit,) = [int(word.removeprefix("--time=")) for word in said if word.startswith("--time=")]
    assert limit > 2 * SCHEDULE.seconds


def test_all_servers_of_a_round_draw_the_same_and_each_round_anew() -> None:
    def seed(place: int, number: int) -> str:
        return next(word for word in words(place, Share(SCHEDULE, number)) if "seed" in word)

    assert seed(0, 1) == seed(1, 1)
    assert len({seed(0, number) for number in range(1, 50)}) == 49
    assert "--events=0" in words(0, Share(SCHEDULE, 1))


# --- where a walk of the delete step goes on


def begin(rows: int, tables: int, threads: int, done: int, more: int) -> int:
    return walk_from(Share(SCHEDULE, 2, more, done), threads, WalkedRows(tables, rows))


def test_one_walk_goes_on_exactly_where_it_ended() -> None:
    assert begin(5000, 1, 1, 0, 100) == 0
    assert begin(5000, 1, 1, 1234, 100) == 1234


def test_walks_of_many_tables_go_on_past_what_chance_may_have_done() -> None:
    """1000 deletes in 4 tables: 250 each, with a standard deviation of sqrt(1000 / 4 * 3 / 4) = 13.7."""
    assert begin(50_000, 4, 1, 1000, 100) == math.ceil(250 + 4 * math.sqrt(187.5))
    assert begin(50_000, 1, 4, 1000, 100) >= 1.25 * 250
    assert begin(50_000, 2, 1, 3, 100) == 3, "no walk has come further than all deletes together"


@given(
    st.integers(1, 10**6), st.integers(1, 8), st.integers(1, 40), st.integers(0, 10**6), st.integers(0, 10**5)
)
def test_a_walk_never_begins_so_late_that_it_would_meet_its_first_rows_again(
    rows: int, tables: int, threads: int, done: int, more: int
) -> None:
    first = begin(rows, tables, threads, done, more)
    expected = more / (tables * threads)
    assert first >= 0
    assert first <= done
    assert first == 0 or first + expected <= rows // threads


@given(st.integers(1, 8), st.integers(1, 40), st.integers(1, 10**5))
def test_half_of_the_rows_leaves_room_for_the_slack(tables: int, threads: int, share: int) -> None:
    """The delete step's own limit: every block begins past the expected end of the one before."""
    rows = threads * 2000
    done = min(share, rows * tables * 2 // 5)
    assert begin(rows, tables, threads, done, rows * tables // 20) >= done // (tables * threads)


def test_the_capture_of_one_server_alone_has_no_slices() -> None:
    assert not transcript(*lines(CAPTURE)).slices


# --- the slowest transaction of each second


def test_the_slowest_of_short_slices_are_those_of_a_second() -> None:
    """Twenty slices of a twentieth of a second are a second; a stall makes its slice longer."""
    short = [[Slice(place, place, place + 0.05, (9,))] for place in range(1, 46)]
    longest = dict.fromkeys(range(1, 46), (1.0,)) | {20: (40.0,), 21: (250.0,), 45: (30.0,)}
    assert [second.slowest_ms for second in seconds_in(short, longest)] == [40, 250, 30]
    assert {second.slowest_ms for second in seconds_in(short, {})} == {None}


def test_the_slowest_of_long_slices_are_of_all_threads() -> None:
    read = transcript(
        *(line for line in lines(SLICES) if "thread" not in line or "slice" in line or "warm-up" in line),
        "tidemark: longest in slice 2 of thread 0: 4.500 0.200",
        "tidemark: longest in slice 2 of thread 1: 3.000 260.125",
        "tidemark: longest in slice 3 of thread 1: 7.000",
    )
    assert read.load().longest_ms == (4.5, 260.125, 7.0)
