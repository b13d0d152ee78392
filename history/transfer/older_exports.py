"""Rows of exports that an older Tidemark wrote, completed as its migrations complete a history."""

from collections.abc import Callable, Iterator, Mapping

from history.transfer.portable_schema import Row


def _asked(row: Row) -> Row:
    """Return an alert with the columns of 0008_alert_intent.sql."""
    attempted = row.get("attempts", 0) and (row.get("issue") is not None or row.get("wanted") == "open")
    return {"asked_state": row.get("wanted") if attempted else None, "repository": None, **row}


def _with(columns: str) -> Callable[[Row], Row]:
    """Return what adds columns that are null in older rows."""
    return lambda row: {**dict.fromkeys(columns.split()), **row}


def _acknowledged(change: Row) -> Iterator[tuple[str, Row]]:
    """Yield the acknowledgement that 0012_issues.sql gives a change."""
    if change.get("status") == "acknowledged":
        yield (
            "acknowledgements",
            {
                "change": change.get("fingerprint"),
                "happened_at": change.get("updated_at"),
                "kind": "acknowledged",
                "who": "",
                "reason": change.get("reason") or "",
                "until": None,
            },
        )


def _without_guess(night: Row) -> Row:
    """Return a night as 0014_imported_base.sql leaves it."""
    is_imported = str(night.get("session", "")).startswith("imported-")
    return {**night, "is_base": 0} if is_imported else night


COMPLETED: Mapping[str, tuple[tuple[int, Callable[[Row], Row]], ...]] = {
    "alerts": (
        (8, _asked),
        (12, _with("sent_title sent_body asked_after closed_as seen_at resolved_at unmuted_at members")),
        (18, _with("assignee assigned")),
    ),
    "nights": ((14, _without_guess),),
}
"""Table -> the schemas that changed its rows, ascending, each with what makes an earlier row one of it."""

FOLLOWING: Mapping[str, tuple[tuple[int, Callable[[Row], Iterator[tuple[str, Row]]]], ...]] = {
    "changes": ((12, _acknowledged),)
}
"""Table -> the schemas that made rows of other tables from its rows, each with what makes them."""


def completed(table: str, row: Row, schema: int) -> Iterator[tuple[str, Row]]:
    """Yield a row of an export with a schema as it is in the newest one, and rows that follow from it."""
    whole = row
    for number, complete in COMPLETED.get(table, ()):
        if schema < number:
            whole = complete(whole)
    yield table, whole
    for number, follow in FOLLOWING.get(table, ()):
        if schema < number:
            yield from follow(whole)
