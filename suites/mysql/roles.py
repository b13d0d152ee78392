"""What the threads of mysqld are for, by the names that performance_schema gives them."""

import re

_ROLES = (
    ("one_connection", "client connection"),
    ("page_flush|page_cleaner", "page cleaner"),
    ("purge|srv_worker", "purge"),
    ("log_", "log writer"),
    ("io_(read|write|ibuf|log)", "io"),
    ("^main$", "main"),
)
"""Pattern within the last part of a name, and the role. 5.7 to 9.x have their own names for some."""


def role_of(name: str) -> str:
    """The role of a thread such as `thread/innodb/page_flush_thread`; one unknown keeps its own name."""
    plain = name.rsplit("/", 1)[-1].removesuffix("_thread")
    for pattern, role in _ROLES:
        if re.search(pattern, plain):
            return role
    return plain.replace("_", " ").replace(";", " ")
