"""Confirmations as one line of text."""

from history.changes.confirmation import Confirmation
from history.counts import counted
from history.numbers import change_text
from suites.metrics import label_of


def measurement(confirmed: Confirmation) -> str:
    """Return rounds, versions and result: `7 interleaved rounds, X against Y: -7.1 % (-8.0 to -6.2)`."""
    return (
        f"{counted_rounds(confirmed)}, {confirmed.before.version} against "
        f"{confirmed.after.version}: {interval(confirmed)}"
    )


def occasion(confirmed: Confirmation) -> str:
    """Return when and where: `confirmed the same night`, `replicated on db2`, another box of the pool."""
    if confirmed.replicated_on:
        return f"replicated on {confirmed.replicated_on}"
    return "confirmed the same night"


def counted_rounds(confirmed: Confirmation) -> str:
    """Return what was measured: `7 interleaved rounds`, in long mode `blocks`; `2 counted passes of each`."""
    if confirmed.is_counted:
        return f"{confirmed.rounds} counted passes of each"
    return counted(confirmed.rounds, f"interleaved {confirmed.round_name}")


def interval(confirmed: Confirmation) -> str:
    """Return the change from the old version to the new one: `-7.1 % (-8.0 to -6.2)`."""
    return change_text(confirmed.ratio, confirmed.low, confirmed.high)


def series_name(confirmed: Confirmation) -> str:
    """Return step and metric: `insert qps`."""
    return f"{confirmed.key.step} {label_of(confirmed.key.metric)}"
