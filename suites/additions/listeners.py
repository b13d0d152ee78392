"""Idle connections to a Postgres server that have said LISTEN."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from build.home import ROOT
from suites.additions import listening
from suites.additions.companion import Companion
from suites.processes import tool
from suites.server import postgres_port


class Listeners(Companion):
    """suites.additions.listening in a process of its own, with the connections of the server's layer."""

    as_server_user = False  # its Python need not be readable for the server's user

    def command(self) -> Sequence[str | Path]:
        """Return the command line."""
        server = self.server
        place = [str(server.socket.parent), str(postgres_port(server.socket))]
        login = [server.user, server.database]
        ends_with_us = [tool("setpriv"), "--pdeathsig=TERM", "--"]
        program = [*ends_with_us, sys.executable, "-P", "-m", listening.__name__]
        return [*program, *place, *login, str(server.listeners), self._ready]

    @property
    def environment(self) -> Mapping[str, str]:
        """The modules of this checkout, and the password."""
        return {"PYTHONPATH": str(ROOT), **self.server.password_variables}

    def is_ready(self) -> bool:
        """Return whether all connections listen."""
        return self._ready.exists()

    @property
    def _ready(self) -> Path:
        return self.folder / "ready"
