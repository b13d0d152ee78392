"""tpcc on real servers: what is loaded, what the transactions leave behind, and what each check finds."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from build.finished_build import Build
from suites.accounting.costs import Meter
from suites.checking.data_checks import DataChecks, DataError, finding
from suites.checking.queries import connected
from suites.definition import Suite
from suites.engines import make_server
from suites.generators.load import Load, Share, WorkLimit, committed_in
from suites.generators.sysbench import Sysbench
from suites.keys.check import CheckOccasion
from suites.keys.durability import Durability
from suites.server import Server
from suites.sizing import Hardware, sizes
from suites.slices import Schedule
from tests.new_servers.data_directories import create
from tests.suites.tpcc.smaller import CUSTOMERS, DISTRICTS, ITEMS, WAREHOUSES, smaller

pytestmark = pytest.mark.server

BUILDS = {"postgres": "postgres_18", "mysql": "mysql_9", "mariadb": "mariadb_11"}
TRANSACTIONS = 1000
PEOPLE = 12


@dataclass(frozen=True)
class Loaded:
    """A server with the loaded data, and then some work."""

    server: Server
    suite: Suite
    wrong_after_loading: dict[str, str]
    """What checks found after loading, by check."""
    loaded: dict[str, int]
    """Rows after loading, by table."""
    load: Load
    """The work."""
    rows: Mapping[str, int]
    """Rows that should be loaded, by table."""

    def ask(self, query: str) -> list[tuple[Any, ...]]:
        """The rows of a query."""
        return ask(self.server, query)

    def value(self, query: str) -> Any:
        """The only value of a query."""
        ((only,),) = self.ask(query)
        return only

    def wrong(
        self, occasion: CheckOccasion = CheckOccasion.STEP, more: int = 0, among: set[str] | None = None
    ) -> dict[str, str]:
        """What the checks find, by check; `more` transactions of each kind committed than clients saw."""
        committed = {kind: count - more for kind, count in committed_in(self.load).items()}
        return wrong(self.server, self.suite, self.rows, occasion, committed, among)


def ask(server: Server, query: str) -> list[tuple[Any, ...]]:
    with connected(server.address) as connection, connection.cursor() as cursor:
        cursor.execute(query)
        return list(cursor.fetchall())


def wrong(
    server: Server,
    suite: Suite,
    rows: Mapping[str, int],
    occasion: CheckOccasion,
    committed: dict[str, int],
    among: set[str] | None = None,
) -> dict[str, str]:
    """What the checks find, by check; only those `among` some names if there are any."""
    engine = server.address.engine
    asked = [check for check in suite.checks if check.applies(occasion, engine, "smoke")]
    chosen = [check for check in asked if among is None or check.name in among]
    found = {check.name: finding(server.address, check, committed, rows) for check in chosen}
    return {name: text for name, text in found.items() if text}


@pytest.fixture(scope="module", params=BUILDS)
def loaded(
    server_folders: Callable[[], AbstractContextManager[Path]],
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
) -> Iterator[Loaded]:
    """Two warehouses, in which two clients have worked."""
    build: Build = request.getfixturevalue(BUILDS[request.param])
    suite = smaller(tmp_path_factory.mktemp("tpcc"))
    (step,) = suite.select((), "smoke")
    room = sizes(suite, suite.profile("smoke"), Hardware(cores=1, memory_bytes=1), [step.at(PEOPLE)])
    expected = room.data.rows_by_table
    with server_folders() as folder:
        server = make_server(build, room, Durability.RELAXED, folder / "s", {})
        try:
            create(server, room)
            server.start()
            generator = Sysbench(suite, room)
            generator.load(server.address)
            found = wrong(server, suite, expected, CheckOccasion.LOADED, {})
            rows = {name: ask(server, f"SELECT COUNT(*) FROM {name}")[0][0] for name in expected}
            load = generator.run(server.address, step, WorkLimit(60, TRANSACTIONS), Meter(server.pid))
            yield Loaded(server, suite, found, rows, load, expected)
        finally:
            server.destroy()


def test_what_is_loaded(loaded: Loaded) -> None:
    assert loaded.wrong_after_loading == {}
    expected = dict(loaded.rows)
    found = dict(loaded.loaded)
    lines = found.pop("order_line")
    # Lines of an order are 5 to 15: the mean of 2,000 has a standard error of sqrt(10 / 2000).
    assert lines == pytest.approx(expected.pop("order_line"), rel=4 * (10 / 2000) ** 0.5 / 10)
    assert found == expected
    original = "LIKE '%ORIGINAL%'"
    assert loaded.value(f"SELECT COUNT(*) FROM item WHERE i_data {original}") == ITEMS / 10
    assert loaded.value(f"SELECT COUNT(*) FROM stock WHERE s_data {original}") == WAREHOUSES * ITEMS / 10
    per_district = loaded.ask(
        "SELECT COUNT(*), COUNT(DISTINCT c_last), SUM(CASE WHEN c_credit = 'BC' THEN 1 ELSE 0 END) "
        "FROM customer GROUP BY c_w_id, c_d_id"
    )
    assert per_district == [(CUSTOMERS, 100, CUSTOMERS / 10)] * (DISTRICTS * WAREHOUSES)
    of_loaded = f"FROM orders WHERE o_w_id = 1 AND o_d_id = 1 AND o_id <= {CUSTOMERS}"
    customers = [row[0] for row in loaded.ask(f"SELECT o_c_id {of_loaded} ORDER BY o_id")]
    assert sorted(customers) == list(range(1, CUSTOMERS + 1)) != customers


def test_the_conditions_hold_after_the_work_of_two_clients(loaded: Loaded) -> None:
    assert loaded.wrong(CheckOccasion.STEP) == {}
    assert loaded.wrong(CheckOccasion.CRASH) == {}
    kinds = loaded.load.kinds
    refused = sum(kind.refused for kind in kinds.values())
    assert sum(kind.transactions for kind in kinds.values()) + refused == TRANSACTIONS
    # Each client has whole decks of 100 and one that it did not finish.
    mix = {"new-order": 0.45, "payment": 0.43, "order-status": 0.04, "delivery": 0.04, "stock-level": 0.04}
    for name, share in mix.items():
        assert kinds[name].transactions + kinds[name].refused == pytest.approx(share * TRANSACTIONS, abs=70)
    # At one in a hundred, 21 of 450 is 7 standard errors too many.
    assert 0 <= kinds["new-order"].refused == refused < 21


def test_what_the_server_received(loaded: Loaded) -> None:
    """What clients drew is in the data: remote lines and payments, and what they changed."""
    kinds = loaded.load.kinds
    new = f"FROM order_line WHERE ol_o_id > {CUSTOMERS}"
    lines, remote = (
        loaded.value(f"SELECT COUNT(*) {new}"),
        loaded.value(f"SELECT COUNT(*) {new} AND ol_supply_w_id <> ol_w_id"),
    )
    assert lines == pytest.approx(10 * kinds["new-order"].transactions, rel=0.1)
    assert 0.002 * lines < remote < 0.025 * lines
    assert loaded.value("SELECT SUM(s_remote_cnt) FROM stock") == remote
    not_local = "SELECT COUNT(DISTINCT ol_w_id, ol_d_id, ol_o_id)"
    if loaded.server.address.engine == "postgres":
        not_local = "SELECT COUNT(DISTINCT (ol_w_id, ol_d_id, ol_o_id))"
    not_local_orders = loaded.value(f"{not_local} {new} AND ol_supply_w_id <> ol_w_id")
    assert loaded.value("SELECT COUNT(*) FROM orders WHERE o_all_local = 0") == not_local_orders
    payments = kinds["payment"].transactions
    away = loaded.value("SELECT COUNT(*) FROM history WHERE h_c_w_id <> h_w_id")
    assert 0.06 * payments < away < 0.24 * payments
    assert loaded.value("SELECT SUM(c_payment_cnt - 1) FROM customer") == payments
    warned = loaded.value("SELECT COUNT(*) FROM customer WHERE c_credit = 'BC' AND c_payment_cnt > 1")
    assert loaded.value("SELECT COUNT(*) FROM customer WHERE c_data LIKE '% % % % % %.% %'") == warned > 0
    delivered = DISTRICTS * kinds["delivery"].transactions
    assert loaded.value("SELECT SUM(c_delivery_cnt) FROM customer") == delivered > 0
    waiting = loaded.loaded["new_orders"] + kinds["new-order"].transactions - delivered
    assert loaded.value("SELECT COUNT(*) FROM new_orders") == waiting


def test_foreign_keys_are_on(loaded: Loaded) -> None:
    assert (
        loaded.value(
            "SELECT COUNT(*) FROM information_schema.table_constraints WHERE constraint_type = 'FOREIGN KEY'"
        )
        == 10
    )
    with pytest.raises(Exception, match="foreign key"):
        loaded.ask("DELETE FROM item WHERE i_id = 1")


@dataclass(frozen=True)
class Fault:
    """A fault: what a server or a client with a mistake would leave behind."""

    table: str
    rows: str
    """The rows that change, as a condition."""
    change: str
    found_by: set[str]
    """The checks after a step that it breaks."""


LINES = "ol_w_id = 1 AND ol_d_id = 2 AND ol_o_id = 3"
CUSTOMER = "c_w_id = 2 AND c_d_id = 3 AND c_id = 7"
LAST_NEW = f"no_w_id = 1 AND no_d_id = 2 AND no_o_id = {CUSTOMERS - 1}"
FAULTS = {
    "lost update of a warehouse": Fault(
        "warehouse", "w_id = 1", "UPDATE warehouse SET w_ytd = w_ytd - 10", {"condition-1", "condition-8"}
    ),
    "lost update of a district": Fault(
        "district",
        "d_w_id = 1 AND d_id = 1",
        "UPDATE district SET d_ytd = d_ytd - 10",
        {"condition-1", "condition-9"},
    ),
    "a number that no order has": Fault(
        "district",
        "d_w_id = 1 AND d_id = 1",
        "UPDATE district SET d_next_o_id = d_next_o_id + 1",
        {"condition-2", "new-orders"},
    ),
    "missing new order": Fault(
        "new_orders", LAST_NEW, "DELETE FROM new_orders", {"condition-3", "condition-5", "condition-11"}
    ),
    "missing line": Fault(
        "order_line",
        f"{LINES} AND ol_number = 1",
        "DELETE FROM order_line",
        {"condition-4", "condition-6-sampled"},
    ),
    "missing order": Fault(
        "orders",
        "o_w_id = 1 AND o_d_id = 2 AND o_id = 3",
        "DELETE FROM orders",
        {"condition-4"},
    ),
    "order without a carrier": Fault(
        "orders",
        "o_w_id = 1 AND o_d_id = 2 AND o_id = 3",
        "UPDATE orders SET o_carrier_id = NULL",
        {"condition-5", "condition-7", "condition-11"},
    ),
    "line delivered alone": Fault(
        "order_line",
        f"{LINES} AND ol_number = 1",
        "UPDATE order_line SET ol_delivery_d = NULL",
        {"condition-7"},
    ),
    "wrong sum of a payment": Fault(
        "history",
        "h_c_w_id = 2 AND h_c_d_id = 3 AND h_c_id = 7 AND h_date = '2026-01-01 00:00:00'",
        "UPDATE history SET h_amount = 11",
        {"condition-8", "condition-9", "condition-10"},
    ),
    "lost update of a balance": Fault(
        "customer",
        CUSTOMER,
        "UPDATE customer SET c_balance = c_balance + 1",
        {"condition-10", "condition-12"},
    ),
    "lost update of payments": Fault(
        "customer", CUSTOMER, "UPDATE customer SET c_ytd_payment = c_ytd_payment - 1", {"condition-12"}
    ),
    "orphan": Fault(
        "order_line",
        "ol_w_id = 1 AND ol_d_id = 2 AND ol_o_id = 0",
        "INSERT INTO order_line (ol_w_id, ol_d_id, ol_o_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity,"
        " ol_amount, ol_dist_info) VALUES (1, 2, 0, 1, 1, 1, 5, 0, 'x')",
        {"condition-4"},
    ),
    "lost update of stock": Fault(
        "stock",
        "s_w_id = 1 AND s_i_id = 5",
        "UPDATE stock SET s_quantity = 9, s_ytd = s_ytd + 1",
        {"stock", "stock-orders"},
    ),
}


@contextmanager
def planted(loaded: Loaded, fault: Fault) -> Iterator[None]:
    """The fault is in the data in the block, and foreign keys do not matter."""
    ignoring = {
        "postgres": "SET session_replication_role = replica",
        "mysql": "SET foreign_key_checks = 0",
        "mariadb": "SET foreign_key_checks = 0",
    }[loaded.server.address.engine]
    where = f"WHERE {fault.rows}"
    # Who changes how foreign keys are checked is no client.
    with connected(loaded.server.address.of_admin) as connection, connection.cursor() as cursor:
        cursor.execute(ignoring)
        cursor.execute(f"CREATE TABLE kept AS SELECT * FROM {fault.table} {where}")
        cursor.execute(fault.change if fault.change.startswith("INSERT") else f"{fault.change} {where}")
        assert cursor.rowcount == 1
        try:
            yield
        finally:
            cursor.execute(f"DELETE FROM {fault.table} {where}")
            cursor.execute(f"INSERT INTO {fault.table} SELECT * FROM kept")
            cursor.execute("DROP TABLE kept")


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found(loaded: Loaded, name: str) -> None:
    """By the checks that it breaks, and by no other; asking all of them once, on Postgres, is enough."""
    among = None if loaded.server.address.engine == "postgres" else FAULTS[name].found_by
    (orphans,) = (check for check in loaded.suite.checks if check.name == "orphans")
    with planted(loaded, FAULTS[name]):
        found = loaded.wrong(among=among)
        without_parent = finding(loaded.server.address, orphans, {}, loaded.rows)
    assert found.keys() == FAULTS[name].found_by, found
    assert bool(without_parent) == (name in ("orphan", "missing order"))


def test_a_fault_fails_the_step(loaded: Loaded) -> None:
    checks = DataChecks(loaded.suite.checks, "smoke")
    with (
        planted(loaded, FAULTS["lost update of a warehouse"]),
        pytest.raises(DataError, match=r"condition-1 .* condition-8 "),
    ):
        checks.require(loaded.server.address, CheckOccasion.CRASH)
    checks.require(loaded.server.address, CheckOccasion.CRASH)


def test_a_transaction_that_no_client_saw_is_found(loaded: Loaded) -> None:
    those = {"new-orders", "payments"}
    assert loaded.wrong(more=1, among=those).keys() == those, "and one that is not there"
    assert loaded.wrong(more=-1, among=those).keys() == those


def test_what_only_the_loaded_data_must_be(loaded: Loaded) -> None:
    """Every order has its lines, in districts that are sampled later, too; 70 % are delivered."""
    fault = Fault(
        "order_line",
        "ol_w_id = 1 AND ol_d_id = 9 AND ol_o_id = 3 AND ol_number = 1",
        "DELETE FROM order_line",
        set(),
    )
    with planted(loaded, fault):
        found = loaded.wrong(CheckOccasion.LOADED)
    assert {"condition-4", "condition-6", "condition-11-loaded"} == found.keys()


def test_people_key_in_and_think(loaded: Loaded) -> None:
    """Last, as what it does is not in the numbers of the load. Keying in an order takes 18 s."""
    if loaded.server.address.engine != "postgres":
        pytest.skip("pauses are the client's, and one engine shows them")
    suite = loaded.suite
    room = sizes(suite, suite.profile("smoke"), Hardware(cores=1, memory_bytes=1))
    step = suite.select((), "terminals")[0].at(PEOPLE)
    share = Share(Schedule(1.0, (0, 0, 0, 0, 0)), 1)
    meter = Meter(loaded.server.pid, shared=True)
    (load,) = Sysbench(suite, room).alternate([loaded.server.address], step, share, [meter])
    payments = load.kinds["payment"].transactions
    assert 0 < payments <= load.transactions <= PEOPLE
    assert load.kinds["new-order"].transactions == 0
    assert load.kinds["payment"].latency_ms["mean"] < 3000, "three seconds of keying are not part of it"
    assert load.due is None
