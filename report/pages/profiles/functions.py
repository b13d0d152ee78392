"""The table of functions: CPU time per query in base and contender."""

import htpy as h

from history.comparison.profile_diff import Differential
from report.markup.formats import amount, share, signed
from report.markup.parts import cell, numeric, row, table

FUNCTIONS = 20


def function_table(profiled: Differential) -> h.Node:
    """Return the functions whose own CPU time changed most."""
    whole = profiled.contender_total - profiled.base_total
    totals = (amount(profiled.base_total), amount(profiled.contender_total), signed(whole))
    rows = [row("whole server", *(numeric(text) for text in totals), cell(), cell())]
    rows += [
        row(
            h.code[function_change.name[:80]],
            numeric(amount(function_change.base.own)),
            numeric(amount(function_change.contender.own)),
            numeric(signed(function_change.own_change)),
            numeric(share(function_change.own_share, 0)),
            cell("certain" if function_change.is_certain else "not certain"),
        )
        for function_change in [
            function for function in profiled.functions if function.base.own or function.contender.own
        ][:FUNCTIONS]
    ]
    heads = (
        "function",
        "base, µs/query",
        "new, µs/query",
        "change, µs/query",
        "share of the change",
        "certainty",
    )
    return table(heads, rows, caption="CPU time per query by function, largest change first")
