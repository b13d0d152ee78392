"""The table of client time: what queries wait for, in base and contender."""

import htpy as h

from history.comparison.profile_diff import ClientTime
from report.markup.formats import amount, signed
from report.markup.parts import cell, numeric, row, table

EVENTS = 12


def client_time_table(time: ClientTime) -> h.Node:
    """Return the wait events and stages whose share of a query's time changed most."""
    rows = [
        row(
            h.code[event.name[:80]],
            cell("waits" if event.name in time.waits else "executes"),
            numeric(amount(event.base.own)),
            numeric(amount(event.contender.own)),
            numeric(signed(event.own_change)),
            cell("certain" if event.is_certain else "not certain"),
        )
        for event in time.events[:EVENTS]
    ]
    heads = ("event", "query", "base, µs/query", "new, µs/query", "change, µs/query", "certainty")
    caption = f"Time of a client per query by wait event or stage; {signed(time.change)} µs in all"
    return table(heads, rows, caption=caption)
