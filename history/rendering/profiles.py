"""Functions of profiles as text, JSON and tables: their CPU time, and its change between versions.

`compare` names functions too, so that the modules of profiles are loaded only for tables.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from history.escaping.json_strings import json_text
from history.rendering.plain_table import BOLD, PlacedField, Screen

if TYPE_CHECKING:
    from history.comparison.profile_diff import Differential, FunctionChange
    from suites.profiling.stacks import StepProfile

ONE_COMPILER = 0.002
"""The change of all instructions, as a fraction, below which functions only take over work of each other."""

LONGEST_NAME = 60
"""The characters of a function's name at most; C++ has names of hundreds."""


def quality(profile: "StepProfile") -> str:
    """Return one line with the number of samples of a profile, and reasons not to rely on it."""
    if profile.is_exact:
        return f"{profile.samples} instructions counted over {profile.queries:.0f} queries"
    figures = profile.quality
    reasons = figures.warnings()
    samples = f"{figures.samples} samples by {profile.event} over {profile.queries:.0f} queries"
    stacks = f"{figures.shallow:.1%} shallow stacks, {figures.unknown:.1%} frames without a name"
    return f"{samples}, {stacks}" + (f"; unreliable: {'; '.join(reasons)}" if reasons else "")


def differential_json(both: "Differential", limit: int, drawn: Sequence[str]) -> str:
    """Return the table of functions as JSON, with times in µs per query and shares as fractions."""
    return json_text(
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
    """Return functions with the CPU time or the instructions that they gained, as one line of text."""
    return ", ".join(
        f"{shortened(function.name)} "
        + (f"{function.own_change:+.2f} µs" if function.calls is None else f"{function.own_change:+.0f}")
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
        **({} if function.calls is None else {"calls": list(function.calls)}),
    }


def render_differential(both: "Differential", limit: int, screen: Screen) -> None:
    """Print the functions that changed most, in µs per query, with their shares of the whole change."""
    if both.base.is_exact:
        _render_exact(both, limit, screen)
        return
    heads = ("own base", "contender", "change", "±", "share", "whole change", "share", "function")
    _print_table(screen, heads, map(_row, both.functions[:limit]))
    old, new = both.base_total, both.contender_total
    change = f"{new - old:+.2f}, {new / old - 1:+.1%}"
    screen.line(f"CPU per query of the whole server: {old:.2f} -> {new:.2f} µs ({change})")
    screen.lines([f"base: {quality(both.base)}", f"contender: {quality(both.contender)}"])


def _render_exact(both: "Differential", limit: int, screen: Screen) -> None:
    """Print the functions whose counted instructions changed most, and whether by calls or by each call."""
    heads = ("own base", "contender", "change", "share", "whole change", "calls base", "contender", "by")
    _print_table(screen, (*heads, "function"), map(_exact_row, both.functions[:limit]))
    old, new = both.base_total, both.contender_total
    screen.line(
        f"Exact instructions per query of the client's backend: {old:.0f} -> {new:.0f} "
        f"({new - old:+.0f}, {new / old - 1:+.2%})"
    )
    if abs(new / old - 1) < ONE_COMPILER:
        screen.lines(
            [
                "The totals are as good as equal: differences between functions are the compiler's choices, "
                "such as what is inlined."
            ]
        )


def render_costs(profile: "StepProfile", limit: int, screen: Screen) -> None:
    """Print the functions of one version with the most own CPU time, in µs per query."""
    from history.comparison.profile_diff import costs, total

    everything = total(profile)
    by_cost = sorted(costs(profile).items(), key=lambda item: (-item[1].own, item[0]))
    rows = [
        (
            f"{cost.own:.2f}",
            f"{cost.own / everything:.1%}",
            f"{cost.whole:.2f}",
            f"{cost.whole / everything:.1%}",
            shortened(name),
        )
        for name, cost in by_cost[:limit]
    ]
    _print_table(screen, ("own", "share", "whole", "share", "function"), rows)
    what = f"CPU per query of the whole server: {everything:.2f} µs"
    if profile.is_exact:
        what = f"Exact instructions per query of the client's backend: {everything:.0f}"
    screen.line(f"{what}; {quality(profile)}")


def _print_table(screen: Screen, heads: Sequence[str], rows: Iterable[Sequence[str | PlacedField]]) -> None:
    placed = [[PlacedField(cell) if isinstance(cell, str) else cell for cell in row] for row in rows]
    screen.table(heads, [placed], ("function",), gap=2, has_rule=False)


def _row(function: "FunctionChange") -> Sequence[str | PlacedField]:
    return (
        f"{function.base.own:.2f}",
        f"{function.contender.own:.2f}",
        PlacedField(f"{function.own_change:+.2f}", BOLD if function.is_certain else ""),
        "-" if function.own_error is None else f"{function.own_error:.2f}",
        _share(function.own_share),
        f"{function.whole_change:+.2f}",
        _share(function.whole_share),
        shortened(function.name),
    )


def _exact_row(function: "FunctionChange") -> Sequence[str]:
    calls = function.calls or (0.0, 0.0)
    return (
        f"{function.base.own:.0f}",
        f"{function.contender.own:.0f}",
        f"{function.own_change:+.0f}",
        _share(function.own_share),
        f"{function.whole_change:+.0f}",
        *(f"{call:.2f}" for call in calls),
        {None: "-", True: "calls", False: "each call"}[function.is_called_more],
        shortened(function.name),
    )


def _share(share: float | None) -> str:
    return "-" if share is None else f"{share:.0%}"
