"""Functions of profiles as text, JSON and tables: their CPU time, and its change between versions.

`compare` names functions too, so that the modules of profiles are loaded only for tables.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from history.comparison.explanation import Explanation
from history.escaping.characters import unbroken
from history.escaping.json_strings import json_text
from history.rendering.plain_table import BOLD, PlacedField, Screen
from history.stats.sample_counts import CONFIDENCE, MIN_COUNT, MIN_ROUNDS, Bounds

if TYPE_CHECKING:
    from history.comparison.profile_diff import ClientTime, Differential, FunctionChange
    from history.comparison.result import StepComparison
    from suites.profiling.stacks import StepProfile

ONE_COMPILER = 0.002
"""The change of all instructions, as a fraction, below which functions only take over work of each other."""

MAX_SHARES = 1.05
"""The most that the shares of functions add up to, rounded ones included, where shares say anything."""

LONGEST_NAME = 60
"""The characters of a function's name at most; C++ has names of hundreds."""


def quality(profile: "StepProfile") -> str:
    """Return one line with the number of samples of a profile, and reasons not to rely on it."""
    if profile.is_exact:
        return f"{profile.samples} instructions counted over {profile.queries:.0f} queries"
    figures = profile.quality
    reasons = figures.warnings()
    samples = f"{figures.samples} samples by {profile.event} over {profile.queries:.0f} queries"
    stacks = (
        f"{100 * figures.shallow:.1f} % shallow stacks, {100 * figures.unknown:.1f} % frames without a name"
    )
    return f"{samples}, {stacks}" + (f"; unreliable: {'; '.join(reasons)}" if reasons else "")


def differential_json(both: "Differential", limit: int, drawn: Sequence[str], stacks: Sequence[str]) -> str:
    """Return the table of functions as JSON, with times in µs per query and shares as fractions."""
    return json_text(
        {
            "base_us_per_query": both.base_total,
            "contender_us_per_query": both.contender_total,
            "change_interval": None if both.total_interval is None else list(both.total_interval),
            "quality": {"base": vars(both.base.quality), "contender": vars(both.contender.quality)},
            "functions": [function_values(function) for function in both.functions[:limit]],
            "flame_graphs": list(drawn),
            "folded_stacks": list(stacks),
        },
        indent=1,
    )


def named_functions(changes: Sequence["FunctionChange"]) -> str:
    """Return functions with the CPU time or the instructions that they gained, as one line of text.

    Their shares of the whole change are left out where others lost so much that these exceed all of it.
    """
    has_shares = sum(function.own_share or 0 for function in changes) <= MAX_SHARES
    return ", ".join(
        f"{labelled(function)} "
        + (f"{function.own_change:+.2f} µs" if function.calls is None else f"{function.own_change:+,.0f}")
        + (f" ({100 * function.own_share:.0f} %)" if has_shares and function.own_share else "")
        for function in changes
    )


def gained_lines(step: "StepComparison") -> Iterator[str]:
    """Yield the functions and waits that a query of a step spends more on, each kind in one line."""
    if step.gained:
        yield f"{step.step}: CPU per query gained by {named_functions(step.gained)}"
    waits = named_events(step)
    if waits:
        yield f"{step.step}: waits: {waits}"
    if step.gained_instructions:
        yield f"{step.step}: instructions per query gained by {named_functions(step.gained_instructions)}"


def named_events(step: "StepComparison") -> str:
    """Return the wait events and stages that moved with the throughput of a step, as one line of text.

    Such as `LWLock:WALInsert +31.0 µs of +34.2 µs per query (+26.1 to +36.0)`, or, where others changed the
    other way, `stage updating +495 µs (+301 to +690), in all +322 µs per query`. Where none did and costs do
    not explain the change, it says how much of it clients spent on CPU. Empty where nothing is to be said.
    """
    whole, events = step.client_time, step.moved_events
    if whole is None:
        return ""
    if events:
        names = [event.name if event.name in whole.waits else f"stage {event.name}" for event in events]
        others = map(_event_text, names[1:], events[1:])
        return ", ".join([_part_text(names[0], events[0], whole), *others])
    if whole.cpu is None or step.explanation in (Explanation.COST, Explanation.PROFILE, None):
        return ""
    return f"none moved by much; {_part_text('CPU or waiting for a core', whole.cpu, whole)}"


