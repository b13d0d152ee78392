"""Functions of profiles as text, JSON and tables: their CPU time, and its change between versions.

`compare` names functions too, so that rich and the modules of profiles are loaded only for tables.
"""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from history.comparison.profile_diff import Differential, FunctionChange
    from suites.profiling.stacks import StepProfile

LONGEST_NAME = 60
"""The characters of a function's name at most; C++ has names of hundreds."""


def quality(profile: "StepProfile") -> str:
    """Return one line with the number of samples of a profile, and reasons not to rely on it."""
    figures = profile.quality
    reasons = figures.warnings()
    samples = f"{figures.samples} samples by {profile.event} over {profile.queries:.0f} queries"
    stacks = f"{figures.shallow:.1%} shallow stacks, {figures.unknown:.1%} frames without a name"
    return f"{samples}, {stacks}" + (f"; unreliable: {'; '.join(reasons)}" if reasons else "")


def differential_json(both: "Differential", limit: int, drawn: Sequence[str]) -> str:
    """Return the table of functions as JSON, with times in µs per query and shares as fractions."""
    return json.dumps(
        {
            "base_us_per_query": both.base_total,
            "contender_us_per_query": both.contender_total,
            "quality": {"base": vars(both.base.quality), "contender": vars(both.contender.quality)},
            "functions": [function_values(function) for function in both.functions[:limit]],
            "flame_graphs": list(drawn),
        },
        indent=1,
    )


def named_functions(changes: Sequence["FunctionChange"]) -> str:
    """Return functions with the CPU time that they gained, as one line of text."""
    return ", ".join(
        f"{shortened(function.name)} {function.own_change:+.2f} µs"
        + (f" ({function.own_share:.0%})" if function.own_share else "")
        for function in changes
    )


def shortened(name: str) -> str:
    """Return a name of at most LONGEST_NAME characters."""
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"


def function_values(function: "FunctionChange") -> dict[str, object]:
    """Return the JSON object of one function."""
    return {
        "function": function.name,
        "own_base": function.base.own,
        "own_contender": function.contender.own,
        "own_error": function.own_error,
        "own_share": function.own_share,
        "whole_base": function.base.whole,
        "whole_contender": function.contender.whole,
        "whole_share": function.whole_share,
    }


def render_differential(both: "Differential", limit: int, console: "Console") -> None:
    """Print the functions that changed most, in µs per query, with their shares of the whole change."""
    headings = ("own base", "contender", "change", "±", "share", "whole change", "share", "function")
    table = _table(headings)
    for function in both.functions[:limit]:
        table.add_row(*_row(function))
    console.print(table)
    old, new = both.base_total, both.contender_total
    change = f"{new - old:+.2f}, {new / old - 1:+.1%}"
    console.print(f"CPU per query of the whole server: {old:.2f} -> {new:.2f} µs ({change})", highlight=False)
    for name, profile in (("base", both.base), ("contender", both.contender)):
        console.print(f"{name}: {quality(profile)}", highlight=False, soft_wrap=True)


def render_costs(profile: "StepProfile", limit: int, console: "Console") -> None:
    """Print the functions of one version with the most own CPU time, in µs per query."""
    from rich.text import Text

    from history.comparison.profile_diff import costs, total

    table = _table(("own", "share", "whole", "share", "function"))
    everything = total(profile)
    by_cost = sorted(costs(profile).items(), key=lambda item: (-item[1].own, item[0]))
    for name, cost in by_cost[:limit]:
        shares = (f"{cost.own / everything:.1%}", f"{cost.whole:.2f}", f"{cost.whole / everything:.1%}")
        table.add_row(f"{cost.own:.2f}", *shares, Text(shortened(name)))
    console.print(table)
    console.print(
        f"CPU per query of the whole server: {everything:.2f} µs; {quality(profile)}", highlight=False
    )


def _table(headings: Sequence[str]) -> "Table":
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for heading in headings:
        table.add_column(heading, justify="left" if heading == "function" else "right", no_wrap=True)
    return table


def _row(function: "FunctionChange") -> "tuple[str | Text, ...]":
    from rich.text import Text

    change = Text(f"{function.own_change:+.2f}", style="bold" if function.is_certain else "")
    return (
        f"{function.base.own:.2f}",
        f"{function.contender.own:.2f}",
        change,
        "-" if function.own_error is None else f"{function.own_error:.2f}",
        _share(function.own_share),
        f"{function.whole_change:+.2f}",
        _share(function.whole_share),
        Text(shortened(function.name)),  # Text, because names can contain brackets
    )


def _share(share: float | None) -> str:
    return "-" if share is None else f"{share:.0%}"
