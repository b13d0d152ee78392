"""Where servers and their clients run: the cores of each level of clients, by rule."""

from dataclasses import dataclass

from suites.keys.step import Step
from suites.sizing import Sizes

MIN_CORES_APART = 8
"""From so many cores on, load generators have cores of their own, which they can nearly fill."""

CLIENT_CORES = 6
"""One in so many cores is the load generators', about their share of the CPU time of point queries."""


@dataclass(frozen=True)
class Placement:
    """The cores of servers and of load generators; None does not bind them."""

    server: tuple[int, ...] | None
    client: tuple[int, ...] | None


def placement(step: Step, sizes: Sizes) -> Placement:
    """Return the placement of a step.

    Without levels it is that of the session. One client and its server share the last core. More clients
    and their server use all cores, or, where there are MIN_CORES_APART, cores apart.
    """
    if not step.clients or not sizes.usable:
        return Placement(sizes.bound_to, sizes.bound_to)
    cores = sizes.usable
    if step.clients[0] == 1:
        return Placement(cores[-1:], cores[-1:])
    if len(cores) < MIN_CORES_APART:
        return Placement(None, None)
    clients = len(cores) // CLIENT_CORES
    return Placement(cores[:-clients], cores[-clients:])


SLICE_CLIENTS = 4
"""A slice lasts as long as the profile says for up to so many clients per core, and longer in proportion."""


def stretched(slice_seconds: float, seconds: float, step: Step, sizes: Sizes) -> float:
    """Return the length of a slice of a level.

    When a slice ends, every client finishes its transaction, which takes the longer the more of them wait
    for a core. Two slices at least fit into `seconds`.
    """
    if not step.clients or not sizes.usable:
        return slice_seconds
    factor = max(1.0, step.clients[0] / (SLICE_CLIENTS * len(sizes.usable)))
    return max(slice_seconds, min(slice_seconds * factor, seconds / 2))


CONNECT_SECONDS = 0.6
"""Time from the start of sysbench to the first slice, for connecting and preparing statements."""

CONNECT_SECONDS_OF_CLIENT = 0.02
"""The same for every further client of every server, since all connect at once."""


def connect_seconds(clients: int, servers: int) -> float:
    """Return the time from the start of sysbench to the first slice, with so many clients of each server."""
    return CONNECT_SECONDS + CONNECT_SECONDS_OF_CLIENT * (clients - 1) * servers
