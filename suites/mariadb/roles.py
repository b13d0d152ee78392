"""The roles of mariadbd's threads, derived from the names that the kernel has for them."""

CONNECTION = "client connection"
"""The role of a thread of the process list, as MySQL's have it."""

BACKGROUND = "background"
"""The role of a thread without a name of its own: of all but connections in releases such as 10.11."""

_ROLES = {
    "page_cleaner": "page cleaner",
    # One pool runs purge, the completion of I/O and checkpoints.
    "ib_tpool_worker": "InnoDB worker",
    "my_getevents": "io",
    "io_uring_wait": "io",
    "signal_handler": "signal handler",
}


def role_of(name: str) -> str:
    """Return the role of a thread that the kernel calls `name`."""
    return _ROLES.get(name, BACKGROUND)
