"""`./tidemark history deliver`: what waits on this box goes to the histories that it was measured for."""

import argparse
import sys

from build.addresses import HIDDEN
from build.home import locate_for_writing
from history.errors import HistoryError
from history.open import is_server
from history.spool.journal import Waiting, journal_path, waiting_in
from history.spool.opening import open_recorded
from runners.console import say_problems


def deliver_(arguments: argparse.Namespace) -> int:
    """Deliver, and say what did; return 0 when nothing waits any more, else 2. Raises HistoryError."""
    home = locate_for_writing()
    if arguments.history and not is_server(arguments.history):
        raise HistoryError(
            "nothing waits for a history that is a file", hint="give the URL of one on a server"
        )
    waits = waiting_in(home.spool)
    if arguments.history:
        path = journal_path(home.spool, arguments.history)
        waits = [wait for wait in waits if journal_path(home.spool, wait.address) == path]
        return _deliver(waits, arguments.history)
    if not waits:
        print("nothing waits on this box")
    return max((_deliver([wait], wait.address) for wait in waits), default=0)


def _deliver(waits: list[Waiting], url: str) -> int:
    if HIDDEN in url:
        print(f"tidemark: {waits[0]}: give its URL by --history, with the password", file=sys.stderr)
        return 2
    with open_recorded(url, locate_for_writing()) as store:
        say_problems(store)
        left = bool(store.problems)
        where = store.where
    for wait in waits:
        print(f"{wait.found}: {'some stay on this box' if left else 'delivered'}")
    if not waits:
        print(f"nothing waits on this box for {where}")
    return 2 if left else 0
