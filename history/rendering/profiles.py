"""Functions of profiles as text, as JSON and as tables: what they cost, and what changed between versions.

`compare` names functions too: rich and the modules of profiles are loaded by the tables only.
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
"""Characters of a function: C++ has names of hundreds."""


def quality(profile: "StepProfile") -> str:
    """One line on how many samples a profile rests on, and what makes it doubtful."""
    its = profile.quality
    reasons = its.warnings()
    samples = f"{its.samples} samples by {profile.event} over {profile.queries:.0f} queries"
    stacks = f"{its.shallow:.1%} shallow stacks, {its.unknown:.1%} frames without a name"
    return f"{samples}, {stacks}" + (f"; doubtful: {'; '.join(reasons)}" if reasons else "")


def differential_json(both: "Differential", limit: int, drawn: Sequence[str]) -> str:
    """Everything that the table of functions says, as JSON; times in µs per query, shares as fractions."""
    return json.dumps(
        {
            "base_us_per_query": both.base_total,
            "contender_us_per_query": both.contender_total,
            "quality": {"base": vars(both.base.quality), "contender": vars(both.contender.quality)},
            "functions": [function_values(each) for each in both.functions[:limit]],
            "flame_graphs": list(drawn),
        },
        indent=1,
    )


def named_functions(changes: Sequence["FunctionChange"]) -> str:
    """Functions with their gains, for a line of text."""
    return ", ".join(
        f"{shortened(each.name)} {each.own_change:+.2f} µs"
        + (f" ({each.own_share:.0%})" if each.own_share else "")
        for each in changes
    )


def shortened(name: str) -> str:
    """A name of at most LONGEST_NAME characters."""
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"


def function_values(each: "FunctionChange") -> dict[str, object]:
    """One function as JSON has it."""
    return {
        "function": each.name,
        "own_base": each.base.own,
        "own_contender": each.contender.own,
        "own_error": each.own_error,
        "own_share": each.own_share,
        "whole_base": each.base.whole,
        "whole_contender": each.contender.whole,
        "whole_share": each.whole_share,
    }


def render_differential(both: "Differential", limit: int, console: "Console") -> None:
    """The functions that changed most, in µs per query, with their shares of the whole change."""
    headings = ("own base", "contender", "change", "±", "share", "whole change", "share", "function")
    table = _table(headings)
    for each in both.functions[:limit]:
        table.add_row(*_row(each))
    console.print(table)
    old, new = both.base_total, both.contender_total
    change = f"{new - old:+.2f}, {new / old - 1:+.1%}"
    console.print(f"CPU per query of the whole server: {old:.2f} -> {new:.2f} µs ({change})", highlight=False)
    for name, profile in (("base", both.base), ("contender", both.contender)):
        console.print(f"{name}: {quality(profile)}", highlight=False, soft_wrap=True)


def render_costs(profile: "StepProfile", limit: int, console: "Console") -> None:
    """The functions of one version that take most time themselves, in µs per query."""
    from rich.text import Text

    from history.comparison.profile_diff import costs, total

    table = _table(("own", "share", "whole", "share", "function"))
    everything = total(profile)
    by_cost = sorted(costs(profile).items(), key=lambda each: (-each[1].own, each[0]))
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


def _row(each: "FunctionChange") -> "tuple[str | Text, ...]":
    from rich.text import Text

    change = Text(f"{each.own_change:+.2f}", style="bold" if each.is_certain else "")
    return (
        f"{each.base.own:.2f}",
        f"{each.contender.own:.2f}",
        change,
        "-" if each.own_error is None else f"{each.own_error:.2f}",
        _share(each.own_share),
        f"{each.whole_change:+.2f}",
        _share(each.whole_share),
        Text(shortened(each.name)),  # brackets in names are no markup
    )


def _share(share: float | None) -> str:
    return "-" if share is None else f"{share:.0%}"