def _part_text(name: str, event: "FunctionChange", whole: "ClientTime") -> str:
    """Return how an event moved, and all of a query; as a part of that if it is one."""
    change = f"{_microseconds(whole.change)} per query"
    if 0 <= event.own_change * whole.change <= whole.change**2:
        return _event_text(name, event, f" of {change}")
    return f"{_event_text(name, event)}, in all {change}"


def _event_text(name: str, event: "FunctionChange", of: str = "") -> str:
    low, high = event.own_interval or (event.own_change,) * 2
    bounds = f"{_microseconds(low)} to {_microseconds(high)}".replace(" µs", "")
    doubt = "" if event.is_certain else ", not certain"
    return f"{name} {_microseconds(event.own_change)}{of} ({bounds}{doubt})"


def _microseconds(change: float) -> str:
    """Return a change of a time with two digits at least."""
    digits = 0 if abs(change) >= 99.5 else 1 if abs(change) >= 9.5 else 2
    return f"{change:+,.{digits}f} µs"


def shortened(name: str) -> str:
    """Return a name of at most LONGEST_NAME characters."""
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"


def share_of_change(function: "FunctionChange") -> str:
    """Return how much of the whole change a function makes up, after a comma.

    Empty where that is not known, or so much more than all that others must have lost.
    """
    share = function.own_share or 0.0
    if not 0 < share <= MAX_SHARES:
        return ""
    return ", all of the change" if share > 0.995 else f", {100 * share:.0f} % of the change"


def labelled(function: "FunctionChange") -> str:
    """Return the name of a function, shortened, and what it is called in the base if that differs."""
    return shortened(function.name) + (f" (was {shortened(function.former)})" if function.former else "")


def function_values(function: "FunctionChange") -> dict[str, object]:
    """Return the JSON object of one function."""
    return {
        "function": function.name,
        **({"name_in_base": function.former} if function.former else {}),
        "own_base": function.base.own,
        "own_contender": function.contender.own,
        "own_change_interval": None if function.own_interval is None else list(function.own_interval),
        "is_certain": function.is_certain,
        "own_share": function.own_share,
        "whole_base": function.base.whole,
        "whole_contender": function.contender.whole,
        "whole_share": function.whole_share,
        **({} if function.calls is None else {"calls": list(function.calls)}),
    }


def render_differential(both: "Differential", limit: int, screen: Screen) -> None:
    """Print the functions that changed most, in µs per query; those whose change is certain come first.

    They are printed in bold, and a blank line parts them from functions whose change may be noise.
    """
    if both.base.is_exact:
        _render_exact(both, limit, screen)
        return
    heads = ("own base", "contender", "change", "interval", "share", "whole change", "function")
    screen.line("CPU per query in µs: own is in the function itself, whole is with all that it calls")
    shown = both.functions[:limit]
    certain = [_row(function) for function in shown if function.is_certain]
    _print_table(screen, heads, certain, [_row(function) for function in shown if not function.is_certain])
    old, new = both.base_total, both.contender_total
    bounds = f", interval {_bounds(both.total_interval)} µs" if both.total_interval else ""
    change = f"{new - old:+.2f} µs, {100 * (new / old - 1):+.1f} %{bounds}"
    screen.line(f"CPU per query of the whole server: {old:.2f} -> {new:.2f} µs ({change})")
    screen.lines([f"base: {quality(both.base)}", f"contender: {quality(both.contender)}"])
    screen.line(_certainty(both))


