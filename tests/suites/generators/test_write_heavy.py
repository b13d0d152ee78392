"""The ten steps on a real server: what each does to its tables."""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing
from pathlib import Path

import numpy as np
import pytest

from build.finished_build import Build
from suites.accounting.costs import Meter
from suites.definition import Suite, load_suite
from suites.generators.load import Load, LoadError, WorkLimit
from suites.generators.sysbench import Sysbench
from suites.postgres.server import PostgresServer
from suites.sizing import max_transactions
from tests.suites.audit import Change, changes, forget, watch
from tests.suites.servers import ask, running, small, value

pytestmark = pytest.mark.server

ROWS, TABLES = 5000, 2
SECONDS = 1.0
SUITE = load_suite("write-heavy")
LOADED = "SELECT md5(string_agg(format('%s %s %s %s', id, k, c, pad), ',' ORDER BY id)) FROM sbtest1"


@pytest.fixture(scope="module")
def server(
    server_folders: Callable[[], AbstractContextManager[Path]], postgres_18: Build
) -> Iterator[PostgresServer]:
    """Loaded once, as a session does it; every change is noted."""
    room = small(rows=ROWS, tables=TABLES)
    with server_folders() as folder, running(postgres_18, folder, room) as started:
        Sysbench(SUITE, room).load(started.address)
        watch(started, TABLES)
        yield started


def step_run(
    server: PostgresServer, name: str, work: WorkLimit | None = None, *, threads: int = 1, another: int = 0
) -> Load:
    """Run a step for SECONDS, or as much as `work` says, with nothing noted before it.

    `another` seed than the suite's is needed where a run must not set the values that are there already.
    """
    suite = SUITE.model_copy(update={"seed": SUITE.seed + another})
    forget(server)
    room = small(rows=ROWS, tables=TABLES, threads=threads)
    (step,) = SUITE.select((name,))
    work = work or WorkLimit(SECONDS, max_transactions(step, room))
    return Sysbench(suite, room).run(server.address, step, work, Meter(server.pid))


def count(server: PostgresServer) -> int:
    return sum(int(value(server, f"SELECT count(*) FROM sbtest{table}")) for table in (1, 2))


def shape(change: Change) -> tuple[str, int | None, bool | None]:
    """What kind of change it was, whichever row it met."""
    return change.operation, change.k_change, change.c_changed


OF_K = ("UPDATE", 1, False)
OF_C = ("UPDATE", 0, True)
DELETED = ("DELETE", None, None)
INSERTED = ("INSERT", None, None)
FOUR_WRITES = [OF_K, OF_C, DELETED, INSERTED]


# --- the load


def test_the_load_is_as_the_method_says(server: PostgresServer) -> None:
    columns = ask(
        server,
        "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute "
        "WHERE attrelid = 'sbtest2'::regclass AND attnum > 0 ORDER BY attnum",
    )
    assert columns == [("id", "bigint"), ("k", "integer"), ("c", "character(120)"), ("pad", "character(60)")]
    indexes = ask(server, "SELECT indexname FROM pg_indexes WHERE tablename = 'sbtest2' ORDER BY 1")
    assert indexes == [("k_2",), ("sbtest2_pkey",)]
    assert int(value(server, "SELECT count(*) FROM pg_class WHERE relname LIKE 'sbtest_'")) == TABLES


@pytest.mark.parametrize("version", ["postgres_17", "postgres_18"])
def test_one_seed_gives_one_table(server_folder: Path, version: str, request: pytest.FixtureRequest) -> None:
    """The same on every version; k is uniform and not skewed as sysbench 1.0 draws it (trap 6)."""
    room = small(rows=2000)
    with running(request.getfixturevalue(version), server_folder, room) as server:
        seen = []
        for seed in (SUITE.seed, SUITE.seed, SUITE.seed + 1):
            ask(server, "DROP TABLE IF EXISTS sbtest1")
            Sysbench(SUITE.model_copy(update={"seed": seed}), room).load(server.address)
            seen.append(value(server, LOADED))
        drawn = np.array([row[0] for row in ask(server, "SELECT k FROM sbtest1")])
    assert seen[0] == seen[1] == "c6ded1f17b02ec08702e7eb43c4e2fe4"
    assert seen[2] != seen[0]
    assert (drawn.min() >= 1, drawn.max() <= 2000) == (True, True)
    # Chi-squared over 10 tenths has 9 degrees of freedom: mean 9, and above 27.9 once in a thousand seeds.
    found, _ = np.histogram(drawn, bins=10, range=(0.5, 2000.5))
    assert ((found - 200) ** 2 / 200).sum() < 27.9


