"""What the suite tpcc draws, counted over many inputs in sysbench's own Lua, without a server.

Shares are held to 4 standard errors, which one seed in 16,000 exceeds; sysbench draws one of two sequences
per seed.
"""

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise

import pytest

from suites.definition import LUA_MODULES, load_suite
from suites.processes import run

SUITE = load_suite("tpcc")
DRAWN = 20_000
WAREHOUSES = 3

PROGRAM = """
local draws = require("draws")
local uniform = sysbench.rand.uniform
local function line(kind, values) io.stdout:write("drawn ", kind, " ", table.concat(values, " "), "\\n") end

function thread_init()
   for _ = 1, DRAWN do
      local order = draws.new_order(uniform, 2, WAREHOUSES)
      local values = {order.district, order.customer, order.rolls_back and 1 or 0, order.all_local}
      for _, each in ipairs(order.lines) do
         values[#values + 1] = each.warehouse
         values[#values + 1] = each.item
         values[#values + 1] = each.quantity
      end
      line("order", values)
      local pay = draws.payment(uniform, 2, WAREHOUSES)
      line("payment", {pay.district, pay.amount, pay.customer_warehouse, pay.customer_district,
         pay.customer or 0, pay.last or "-"})
   end
   local alone = draws.payment(uniform, 1, 1)
   line("alone", {alone.customer_warehouse, draws.other_warehouse(uniform, 1, 1)})
   for _, number in ipairs({0, 371, 999}) do line("name", {draws.last_name(number)}) end
   local card = draws.deck(uniform)
   for _ = 1, 300 do line("card", {card()}) end
   line("constants", {draws.C_LAST_LOAD, draws.C_LAST_RUN, draws.C_CUSTOMER, draws.C_ITEM})
   line("sizes", {draws.DISTRICTS, draws.CUSTOMERS, draws.ITEMS})
   for thread = 0, 4 do
      for _, warehouses in ipairs({2, 12}) do
         local home = draws.home_warehouses(uniform, thread, 5, warehouses)
         for _ = 1, 60 do line("home", {warehouses, thread, home()}) end
      end
   end
   for _ = 1, DRAWN do line("think", {draws.thinking(1 - sysbench.rand.uniform_double(), "payment")}) end
end

function event() end
"""

Rows = Sequence[Sequence[str]]


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Rows]:
    """The lines that the program printed, as words, by what they are about."""
    script = tmp_path_factory.mktemp("draws") / "draw.lua"
    sizes = f"local DRAWN, WAREHOUSES = {DRAWN}, {WAREHOUSES}\n"
    script.write_text(sizes + PROGRAM)
    output = run(
        ["sysbench", str(script), "--rand-seed=1", "--threads=1", "--events=1", "run"],
        what="drawing",
        env={"LUA_PATH": f"{LUA_MODULES}/?.lua;{SUITE.folder}/?.lua;;"},
    )
    found: dict[str, list[list[str]]] = {}
    for kind, values in re.findall(r"^drawn (\S+) (.*)$", output, re.MULTILINE):
        found.setdefault(kind, []).append(values.split())
    return found


@pytest.fixture(scope="module")
def orders(drawn: Mapping[str, Rows]) -> list[list[int]]:
    """Of each new-order: district, customer, whether it rolls back, whether all is local, and the lines."""
    return [[int(value) for value in row] for row in drawn["order"]]


def lines_of(order: Sequence[int]) -> list[tuple[int, int, int]]:
    """Warehouse, item and quantity of each line."""
    return [(order[at], order[at + 1], order[at + 2]) for at in range(4, len(order), 3)]


def is_share(found: int, of: int, wanted: float) -> bool:
    """Whether `found` of `of` independent draws are as many as a share says."""
    return abs(found - of * wanted) < 4 * math.sqrt(of * wanted * (1 - wanted))


@pytest.mark.deep("simulates many rounds, or waits for real processes")
def test_one_order_in_a_hundred_rolls_back_on_its_last_line(orders: list[list[int]]) -> None:
    failing = [order for order in orders if order[2]]
    assert is_share(len(failing), DRAWN, 0.01)
    for order in orders:
        unused = [place for place, line in enumerate(lines_of(order)) if line[1] == 100_001]
        assert unused == ([len(lines_of(order)) - 1] if order[2] else [])


def test_one_line_in_a_hundred_comes_from_another_warehouse(orders: list[list[int]]) -> None:
    lines = [line for order in orders for line in lines_of(order) if line[1] <= 100_000]
    remote = [line for line in lines if line[0] != 2]
    assert is_share(len(remote), len(lines), 0.01)
    assert {line[0] for line in remote} == {1, 3}
    assert is_share(sum(line[0] == 1 for line in remote), len(remote), 0.5)
    assert {line[2] for line in lines} == set(range(1, 11))
    kept = [order for order in orders if not order[2]]
    assert all((order[3] == 1) == all(line[0] == 2 for line in lines_of(order)) for order in kept)


