"""A server with its companions, whose costs are counted apart; clients reach it through its pooler."""

import contextlib
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from build.build import Build
from suites.additions.companion import CompanionError
from suites.additions.registry import kind_of
from suites.control_groups.declared import DiskUse, MemoryUse
from suites.generators.placement import Placement
from suites.server import Address, ClientStates, Instrument, LogVolume, Server


class AccompaniedServer(Server):
    """A running server whose companions run too, from entering its context until its reset or its end.

    It implements suites.server.Server. `counters` have the CPU time of the companions, and `death` says how
    one of them ended.
    """

    def __init__(self, server: Server, names: Sequence[str], cores: Placement, usable: Sequence[int]) -> None:
        """Create it; nothing is started yet. `cores` are those of the server and its clients."""
        self._server = server
        self._companions = [kind_of(name).make(name, server.build, server.address) for name in names]
        self._cores = {name: _cores_of(name, cores, usable) for name in names}
        self.lag_bytes = 0.0

    def __enter__(self) -> Self:
        """Start the companions. Raises CompanionError."""
        try:
            for companion in self._companions:
                companion.start(self._cores[companion.name])
        except BaseException:
            self._stop_companions()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the companions, whatever happened."""
        self._stop_companions()

    def _stop_companions(self) -> None:
        with contextlib.ExitStack() as stack:
            while self._companions:
                stack.callback(self._companions.pop(0).stop)

    # --- what companions change

    @property
    def address(self) -> Address:
        """The address for clients: that of a pooler, if there is one."""
        addresses = [companion.address for companion in self._companions]
        return next((address for address in addresses if address is not None), self._server.address)

    @property
    def chosen(self) -> Mapping[str, str]:
        """The settings that were chosen for the session."""
        return self._server.chosen

    def death(self) -> str | None:
        """Return None while server and companions run, else how one of them ended."""
        ended = self._server.death()
        for companion in self._companions:
            if ended is None and (gone := companion.death()) is not None:
                ended = f"its companion {companion.name} ended: {gone}"
        return ended

    def counters(self) -> Mapping[str, float]:
        """Return the server's totals and the CPU time of the companions; note how far these are behind.

        Raises CompanionError if one of them no longer does its work.
        """
        self.lag_bytes = sum(companion.lag_bytes() for companion in self._companions)
        for companion in self._companions:
            reason = companion.death() or companion.trouble()
            if reason is not None and self._server.death() is None:
                raise CompanionError(f"{self.build.version}: its companion {companion.name} failed: {reason}")
        used = sum(companion.cpu_seconds() for companion in self._companions)
        return {**self._server.counters(), "companion_cpu_us_per_op": used * 1e6}

    def open_counters(self) -> contextlib.AbstractContextManager[Callable[[], Mapping[str, float]]]:
        """Return a context with a function that reads the server's totals."""
        return self._server.open_counters()

    def reset(self) -> Mapping[str, float]:
        """End the companions, then bring the server to rest; return also how far they were behind."""
        self._stop_companions()
        return {**self._server.reset(), "companion_lag_bytes": self.lag_bytes}

    def abandon(self) -> None:
        """End the companions and the server immediately."""
        self._server.abandon()
        self._stop_companions()

    def stop(self) -> None:
        """End the companions, and shut the server down."""
        self._stop_companions()
        self._server.stop()

    # --- what they do not change

    def use(self, layout: Build) -> None:
        """Run another layout of the build from the next start on."""
        self._server.use(layout)

    @property
    def build(self) -> Build:
        """The build that the server runs."""
        return self._server.build

    @property
    def pid(self) -> int:
        """The process at the root of the server's process tree, in which no companion is."""
        return self._server.pid

    @property
    def cores(self) -> int:
        """Number of processes that maintenance may use in parallel."""
        return self._server.cores

    def errors_logged(self) -> Sequence[str]:
        """Return the last errors in the log of the server since it was up, each once, in order."""
        return self._server.errors_logged()

    def settings(self) -> Mapping[str, str]:
        """Return the whole effective configuration of the server."""
        return self._server.settings()

    def cache_use(self) -> MemoryUse:
        """Return the use of what caches the server's data."""
        return self._server.cache_use()

    def disk_use(self) -> DiskUse | None:
        """Return what the server's control group has read and written of a disk with a limit."""
        return self._server.disk_use()

    def checkpoint_meter(self) -> Callable[[], float]:
        """Return a function that says how much of a checkpoint of the server is over since."""
        return self._server.checkpoint_meter()

    def log_meter(self) -> Callable[[], LogVolume | None]:
        """Return a function that returns what the server has written into its log."""
        return self._server.log_meter()

    def debt(self) -> Mapping[str, float]:
        """Return what vacuum or purge of the server has yet to do."""
        return self._server.debt()

    def open_client_states(self) -> contextlib.AbstractContextManager[ClientStates]:
        """Return a context in which the server can be asked what its clients do."""
        return self._server.open_client_states()

    def open_activities(self) -> contextlib.AbstractContextManager[Callable[[], Collection[str]]]:
        """Return a context in which the server says what goes on beside queries."""
        return self._server.open_activities()

    def roles(self) -> Mapping[int, str]:
        """Return the roles of the server's threads by kernel thread id."""
        return self._server.roles()

    def keeping_row_versions(self) -> contextlib.AbstractContextManager[None]:
        """Return a context in which no background work removes old versions of rows."""
        return self._server.keeping_row_versions()

    @property
    def loaded(self) -> Path:
        """The folder of the loaded data."""
        return self._server.loaded

    def create(self, data: Path | None = None) -> None:
        """Not of a running server."""
        raise NotImplementedError

    def start(self, instrument: Instrument | None = None) -> Mapping[str, float]:
        """Not of a running server."""
        raise NotImplementedError

    def end_loading(self) -> None:
        """Not of a running server."""
        raise NotImplementedError

    def keep(self) -> None:
        """Not of a running server."""
        raise NotImplementedError

    def restore(self, *, is_timed: bool = True) -> None:
        """Not of a running server."""
        raise NotImplementedError

    def destroy(self) -> None:
        """Not of a running server."""
        raise NotImplementedError


def _cores_of(name: str, cores: Placement, usable: Sequence[int]) -> tuple[int, ...] | None:
    """Return the cores of a companion: the clients', or those that neither they nor the server have.

    None if there are no others.
    """
    if kind_of(name).among_clients:
        return cores.client
    taken = {*(cores.server or usable), *(cores.client or usable)}
    return tuple(core for core in usable if core not in taken) or None
