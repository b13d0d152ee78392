"""One run of a load generator for each slice, and the sum of the runs."""

import time
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from operator import add

from suites.generators.load import Generator, Load, Observer, Share, WorkLimit, blamed_on
from suites.keys.step import Step
from suites.server import Address


class RestartedGenerator(Generator):
    """A load generator whose program cannot pause, so that each slice is a run of its own."""

    @abstractmethod
    def run(self, address: Address, step: Step, work: WorkLimit, observer: Observer, turn: int = 0) -> Load:
        """Run a step on one server; every `turn` has its own seed. Raises LoadError."""

    def alternate(
        self, addresses: Sequence[Address], step: Step, share: Share, observers: Sequence[Observer]
    ) -> list[Load]:
        """Run the program once per slice, and return one Load per server.

        It runs for whole seconds, so that a slice may be longer than scheduled. Warm-up slices are skipped.
        Random numbers are the same for all servers, and different in every slice.
        """
        schedule = share.schedule
        done: list[list[Load]] = [[] for _ in addresses]
        progress: list[list[tuple[float, float]]] = [[] for _ in addresses]
        for place, server in enumerate(schedule.order):
            if place >= schedule.warming:
                work = WorkLimit(schedule.slice_seconds, None)
                turn = share.round * len(schedule.order) + len(done[server])
                queries = sum(load.queries for load in done[server])
                share.works(server)
                began = time.monotonic()
                with blamed_on(server):
                    load = self.run(addresses[server], step, work, observers[server], turn)
                done[server].append(load)
                progress[server] += [(began, queries), (time.monotonic(), queries + load.queries)]
        return [
            replace(sum_of(loads), progress=tuple(points))
            for loads, points in zip(done, progress, strict=True)
        ]


def least_due(arrivals: float, done: int) -> int:
    """Return how many transactions were due of a Poisson process, of a program that does not say it.

    It is the least number that is likely, four standard deviations below the mean, and not less than were
    `done`: chance is never taken for a server that does not keep up.
    """
    return max(done, int(arrivals - 4 * arrivals**0.5))


def sum_of(loads: Sequence[Load]) -> Load:
    """Return the sum of runs, at least one, without the first second of each: clients fill their caches."""
    return reduce(
        add,
        (replace(load, per_second=load.per_second[1:] or load.per_second, restarted=True) for load in loads),
    )