def test_tables_of_one_load_differ(server: PostgresServer) -> None:
    first, second = (value(server, f"SELECT c FROM sbtest{table} WHERE id = 1") for table in (1, 2))
    assert first != second
    assert first.count("-") == 9
    assert len(first) == 119 + 1


# --- what each step does


@pytest.mark.parametrize("name", [step.name for step in SUITE.steps])
def test_a_step_runs_without_errors(server: PostgresServer, name: str) -> None:
    load = step_run(server, name)
    assert load.errors == 0
    assert load.transactions > 50
    assert load.transactions == len(changes(server))
    assert load.queries == load.transactions * {
        "write-only": 6,
        "read-write-10": 20,
        "read-write-100": 20,
    }.get(name, 1)
    bounded = name == "delete"  # by its share of the rows, which a fast machine deletes in less than a second
    assert load.seconds == pytest.approx(SECONDS, abs=0.3) or (
        bounded and load.transactions == ROWS * TABLES / 2
    )
    if bounded:
        ask(server, "INSERT INTO sbtest1 (id) SELECT generate_series(1, 5000) ON CONFLICT DO NOTHING")
        ask(server, "INSERT INTO sbtest2 (id) SELECT generate_series(1, 5000) ON CONFLICT DO NOTHING")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("update-index", [OF_K]),
        ("update-nonindex", [OF_C]),
        ("update-one", [OF_C]),
        ("update-zipf", [OF_C]),
        ("write-only", FOUR_WRITES),
        ("read-write-10", FOUR_WRITES),
        ("read-write-100", FOUR_WRITES),
        ("delete", [DELETED]),
        ("insert", [INSERTED]),
    ],
)
def test_what_one_transaction_changes(
    server: PostgresServer, name: str, expected: list[tuple[str, int | None, bool | None]]
) -> None:
    """And `--events` bounds the work: exactly as many transactions as were asked for."""
    before = count(server)
    load = step_run(server, name, WorkLimit(30, 300), another=1000)
    found = changes(server)
    assert load.transactions == len(found) == 300
    assert all([shape(change) for change in transaction] == expected for transaction in found)
    assert all(len({change.table for change in transaction}) == 1 for transaction in found)
    by_table = Counter(transaction[0].table for transaction in found)
    assert min(by_table.values()) > 90, "tables are drawn evenly"
    assert len(by_table) == TABLES
    assert count(server) - before == {"delete": -300, "insert": 300}.get(name, 0)
    if name == "delete":
        _put_back(server, found)


def _put_back(server: PostgresServer, found: list[list[Change]]) -> None:
    """So that the steps of later tests meet every id."""
    for table in (1, 2):
        ids = [str(t[0].old_id) for t in found if t[0].table == f"sbtest{table}"]
        ask(server, f"INSERT INTO sbtest{table} (id) SELECT unnest(ARRAY[{','.join(ids)}])")


def test_update_inlist_changes_ten_rows(server: PostgresServer) -> None:
    """Ids are drawn with replacement: of 10 from 5000 two are equal in 0.9 % of the transactions."""
    step_run(server, "update-inlist", WorkLimit(30, 300), another=1000)
    found = changes(server)
    sizes = Counter(len(transaction) for transaction in found)
    assert sizes[10] > 280
    assert sizes.keys() <= {8, 9, 10}
    assert {shape(change) for transaction in found for change in transaction} == {OF_C}
    met = {change.old_id for transaction in found for change in transaction}
    assert len(met) > 2000