def _certainty(both: "Differential") -> str:
    """Return what the intervals say, and why there are none."""
    if both.rounds < MIN_ROUNDS:
        return f"Fewer than {MIN_ROUNDS} rounds do not show how functions scatter: no change is certain."
    number = len(both.certain)
    what = {0: "No function changed for certain", 1: "1 function changed for certain (above)"}
    said = what.get(number, f"{number} functions changed for certain (above, in bold)")
    tested = sum(function.own_interval is not None for function in both.functions)
    return (
        f"{said}: the intervals of {tested} functions hold together with {100 * CONFIDENCE:.0f} % over "
        f"{both.rounds} rounds. Functions with fewer than {MIN_COUNT} samples have none."
    )


def folded(profile: "StepProfile") -> str:
    """Return folded stacks with whole nanoseconds per query (or thousandths of an instruction) for samples.

    Other programs draw and compare them.
    """
    scale = 1000 * profile.microseconds_per_sample
    return "".join(
        f"{unbroken(stack)} {max(1, round(count * scale))}\n"
        for stack, count in sorted(profile.stacks.items())
    )


def conclusion(both: "Differential", base: str, contender: str) -> str:
    """Return in a sentence which function's change is largest, or that none is known to have changed."""
    unit = "instructions" if both.base.is_exact else "µs of CPU"
    certain = both.functions if both.base.is_exact else both.certain
    whole = both.contender_total - both.base_total
    moving = (function for function in certain if function.own_change * whole > 0)
    first = next(moving, None) or next((function for function in certain if function.own_change), None)
    if first is None:
        return f"No function of {contender} is known to use more or less CPU per query than in {base}."
    more = "more" if first.own_change > 0 else "less" if unit.startswith("µs") else "fewer"
    amount = f"{abs(first.own_change):.0f}" if both.base.is_exact else f"{abs(first.own_change):.2f}"
    what = f"{contender} uses {amount} {unit} {more} per query in {labelled(first)} than {base}"
    return f"{what}{share_of_change(first)}."


def _render_exact(both: "Differential", limit: int, screen: Screen) -> None:
    """Print the functions whose counted instructions changed most, and whether by calls or by each call."""
    heads = ("own base", "contender", "change", "share", "whole change", "calls base", "contender", "by")
    _print_table(screen, (*heads, "function"), map(_exact_row, both.functions[:limit]))
    old, new = both.base_total, both.contender_total
    screen.line(
        f"Exact instructions per query of the client's backend: {old:.0f} -> {new:.0f} "
        f"({new - old:+.0f}, {100 * (new / old - 1):+.2f} %)"
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
            f"{100 * (cost.own / everything):.1f} %",
            f"{cost.whole:.2f}",
            f"{100 * (cost.whole / everything):.1f} %",
            shortened(name),
        )
        for name, cost in by_cost[:limit]
    ]
    _print_table(screen, ("own", "share", "whole", "share", "function"), rows)
    what = f"CPU per query of the whole server: {everything:.2f} µs"
    if profile.is_exact:
        what = f"Exact instructions per query of the client's backend: {everything:.0f}"
    screen.line(f"{what}; {quality(profile)}")


def _print_table(
    screen: Screen, heads: Sequence[str], *sections: Iterable[Sequence[str | PlacedField]]
) -> None:
    placed = [
        [[PlacedField(cell) if isinstance(cell, str) else cell for cell in row] for row in rows]
        for rows in sections
    ]
    screen.table(heads, [rows for rows in placed if rows], ("function",), gap=2, has_rule=False)


def _row(function: "FunctionChange") -> Sequence[str | PlacedField]:
    style = BOLD if function.is_certain else ""
    return (
        f"{function.base.own:.2f}",
        f"{function.contender.own:.2f}",
        PlacedField(f"{function.own_change:+.2f}", style),
        "-" if function.own_interval is None else _bounds(function.own_interval),
        _share(function.own_share),
        f"{function.whole_change:+.2f}",
        PlacedField(labelled(function), style),
    )


def _bounds(interval: Bounds) -> str:
    return f"{interval[0]:+.2f} to {interval[1]:+.2f}"


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
        labelled(function),
    )


def _share(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.0f} %"
