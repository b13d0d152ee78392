"""On what a comparison was measured, and what therefore cannot be seen: in at most two lines."""

import textwrap
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from build.version import parse_version
from history.comparison.beside.domain import UNSEEN, Domain, domain_of
from history.comparison.compare import compare
from history.open import open_store
from history.rendering.plain_table import PLAIN_WIDTH
from tests.history.handmade import record_steps, session_start

BASE, NEW = "postgres@17.11", "postgres@18.6"

SMOKE = Domain(
    rows=97_217,
    bytes=21_400_000,
    index_levels=2,
    cache_bytes=128 << 20,
    memory_bytes=8 << 30,
    clients=(1,),
    is_counted=False,
    seconds=3.0,
    work_seconds=9.0,
    is_durable=False,
)


@pytest.mark.parametrize(
    ("domain", "text"),
    [
        (
            SMOKE,
            "On 97,200 rows (21 MB, indexes 2 levels deep), cached, 1 client, rounds of 3 s: not seen is what"
            " begins later, rare stalls, larger trees, reading from disk, waiting for other clients, the"
            " time of flushes (relaxed durability).",
        ),
        (
            replace(SMOKE, rows=400_000_000, bytes=92 * 10**9, index_levels=4, clients=(1, 64), seconds=60.0,
                    work_seconds=600.0, is_durable=True),
            "On 400,000,000 rows (92 GB, indexes 4 levels deep), larger than memory, 1 to 64 clients, rounds"
            " of 60 s.",
        ),
        (
            replace(SMOKE, bytes=4 << 30, is_durable=True, seconds=40.0, work_seconds=200.0, clients=(8,)),
            "On 97,200 rows (4,295 MB, indexes 2 levels deep), in memory, 8 clients, rounds of 40 s: not seen"
            " is larger trees, reading from disk.",
        ),
        (
            replace(SMOKE, bytes=9 << 30, is_durable=True, seconds=40.0, work_seconds=200.0, clients=(8,),
                    index_levels=4, contender_cache_bytes=399 << 20, reclaim="pageout by kdamond 0"),
            "On 97,200 rows (9,664 MB, indexes 4 levels deep), larger than memory, proactive reclaim (pageout"
            " by kdamond 0), buffers of 134 MB and 418 MB, 8 clients, rounds of 40 s.",
        ),
        (
            replace(SMOKE, is_counted=True, seconds=None, work_seconds=0.0),
            "On 97,200 rows (21 MB, indexes 2 levels deep), cached, 1 client, counted work: not seen"
            " is time: waiting, locks, cache misses, I/O, larger trees.",
        ),
        (
            Domain(None, None, None, None, 0, (), False, 9.0, 90.0, True),
            "On data of unknown size, rounds of 9 s: not seen is what begins later.",
        ),
    ],
)  # fmt: skip
def test_the_domain_in_a_sentence(domain: Domain, text: str) -> None:
    assert domain.text == text


number = st.integers(0, 10**13)
nothing: dict[str, int | None] = dict.fromkeys(("rows", "bytes", "index_levels", "cache_bytes"))
extents = st.one_of(
    st.just(nothing),
    number.map(lambda rows: {**nothing, "rows": rows}),  # by the options alone
    st.fixed_dictionaries(
        {"rows": number, "bytes": number, "index_levels": st.integers(0, 10), "cache_bytes": number}
    ),
)


@given(
    st.builds(
        lambda extent, **others: Domain(**extent, **others),
        extents,
        memory_bytes=st.integers(0, 10**13),
        clients=st.lists(st.integers(1, 1000), max_size=3).map(lambda counts: tuple(sorted(counts))),
        is_counted=st.booleans(),
        seconds=st.one_of(st.none(), st.floats(0.1, 1e4).map(lambda seconds: round(seconds, 1))),
        work_seconds=st.floats(0, 1e5),
        is_durable=st.booleans(),
        is_long=st.booleans(),
        contender_cache_bytes=st.one_of(st.none(), number),
        reclaim=st.sampled_from(("", "pageout by kdamond 0")),
    )
)
def test_the_sentence_has_three_lines_at_most(domain: Domain) -> None:
    assert len(textwrap.wrap(domain.text, PLAIN_WIDTH)) <= 3


def test_every_limit_applies_to_some_domain_and_not_to_all() -> None:
    long = replace(SMOKE, bytes=10**12, index_levels=5, clients=(8,), seconds=60.0, work_seconds=600.0,
                   is_durable=True)  # fmt: skip
    counted = replace(SMOKE, is_counted=True, seconds=None)
    assert not long.unseen
    for limit in UNSEEN:
        assert limit.applies(SMOKE) or limit.applies(counted), limit.words


def compared(path: Path, options: Mapping[str, object]) -> Domain | None:
    start = replace(session_start(), options={"versions": [BASE, NEW], "seconds": 9.0, **options})
    with open_store(path) as store:
        session = record_steps(store, start, {"insert": {BASE: [100.0] * 3, NEW: [100.0] * 3}}, status=None)
        if "tables" not in options:
            extent = {"rows": 400_000, "bytes": 92_000_000, "index_levels": 3, "cache_bytes": 256 << 20}
            store.record_data(session, BASE, extent)
            store.record_data(session, NEW, {**extent, "cache_bytes": 399 << 20})
        (contender,) = compare(store, parse_version(BASE), [parse_version(NEW)]).contenders
    return domain_of(contender)


def test_a_session_says_its_domain(tmp_path: Path) -> None:
    found = compared(tmp_path / "h.db", {"clients": {"insert": 8}, "reclaim": "pageout by kdamond 0"})
    assert found is not None
    assert (found.rows, found.bytes, found.index_levels, found.clients) == (400_000, 92_000_000, 3, (8,))
    assert (found.seconds, found.work_seconds, found.is_cached, found.is_durable) == (9.0, 27.0, True, False)
    assert (found.cache_bytes, found.contender_cache_bytes) == (256 << 20, 399 << 20)
    assert found.reclaim == "pageout by kdamond 0"


@pytest.mark.parametrize(
    ("memory", "is_in_memory"), [("64M", False), ("128M", True), ("", True), ("not an amount", False)]
)
def test_data_are_held_against_a_declared_memory(tmp_path: Path, memory: str, is_in_memory: bool) -> None:
    found = compared(tmp_path / "h.db", {"memory": memory})
    assert found is not None
    assert replace(found, cache_bytes=1 << 20).is_in_memory is is_in_memory


@pytest.mark.parametrize(
    ("rounds", "block"),
    [({"least": 3, "cap": 45, "until_decided": True}, 20.0), ({"least": 1, "until_decided": False}, 300.0)],
)
def test_long_mode_says_how_long_its_blocks_are(
    tmp_path: Path, rounds: Mapping[str, object], block: float
) -> None:
    found = compared(tmp_path / "h.db", {"mode": "long", "seconds": 900.0, "rounds": rounds})
    assert found is not None
    assert (found.seconds, found.work_seconds) == (block, 3 * block)
    assert f"blocks of {block:g} s" in found.text
    assert "what begins later" not in found.text


def test_older_sessions_say_what_they_know(tmp_path: Path) -> None:
    found = compared(tmp_path / "h.db", {"tables": 4, "rows_per_table": 100_000, "threads": 40})
    assert found is not None
    assert (found.rows, found.bytes, found.clients) == (400_000, None, (40,))


def test_tables_of_other_people_have_no_domain(tmp_path: Path) -> None:
    assert compared(tmp_path / "h.db", {"imported": True}) is None
