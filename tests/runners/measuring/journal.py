"""Servers, a load generator and a store that only remember what they were asked to do."""

import contextlib
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import cast

from build.finished_build import Build
from build.version import Engine
from history.store.records import DroppedRound, RunRecord, RunStatus
from suites.control_groups.declared import DiskUse, MemoryUse
from suites.generators.load import CountedLoad, CountedWork, Load, LoadError, Observer, OverLimitError, Share
from suites.keys.step import Step
from suites.server import Address, ClientStates, Instrument, Server, ServerError
from suites.turns.warmth import Warmth


class Journal:
    """Remembers what servers, generator and store were asked to do, in order; and what is to go wrong."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.records: list[RunRecord] = []
        self.dropped: list[DroppedRound] = []
        self.warmth: dict[str, Warmth] = {}
        self.shares: list[Share] = []
        self.dies_in: dict[str, int] = {}
        """`release step` to how often the server dies in it."""
        self.never_starts_again: set[str] = set()
        self.unloadable: set[str] = set()
        self.speed: dict[str, float] = {}
        """Release to its throughput, of 1000; alternates by 1 % from round to round."""
        self.disturbed = 0
        """How many rounds from now on are disturbed."""
        self.over: dict[str, str] = {}
        """Step to the release on which it is over its limit."""

    def record_runs(self, session: int, records: Sequence[RunRecord]) -> None:
        for record in records:
            key = (record.build.version, record.step, record.repetition)
            assert key not in {(old.build.version, old.step, old.repetition) for old in self.records}
            self.records.append(record)
            self.lines.append(f"record {record.build.release} {record.step} {record.status}")

    def record_warmth(self, session: int, step: str, warmth: Warmth) -> None:
        self.warmth[step] = warmth

    def record_dropped(self, session: int, dropped: DroppedRound) -> None:
        self.dropped.append(dropped)

    def rounds_of(self, release: str, step: str) -> list[tuple[int, RunStatus]]:
        return [
            (record.repetition, record.status)
            for record in self.records
            if (record.build.release, record.step) == (release, step)
        ]


class FakeServer:
    def __init__(self, build: Build, journal: Journal) -> None:
        self.build, self.journal = build, journal
        self.address = Address(Engine.POSTGRES, Path("/nowhere/.s.PGSQL.5432"), "tidemark", build.release)
        self.pid, self.cores, self.starts, self.dead = 1, 1, 0, False
        self.chosen: dict[str, str] = {}

    def _say(self, what: str) -> None:
        self.journal.lines.append(f"{what} {self.build.release}")

    @property
    def loaded(self) -> Path:
        return Path("/nowhere/loaded")

    def use(self, layout: Build) -> None:
        self._say(f"use {layout.prefix.name} of")

    def create(self, data: Path | None = None) -> None:
        self._say("create")

    def start(self, instrument: Instrument | None = None) -> Mapping[str, float]:
        self.starts += 1
        if self.starts > 1 and self.build.release in self.journal.never_starts_again:
            raise ServerError("it does not start")
        self.dead = False
        self._say("start")
        return {}

    def stop(self) -> None:
        self._say("stop")

    def end_loading(self) -> None:
        self._say("end loading")

    def keep(self) -> None:
        self._say("keep")

    def restore(self, *, is_timed: bool = True) -> None:
        self._say("restore")

    def abandon(self) -> None:
        self.dead = True
        self._say("abandon")

    def destroy(self) -> None:
        self._say("destroy")

    def keeping_row_versions(self) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()

    def errors_logged(self) -> list[str]:
        return []

    def death(self) -> str | None:
        return "killed by SIGKILL" if self.dead else None

    def settings(self) -> Mapping[str, str]:
        return {"shared_buffers": "1GB"}

    def roles(self) -> Mapping[int, str]:
        return {}

    def debt(self) -> Mapping[str, float]:
        return {}

    def open_client_states(self) -> contextlib.AbstractContextManager[ClientStates]:
        return contextlib.nullcontext(ClientStates(dict))

    def cache_use(self) -> MemoryUse:
        return MemoryUse(0, 1)

    def disk_use(self) -> DiskUse | None:
        return None

    def checkpoint_meter(self) -> Callable[[], float]:
        return lambda: True

    def log_meter(self) -> Callable[[], None]:
        return lambda: None

    def open_activities(self) -> contextlib.AbstractContextManager[Callable[[], Collection[str]]]:
        return contextlib.nullcontext(tuple)

    def open_counters(self) -> contextlib.AbstractContextManager[Callable[[], Mapping[str, float]]]:
        return contextlib.nullcontext(dict)

    def counters(self) -> Mapping[str, float]:
        return {"wal_bytes_per_op": 0.0}

    def reset(self) -> Mapping[str, float]:
        self._say("reset")
        return {"reset_seconds": 0.1}


def as_server(fake: FakeServer) -> Server:
    """What rounds ask of a server is asked of the fake."""
    return cast("Server", fake)


class FakeGenerator:
    def __init__(self, journal: Journal, servers: Mapping[str, FakeServer]) -> None:
        self.journal, self.servers = journal, servers

    def version(self) -> str:
        return "fake 1.0"

    def load(self, address: Address) -> None:
        if address.database in self.journal.unloadable:
            raise LoadError("no data")
        self.journal.lines.append(f"load {address.database}")

    def alternate(
        self, addresses: Sequence[Address], step: Step, share: Share, observers: Sequence[Observer]
    ) -> list[Load]:
        journal = self.journal
        names = [address.database for address in addresses]
        journal.lines.append(f"run {' '.join(names)} {step.name}")
        journal.shares.append(share)
        for place, name in enumerate(names):
            if journal.dies_in.get(f"{name} {step.name}", 0):
                journal.dies_in[f"{name} {step.name}"] -= 1
                self.servers[name].dead = True
                raise LoadError("connection lost", place=place)
        if step.name in journal.over:
            seconds = [None if name == journal.over[step.name] else 2.5 for name in names]
            raise OverLimitError(step.name, 10.0, dict(enumerate(seconds)))
        wobble = 1.01 if share.round % 2 else 1.0
        return [
            Load(3000, 3000 * journal.speed.get(name, 1.0) * wobble, 3.0, 0, (1000.0,), {"mean": 1.0}, 1, 3.0)
            for name in names
        ]

    def run(self, *arguments: object) -> Load:
        raise NotImplementedError

    def statements(self, address: Address, step: Step) -> list[str]:
        return []

    def count(self, address: Address, step: Step, work: CountedWork) -> CountedLoad:
        raise NotImplementedError
