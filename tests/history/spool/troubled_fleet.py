"""Random moments of what befalls a fleet: nothing that was recorded is lost, and nothing is there twice."""

import contextlib
import random
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from benchmarks.scale.history_server import HistoryServer
from benchmarks.scale.sessions import RecordedRound, differences
from benchmarks.scale.stand import WriterBox
from suites.postgres.configuration import NAME
from suites.server import ServerError
from tests.history.spool.proxy import Network, Proxy

BOXES = 3
FOREVER = 1e6
PATIENCE_SECONDS = 120
LONGEST_PAUSE = 1.5
"""Seconds between two faults, at most; and how long one lasts."""


class TroubledFleet:
    """Boxes, a network and a server with a replica."""

    def __init__(self, server: HistoryServer, folder: Path, moments: random.Random) -> None:
        self._server, self._folder, self._random = server, folder, moments
        self._servers = 1
        self._replica = self._new_replica()
        self._proxy = Proxy(server.socket)
        url = f"postgresql+psycopg://{NAME}@127.0.0.1:{self._proxy.port}/{NAME}?connect_timeout=2"
        self._boxes = [WriterBox(folder, number, url) for number in range(BOXES)]
        self.told = 0

    def suffer(self, moments: int) -> Counter[str]:
        """Let the boxes record, and so many faults happen at random moments; return how often each did."""
        faults: dict[str, Callable[[], None]] = {
            "server killed": self._kill,
            "server restarted": self._server_restarts,
            "replica promoted": self._promote,
            "network cut": lambda: self._network(Network.CUT),
            "network silent": lambda: self._network(Network.SILENT),
            "connections used up": self._use_up,
            "disk full": self._fill_disk,
            "box killed": self._kill_box,
        }
        for box in self._boxes:
            box.start(FOREVER, eager=True)
        self._await_rounds()
        happened: Counter[str] = Counter()
        for _ in range(moments):
            self._pause()
            kind = self._random.choice(list(faults))
            faults[kind]()
            happened[kind] += 1
        self._pause()
        return happened

    def settle(self) -> tuple[list[str], list[str]]:
        """End the boxes, let each deliver; return what is wrong in the history, and what still waits."""
        for box in self._boxes:
            box.kill()
        problems = [problem for box in self._boxes for problem in box.deliver()]
        begun: Counter[RecordedRound] = Counter()
        told: Counter[RecordedRound] = Counter()
        for box in self._boxes:
            its_begun, its_told = box.logged()
            begun += its_begun
            told += its_told
        self.told = told.total()
        return differences(self._server.url, told, begun), problems

    def end(self) -> None:
        """End what still runs, with the server."""
        for box in self._boxes:
            box.kill()
        self._proxy.close()
        self._replica.destroy()
        self._server.destroy()

    def _await_rounds(self) -> None:
        """Wait until each box has recorded, so that there is something to lose."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not all(box.logged()[1] for box in self._boxes):
            if time.monotonic() > deadline:
                raise TimeoutError(f"a box has recorded nothing in {PATIENCE_SECONDS} s")
            time.sleep(0.1)

    def _pause(self) -> None:
        time.sleep(self._random.uniform(0.0, LONGEST_PAUSE))

    def _kill(self) -> None:
        self._server.kill()
        self._pause()
        self._server.server.start()

    def _server_restarts(self) -> None:
        self._server.restart()

    def _network(self, to: Network) -> None:
        self._proxy.network = to
        self._pause()
        self._proxy.network = Network.WHOLE

    def _promote(self) -> None:
        """The primary dies; the replica takes its place, and gets a replica of its own."""
        self._server.kill()
        old = self._server
        self._server = self._replica
        self._proxy.behind = self._server.socket
        self._pause()
        self._server.promote()
        old.destroy()
        self._replica = self._new_replica()

    def _new_replica(self) -> HistoryServer:
        self._servers += 1
        return self._server.replica(self._folder / str(self._servers))

    def _use_up(self) -> None:
        self._proxy.network = Network.CUT
        with contextlib.ExitStack() as stack:
            with contextlib.suppress(ServerError):
                while True:
                    stack.enter_context(contextlib.closing(self._server.server.connect()))
            self._proxy.network = Network.WHOLE
            self._pause()

    def _fill_disk(self) -> None:
        """Nothing can be written any more: a limit of the size of files, which is what the server meets."""
        with self._server.no_room():
            self._pause()

    def _kill_box(self) -> None:
        box = self._random.choice(self._boxes)
        box.kill()
        self._pause()
        box.start(FOREVER, eager=True)