def test_update_one_has_one_hot_row(server: PostgresServer) -> None:
    step_run(server, "update-one", WorkLimit(30, 200))
    assert {change.old_id for (change,) in changes(server)} == {1}


def test_the_writes_of_one_transaction_put_back_what_they_delete(server: PostgresServer) -> None:
    step_run(server, "write-only", WorkLimit(30, 300))
    found = changes(server)
    assert all(deleted.old_id == inserted.new_id for _, _, deleted, inserted in found)
    first = [transaction[0].old_id for transaction in found]
    second = [transaction[1].old_id for transaction in found]
    assert sum(first_id == other for first_id, other in zip(first, second, strict=True)) < 10


def test_no_step_repeats_another(server: PostgresServer) -> None:
    """A step that set the values of the step before it would leave InnoDB nothing to do."""
    drawn = []
    for name in ("read-write-10", "read-write-100"):
        step_run(server, name, WorkLimit(30, 50))
        drawn.append([transaction[0].old_id for transaction in changes(server)])
    assert sum(first_id == other for first_id, other in zip(*drawn, strict=True)) < 5


def test_one_seed_is_the_same_work(server: PostgresServer) -> None:
    """One of two: sysbench's working thread and its reporting one race for the first number of the seed."""
    drawn = set()
    for _ in range(3):
        step_run(server, "update-index", WorkLimit(30, 100))
        drawn.add(tuple((change.table, change.old_id) for (change,) in changes(server)))
    assert len(drawn) <= 2


def test_uniform_ids_reach_the_whole_table(server: PostgresServer) -> None:
    step_run(server, "update-nonindex", WorkLimit(30, 2000))
    ids = np.array([change.old_id for (change,) in changes(server)], dtype=float)
    assert ids.min() >= 1
    assert ids.max() <= ROWS
    # The mean of 2000 uniform draws strays from the middle by 5000 / sqrt(12 * 2000) = 32 (one sigma).
    assert ids.mean() == pytest.approx(2500, abs=4 * 32)


def test_the_ranges_are_as_long_as_their_names_say(server: PostgresServer) -> None:
    """Rows fetched through indexes: 10 points, 4 ranges, and 3 for the writes (the insert fetches none)."""
    fetched = []
    question = "SELECT sum(idx_tup_fetch) FROM pg_stat_user_tables WHERE relname LIKE 'sbtest_'"
    ask(server, "ANALYZE sbtest1; ANALYZE sbtest2")
    for name in ("read-write-10", "read-write-100"):
        before = int(value(server, question))
        step_run(server, name, WorkLimit(30, 200))
        fetched.append((int(value(server, question)) - before) / 200)
    # 10 of the 5000 ids have a range that ends before its length, and inserted rows lie beyond.
    assert fetched == pytest.approx([10 + 4 * 10 + 3, 10 + 4 * 100 + 3], rel=0.05)


def test_zipfian_ids_follow_zipfs_law(server: PostgresServer) -> None:
    """The exponent that makes the drawn ids likeliest, and the shape, against p(id) = id^-0.8 / H.

    The likeliest exponent has a standard error of 1 / sqrt(draws * variance of ln(id)) (Fisher information of
    the exponential family with statistic ln(id)); 4 of them are exceeded by one seed in 16,000. The seed is
    fixed, so that few different draws ever come.
    """
    draws = 10_000
    step_run(server, "update-zipf", WorkLimit(60, draws))
    ids = np.array([change.old_id for (change,) in changes(server)], dtype=int)
    assert ids.size == draws
    ranks = np.arange(1, ROWS + 1, dtype=float)
    law = ranks**-0.8 / (ranks**-0.8).sum()
    mean_log = float((law * np.log(ranks)).sum())
    variance = float((law * np.log(ranks) ** 2).sum()) - mean_log**2
    # d(mean of ln id)/d(exponent) = -variance, so that the likeliest exponent is, to first order:
    exponent = 0.8 - (float(np.log(ids).mean()) - mean_log) / variance
    assert exponent == pytest.approx(0.8, abs=4 / math.sqrt(draws * variance))
    borders = np.unique(np.geomspace(1, ROWS + 1, 20).astype(int))
    found, _ = np.histogram(ids, bins=borders)
    expected = draws * np.add.reduceat(law, borders[:-1] - 1)
    # Chi-squared with as many degrees of freedom as cells less one; 4 sigma above its mean.
    freedom = expected.size - 1
    assert ((found - expected) ** 2 / expected).sum() < freedom + 4 * math.sqrt(2 * freedom)


