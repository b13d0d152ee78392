"""A network that can be cut: a TCP proxy before the Unix socket of a Postgres server."""

import contextlib
import select
import socket
import threading
from enum import Enum
from pathlib import Path


class Network(Enum):
    """What becomes of bytes on their way."""

    WHOLE = "whole"
    CUT = "cut"
    """Connections are reset, and new ones refused at once."""

    SILENT = "silent"
    """Nothing arrives, in neither direction, and nothing is reset: as behind a firewall that drops."""


class Proxy:
    """Listens on a port of this machine until it is closed."""

    def __init__(self, behind: Path) -> None:
        """`behind` is the server's socket, which can be replaced meanwhile."""
        self.behind = behind
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port = int(self._listener.getsockname()[1])
        self._network = Network.WHOLE
        self._lock = threading.Lock()
        self._pairs: set[tuple[socket.socket, socket.socket]] = set()
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def network(self) -> Network:
        """What becomes of bytes now."""
        return self._network

    @network.setter
    def network(self, to: Network) -> None:
        with self._lock:
            self._network = to
            pairs = list(self._pairs)
        if to is Network.CUT:
            for pair in pairs:
                _shut(pair)

    def close(self) -> None:
        """End all connections."""
        self.network = Network.CUT
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        server = socket.socket(socket.AF_UNIX)
        pair = (client, server)
        with client, server, contextlib.suppress(OSError):
            if self._network is Network.CUT:
                return
            server.connect(str(self.behind))
            with self._lock:
                self._pairs.add(pair)
            try:
                self._pass_on(client, server)
            finally:
                with self._lock:
                    self._pairs.discard(pair)

    def _pass_on(self, client: socket.socket, server: socket.socket) -> None:
        other = {client: server, server: client}
        while True:
            ready, _, _ = select.select([client, server], [], [], 0.1)
            if self._network is Network.CUT:
                return
            if self._network is Network.SILENT:
                threading.Event().wait(0.05)
                continue
            for end in ready:
                data = end.recv(65536)
                if not data:
                    return
                other[end].sendall(data)


def _shut(pair: tuple[socket.socket, socket.socket]) -> None:
    for end in pair:
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
