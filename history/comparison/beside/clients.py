"""How many clients a step of a session had at once."""

from collections.abc import Mapping

from history.comparison.beside.curves import LEVELS
from history.store.records import CLIENTS, LIMIT_SECONDS, Session
from suites.keys.levels import level_of


def clients_of(session: Session, step: str) -> int | None:
    """Return the clients of each version in a step; None where the session does not say.

    Sessions of older Tidemarks say how many a step with levels had, and how many there were without. Imported
    ones have the number in the name of the step.
    """
    if session.is_imported and level_of(step).isdecimal():
        return _count(int(level_of(step)))
    clients, levels = session.options.get(CLIENTS), session.options.get(LEVELS)
    if isinstance(clients, Mapping):
        return _count(clients.get(step))
    level = levels.get(step) if isinstance(levels, Mapping) else None
    if isinstance(level, Mapping):
        return _count(level.get("clients"))
    return 1 if LIMIT_SECONDS in session.options else _count(session.options.get("threads"))


def waiting_clients(session: Session, step: str) -> int | None:
    """Return the clients of a step if each waits for its answers; None where work arrives at a rate."""
    rates = session.options.get("rates")
    return None if isinstance(rates, Mapping) and step in rates else clients_of(session, step)


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and value > 0 else None