# --- threads and limits


def test_threads_delete_every_row_once(server: PostgresServer) -> None:
    """Trap 4: no delete is a no-op, whichever thread is faster."""
    before = count(server)
    load = step_run(server, "delete", WorkLimit(30, ROWS * TABLES // 2), threads=2)
    found = changes(server)
    assert load.transactions == ROWS * TABLES // 2
    assert before - count(server) == load.transactions == len(found)
    _put_back(server, found)


def test_time_bounds_the_work_as_well(server: PostgresServer) -> None:
    load = step_run(server, "update-index", WorkLimit(1, 10**8))
    assert load.seconds == pytest.approx(1, abs=0.3)
    assert load.transactions < 10**8


def test_threads_do_the_bounded_work_between_them(server: PostgresServer) -> None:
    load = step_run(server, "update-index", WorkLimit(30, 301), threads=4)
    assert load.transactions == len(changes(server)) == 301
    assert load.watched_queries == 301
    assert load.latency_ms.keys() == {"mean", "p50", "p95", "p99", "p999", "max"}


def test_a_second_of_work_is_watched_with_its_costs(server: PostgresServer) -> None:
    meter = Meter(server.pid)
    room = small(rows=ROWS, tables=TABLES, threads=2)
    (step,) = SUITE.select(("update-nonindex",))
    load = Sysbench(SUITE, room).run(server.address, step, WorkLimit(2, None), meter)
    costs = meter.per_query(load.watched_queries)
    assert len(load.per_second) == 2
    assert 5 < costs["server_cpu_us_per_op"] < 5000
    assert 1 < costs["client_cpu_us_per_op"] < costs["server_cpu_us_per_op"]
    assert costs["server_cs_per_op"] > 0.1
    assert costs["machine_cpu_us_per_op"] > 0.9 * costs["server_cpu_us_per_op"]


def test_a_load_of_tables_that_are_there_already(server: PostgresServer) -> None:
    with pytest.raises(LoadError) as caught:
        Sysbench(SUITE, small(rows=ROWS, tables=TABLES)).load(server.address)
    assert re.search(r'relation "sbtest[12]" already exists', caught.value.what)
    assert "--table=" in caught.value.where


def test_a_step_that_was_never_loaded(server: PostgresServer) -> None:
    room = small(rows=ROWS, tables=3)
    step = SUITE.steps[0]
    with pytest.raises(LoadError) as caught:
        Sysbench(SUITE, room).run(server.address, step, WorkLimit(1, None), Meter(server.pid))
    assert 'relation "sbtest3" does not exist' in caught.value.what


def test_a_suite_of_ones_own_needs_no_python(server: PostgresServer, tmp_path: Path) -> None:
    (tmp_path / "suite.toml").write_text(
        (SUITE.folder / "suite.toml").read_text().split("[[steps]]")[0].replace("write_heavy.lua", "mine.lua")
        + '[[steps]]\nname = "count"\ntitle = "Count"\noptions = { wanted = 42 }\n'
    )
    (tmp_path / "mine.lua").write_text(
        "local con\n"
        'require("tidemark").script {\n'
        '   options = {wanted = {"", 1}},\n'
        "   start = function(connection) con = connection end,\n"
        '   event = function() con:query("SELECT " .. sysbench.opt.wanted) end,\n'
        "}\n"
    )
    suite: Suite = load_suite(str(tmp_path))
    meter = Meter(server.pid)
    generator = Sysbench(suite, small())
    load = generator.run(server.address, suite.steps[0], WorkLimit(5, 100), meter)
    assert (load.transactions, load.queries, load.errors) == (100, 100, 0)
    with closing(server.connect()) as connection:
        assert connection.info.server_version >= 180000
