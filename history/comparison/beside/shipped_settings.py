"""Settings of Postgres with which it was measured, and that its releases ship otherwise."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from build.engines import EngineRegistry
from build.version import Engine, Version
from history.comparison.beside.clients import clients_of
from history.comparison.result import OtherSetting, StepComparison
from history.series.variants import definition_in
from history.store.records import Session
from suites.metrics import Role

SLOW_SECONDS = 0.01
"""The time of a query from which on parallel workers and JIT may be worth what they cost to start."""


@dataclass(frozen=True)
class Shipped:
    """A setting that the configuration of a suite gives another value than releases have."""

    name: str
    value: str
    """That of releases."""

    since: int
    """The first major version that has this value."""

    until: int
    """The last one of which that is known."""

    of_slow_queries: bool


SHIPPED: EngineRegistry[Sequence[Shipped]] = EngineRegistry(
    "settings of releases",
    __name__,
    {
        Engine.POSTGRES: (
            Shipped("io_method", "worker", since=18, until=19, of_slow_queries=False),
            Shipped("max_parallel_workers_per_gather", "2", since=10, until=19, of_slow_queries=True),
            Shipped("jit", "on", since=12, until=18, of_slow_queries=True),
        ),
        Engine.MYSQL: (),
        Engine.MARIADB: (),
    },
)
"""What can decide which of two versions is faster. A history has what servers ran with alone."""


def other_settings(
    session: Session,
    versions: Sequence[Version],
    steps: Sequence[StepComparison],
    settings: Mapping[str, Mapping[str, str]],
) -> tuple[OtherSetting, ...]:
    """Return which settings of two versions are not those of their releases, and can matter in the steps.

    `settings` are those that servers ran with, by version. Those of slow queries matter in steps whose
    queries take SLOW_SECONDS, and what a variant sets is meant so.
    """
    is_slow = any(_seconds(session, step) >= SLOW_SECONDS for step in steps)
    return tuple(
        OtherSetting(version, shipped.name, settings[str(version)][shipped.name], shipped.value)
        for version in versions
        for shipped in _others(session, version, settings)
        if is_slow or not shipped.of_slow_queries
    )


def _others(
    session: Session, version: Version, settings: Mapping[str, Mapping[str, str]]
) -> Iterator[Shipped]:
    """Yield the settings that a version did not have as its release ships them."""
    ran_with = settings.get(str(version), {})
    major = re.match("[0-9]+", ran_with.get("server_version", ""))
    if major is None:
        return
    chosen = definition_in(session.options, version.variant).get("settings")
    for shipped in SHIPPED[version.engine]:
        value = ran_with.get(shipped.name, shipped.value)
        is_chosen = isinstance(chosen, Mapping) and shipped.name in chosen
        if shipped.since <= int(major[0]) <= shipped.until and value != shipped.value and not is_chosen:
            yield shipped


def _seconds(session: Session, step: StepComparison) -> float:
    """Return how long a query of the base takes; 0 where that is not known."""
    judged, clients = step.judged, clients_of(session, step.step)
    if judged.row.role is Role.THROUGHPUT:
        return clients / judged.base if clients and judged.base else 0.0
    return {"s": 1.0, "ms": 0.001}.get(judged.row.unit, 0.0) * (judged.base or 0.0)
