"""The companions of a server, which run beside it during a step; their costs are counted apart."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager

from suites.additions.companion import CompanionError
from suites.additions.registry import COMPANIONS
from suites.additions.variant import CompanionName
from suites.generators.placement import Placement
from suites.server import Address, Server


class Companions:
    """All companions of one server; what suites.server.Beside asks of them."""

    def __init__(
        self, server: Server, names: Sequence[CompanionName], cores: Placement, usable: Sequence[int]
    ) -> None:
        """Create them; nothing is started yet. `cores` are those of the server and its clients."""
        self._version = server.build.version
        self._running = [COMPANIONS[name].make(name, server.build, server.own_address) for name in names]
        self._cores = {str(name): _cores_of(name, cores, usable) for name in names}
        self._server = server
        self.lag_bytes = 0.0
        """How far they were behind the server's log when the counters were read last."""

    def start(self) -> None:
        """Start all of them. Raises CompanionError, and none runs."""
        try:
            for companion in self._running:
                companion.start(self._cores[companion.name])
        except BaseException:
            self.stop()
            raise

    @property
    def address(self) -> Address | None:
        """The address of the pooler among them; None without one."""
        return next((own.address for own in self._running if own.address is not None), None)

    def death(self) -> str | None:
        """Return None while all run, else how the first one that ended did."""
        for companion in self._running:
            if (gone := companion.death()) is not None:
                return f"its companion {companion.name} ended: {gone}"
        return None

    def counters(self) -> Mapping[str, float]:
        """Return their CPU time, and note how far they are behind.

        Raises CompanionError if one of them no longer does its work.
        """
        self.lag_bytes = sum(companion.lag_bytes() for companion in self._running)
        for companion in self._running:
            reason = companion.death() or companion.trouble()
            if reason is not None and self._server.own_death() is None:
                raise CompanionError(f"{self._version}: its companion {companion.name} failed: {reason}")
        return {"companion_cpu_us_per_op": sum(own.cpu_seconds() for own in self._running) * 1e6}

    def stop(self) -> Mapping[str, float]:
        """End those that run, whatever happens; return how many bytes of the log they were behind."""
        with ExitStack() as stack:
            while self._running:
                stack.callback(self._running.pop(0).stop)
        return {"companion_lag_bytes": self.lag_bytes}


@contextmanager
def accompanied(
    server: Server, names: Sequence[CompanionName], cores: Placement, usable: Sequence[int]
) -> Iterator[Companions]:
    """Run companions beside a running server until its reset, its end or that of the block.

    Without `names` it records the same metrics as a server with some. Raises CompanionError.
    """
    companions = Companions(server, names, cores, usable)
    companions.start()
    server.beside = companions
    try:
        yield companions
    finally:
        server.beside = None
        companions.stop()


def _cores_of(name: CompanionName, cores: Placement, usable: Sequence[int]) -> tuple[int, ...] | None:
    """Return the cores of a companion: the clients', or those that neither they nor the server have.

    None if there are no others.
    """
    if COMPANIONS[name].among_clients:
        return cores.client
    taken = {*(cores.server or usable), *(cores.client or usable)}
    return tuple(core for core in usable if core not in taken) or None
