"""Tables of functions on a terminal: what a version spends its CPU time on, and what changed between two."""

from rich.console import Console
from rich.table import Table
from rich.text import Text

from history.comparison.profile_diff import Differential, FunctionChange, costs, total
from history.rendering.functions import quality, shortened
from suites.profiling.stacks import StepProfile


def render_differential(both: Differential, limit: int, console: Console) -> None:
    """The functions that changed most, in µs per query, with their shares of the whole change."""
    table = Table(box=None, pad_edge=False)
    headings = ("own base", "contender", "change", "±", "share", "whole change", "share", "function")
    for heading in headings:
        table.add_column(heading, justify="left" if heading == "function" else "right", no_wrap=True)
    for each in both.functions[:limit]:
        table.add_row(*_row(each))
    console.print(table)
    old, new = both.base_total, both.contender_total
    change = f"{new - old:+.2f}, {new / old - 1:+.1%}"
    console.print(f"CPU per query of the whole server: {old:.2f} -> {new:.2f} µs ({change})", highlight=False)
    for name, profile in (("base", both.base), ("contender", both.contender)):
        console.print(f"{name}: {quality(profile)}", highlight=False, soft_wrap=True)


def render_costs(profile: StepProfile, limit: int, console: Console) -> None:
    """The functions of one version that take most time themselves, in µs per query."""
    table = Table(box=None, pad_edge=False)
    for heading in ("own", "share", "whole", "share", "function"):
        table.add_column(heading, justify="left" if heading == "function" else "right", no_wrap=True)
    everything = total(profile)
    found = sorted(costs(profile).items(), key=lambda each: (-each[1].own, each[0]))
    for name, cost in found[:limit]:
        shares = (f"{cost.own / everything:.1%}", f"{cost.whole:.2f}", f"{cost.whole / everything:.1%}")
        table.add_row(f"{cost.own:.2f}", *shares, Text(shortened(name)))
    console.print(table)
    console.print(
        f"CPU per query of the whole server: {everything:.2f} µs; {quality(profile)}", highlight=False
    )


def _row(each: FunctionChange) -> tuple[str | Text, ...]:
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
