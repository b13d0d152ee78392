"""What a server received of tpcc: the shares that TPC-C 5.11 prescribes, counted in its data."""

import math
from collections.abc import Iterator

from benchmarks.output.figures import Figure
from suites.checking.queries import connected
from suites.generators.load import Load
from suites.server import Server

STANDARD_ERRORS = 4.0
"""How far a share may be off, as a multiple of its standard error."""

ITEMS, C_ITEM, LOADED_ORDERS = 100_000, 7_911, 3_000
"""As in suites/tpcc/draws.lua; the orders are those of a district."""

NEW_LINES = f"FROM order_line WHERE ol_o_id > {LOADED_ORDERS}"


def mix_figures(server: Server, load: Load) -> Iterator[Figure]:
    """Yield each share beside the prescribed one, of a Postgres server on which only `load` has worked."""
    kinds = load.kinds
    orders, payments = kinds["new-order"], kinds["payment"].committed
    lines = _value(server, f"SELECT COUNT(*) {NEW_LINES}")
    away = _value(server, f"SELECT COUNT(*) {NEW_LINES} AND ol_supply_w_id <> ol_w_id")
    yield _share("lines of another warehouse", away, lines, 0.01)
    remote = _value(server, "SELECT COUNT(*) FROM history WHERE h_c_w_id <> h_w_id")
    yield _share("payments to another warehouse", remote, payments, 0.15)
    refused = orders.refused
    yield _share("orders that roll back", refused, orders.committed + refused, 0.01)
    by_name = _value(server, "SELECT idx_scan FROM pg_stat_user_indexes WHERE indexrelname = 'customer_name'")
    yield _share("customers found by name", by_name, payments + kinds["order-status"].committed, 0.60)
    # NURand ORs two uniform numbers: low bits are set in three of four cases, so some items are frequent.
    drawn = f"(ol_i_id - 1 - {C_ITEM} + {ITEMS}) % {ITEMS}"
    hot = _value(server, f"SELECT SUM({drawn} % 2) {NEW_LINES}")
    yield _share("lines of items that NURand prefers", hot, lines, 0.75)


def _share(name: str, found: int, of: int, wanted: float) -> Figure:
    error = STANDARD_ERRORS * math.sqrt(wanted * (1 - wanted) / of)
    return Figure(
        f"tpcc: {name}",
        100 * found / of,
        "%",
        at_least=100 * (wanted - error),
        at_most=100 * (wanted + error),
        note=f"{found:,} of {of:,}; {100 * wanted:g} % prescribed",
    )


def _value(server: Server, query: str) -> int:
    with connected(server.address) as connection, connection.cursor() as cursor:
        cursor.execute(query)
        ((value,),) = cursor.fetchall()
    return int(value)
