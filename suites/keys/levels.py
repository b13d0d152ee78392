"""Names of steps that are measured at several levels of clients: `read-write@8`."""

LEVEL = "@"
"""What stands between the name of a step and the clients of a level of it."""

MAX_CLIENTS = 10_000
"""The most clients of a level."""


def plain_name(step: str) -> str:
    """Return the name of a step without its level."""
    return step.partition(LEVEL)[0]


def level_of(step: str) -> str:
    """Return the level in the name of a step, `8`; empty if it is none of several."""
    return step.partition(LEVEL)[2]
