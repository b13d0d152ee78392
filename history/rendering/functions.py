"""Functions of profiles in text and JSON: their names, their gains, and how far a profile can be believed."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from history.comparison.profile_diff import Differential, FunctionChange
    from suites.profiling.stacks import StepProfile

LONGEST_NAME = 60
"""Characters of a function: C++ has names of hundreds."""


def quality(profile: "StepProfile") -> str:
    """One line on what a profile rests on, and what to doubt."""
    found = profile.quality
    doubts = found.doubts()
    said = f"{found.samples} samples by {profile.event} over {profile.queries:.0f} queries"
    walked = f"{found.shallow:.1%} shallow stacks, {found.unknown:.1%} frames without a name"
    return f"{said}, {walked}" + (f"; doubtful: {'; '.join(doubts)}" if doubts else "")


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


def named(changes: Sequence["FunctionChange"]) -> str:
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