def test_orders_have_five_to_fifteen_lines_in_the_order_of_their_keys(orders: list[list[int]]) -> None:
    counts = Counter(len(lines_of(order)) for order in orders)
    assert counts.keys() == set(range(5, 16))
    assert all(is_share(count, DRAWN, 1 / 11) for count in counts.values())
    for order in orders:
        kept = [line[:2] for line in lines_of(order) if line[1] <= 100_000]
        assert all(earlier <= other for earlier, other in pairwise(kept))


def test_some_items_and_customers_are_frequent(orders: list[list[int]]) -> None:
    """NURand ORs two numbers: bits that both have in half of the cases are set in three quarters of them."""
    items = Counter(line[1] for order in orders for line in lines_of(order) if line[1] <= 100_000)
    frequent = sum(count for _, count in items.most_common(10_000))
    assert frequent > 0.2 * items.total()
    assert 1 <= min(items) < 1_000
    assert 99_000 < max(items) <= 100_000
    # The low 13 bits of what was drawn before C was added are 1 in 3/4 of the cases each.
    bits = [((item - 1 - 7911) % 100_000) & 1 for item in items.elements()]
    assert is_share(sum(bits), len(bits), 0.75)
    customers = Counter(order[1] for order in orders)
    assert 1 <= min(customers) <= max(customers) <= 3_000
    assert sum(count for _, count in customers.most_common(300)) > 0.2 * DRAWN


def test_payments_by_name_and_to_other_warehouses(drawn: Mapping[str, Rows]) -> None:
    payments = drawn["payment"]
    assert is_share(sum(row[5] != "-" for row in payments), DRAWN, 0.60)
    assert all((row[5] == "-") != (row[4] == "0") for row in payments)
    remote = [row for row in payments if row[2] != "2"]
    assert is_share(len(remote), DRAWN, 0.15)
    assert is_share(sum(row[2] == "1" for row in remote), len(remote), 0.5)
    assert all(row[0] == row[3] for row in payments if row[2] == "2")
    assert is_share(sum(row[0] == row[3] for row in remote), len(remote), 0.1)
    amounts = [int(row[1]) for row in payments]
    assert 100 <= min(amounts) < 1_000
    assert 499_000 < max(amounts) <= 500_000
    assert drawn["alone"] == [["1", "1"]], "there is no other warehouse"


def test_a_deck_has_the_mix_and_is_shuffled(drawn: Mapping[str, Rows]) -> None:
    cards = [row[0] for row in drawn["card"]]
    decks = [cards[at : at + 100] for at in (0, 100, 200)]
    mix = {"new-order": 45, "payment": 43, "order-status": 4, "delivery": 4, "stock-level": 4}
    assert all(Counter(deck) == mix for deck in decks)
    assert decks[0] != decks[1] != decks[2]


def test_last_names_are_those_of_the_clause(drawn: Mapping[str, Rows]) -> None:
    """Clause 4.3.2.3 has 371 as its example."""
    assert drawn["name"] == [["BARBARBAR"], ["PRICALLYOUGHT"], ["EINGEINGEING"]]


def test_the_constants_of_load_and_run_are_as_far_apart_as_they_must_be(drawn: Mapping[str, Rows]) -> None:
    """Clause 2.1.6.1."""
    load, run_, customer, item = map(int, drawn["constants"][0])
    assert 65 <= abs(load - run_) <= 119
    assert abs(load - run_) not in (96, 112)
    assert (load < 256, run_ < 256, customer < 1024, item < 8192) == (True, True, True, True)


def test_the_scale_counts_what_is_loaded(drawn: Mapping[str, Rows]) -> None:
    districts, customers, items = map(int, drawn["sizes"][0])
    assert SUITE.scale is not None
    rows = {name: table.rows for name, table in SUITE.scale.tables.items()}
    assert rows == {
        "item": items,
        "warehouse": 1,
        "district": districts,
        "customer": districts * customers,
        "history": districts * customers,
        "stock": items,
        "orders": districts * customers,
        "new_orders": districts * customers * 3 // 10,
        "order_line": districts * customers * 10,
    }


def test_warehouses_are_divided_among_threads(drawn: Mapping[str, Rows]) -> None:
    homes: dict[tuple[int, int], set[int]] = {}
    for row in drawn["home"]:
        warehouses, thread, home = map(int, row)
        homes.setdefault((warehouses, thread), set()).add(home)
    assert [homes[12, thread] for thread in range(5)] == [
        {1, 6, 11},
        {2, 7, 12},
        {3, 8},
        {4, 9},
        {5, 10},
    ]
    assert [homes[2, thread] for thread in range(5)] == [{1}, {2}, {1}, {2}, {1}]


def test_people_think_twelve_seconds_after_a_payment_and_never_two_minutes(drawn: Mapping[str, Rows]) -> None:
    """The mean of an exponential distribution has a standard error of mean / sqrt(n)."""
    seconds = [float(row[0]) for row in drawn["think"]]
    assert sum(seconds) / DRAWN == pytest.approx(12, abs=4 * 12 / math.sqrt(DRAWN))
    assert 0 <= min(seconds) <= max(seconds) <= 120
