"""The roles of mysqld's threads, derived from their names in performance_schema."""

import re

_ROLES = (
    ("one_connection", "client connection"),
    ("page_flush|page_cleaner", "page cleaner"),
    ("purge|srv_worker", "purge"),
    ("log_", "log writer"),
    ("io_(read|write|ibuf|log)", "io"),
    ("^main$", "main"),
)
"""Pairs of a pattern in the last part of a name and the role. Some names differ between 5.7 and 9.x."""


def role_of(name: str) -> str:
    """Return the role of a thread such as `thread/innodb/page_flush_thread`, or its name if unknown."""
    plain = name.rsplit("/", 1)[-1].removesuffix("_thread")
    for pattern, role in _ROLES:
        if re.search(pattern, plain):
            return role
    return plain.replace("_", " ").replace(";", " ")
