"""A plan of the service whose nights are short: one box, and seconds of one suite."""

import json
from collections.abc import Sequence

LABEL = "tidemark-here"

RELEASE = 'releases = ["18.6"]'


def small_plan(
    steps: Sequence[str],
    alerts: str,
    *,
    seconds: float = 1.0,
    rounds: int = 1,
    base: str = "postgres@17.11",
    followed: str = RELEASE,
    exact: bool = True,
) -> str:
    """The text of nightly.toml; `alerts` and `followed` are lines of it, rounds and seconds are per step."""
    return f"""
[boxes.here]
label = "{LABEL}"
hostname = "*"
[engines.postgres]
base = "{base}"
{followed}
[[tasks]]
suite = "write-heavy"
profile = "smoke"
steps = {json.dumps(list(steps))}
seconds = {seconds}
rounds = {rounds}
keep_disturbed = true
perf = false
exact = {json.dumps(exact)}
[alerts]
{alerts}
"""
