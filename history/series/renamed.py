"""Steps, and branches, that ended in the night before others began, as when one is renamed."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

from sqlalchemy import Connection, func, select

from history.series.series import Night, bases_beside, in_environment, list_environments, nights_of
from history.store.records import Environment
from history.store.schema import nights, points, series
from history.timestamps import to_text


@dataclass(frozen=True)
class RenamedSteps:
    """Steps that ended, and those that began in the next night: series of other steps, judged anew."""

    environment: Environment
    branch: str
    ended: tuple[str, ...]
    begun: tuple[str, ...]
    last: Night
    """The last night of those that ended."""

    first: Night
    """The first night of those that began."""

    def __str__(self) -> str:
        """Return both, and what follows from that."""
        where = f"{self.environment.box}, {self.environment.suite}, {self.branch}"
        return (
            f"{where}: {_steps(self.ended)} ended on {self.last.started_at:%Y-%m-%d}, {_steps(self.begun)} "
            f"began on {self.first.started_at:%Y-%m-%d}; a step with a new name is a new series, "
            "and is not compared with the nights under the old name"
        )


def _steps(names: tuple[str, ...]) -> str:
    return f"step{'s' if len(names) > 1 else ''} {', '.join(names)}"


@dataclass(frozen=True)
class RenamedBranch:
    """A branch that ended, and one that began in the next night of the same base."""

    environment: Environment
    ended: str
    begun: str
    last: datetime
    """The start of the last night of the one that ended."""

    first: datetime
    """The start of the first night of the one that began."""

    def __str__(self) -> str:
        """Return both, and what follows from that."""
        where = f"{self.environment.box}, {self.environment.suite}"
        return (
            f"{where}: branch {self.ended} ended on {self.last:%Y-%m-%d}, {self.begun} began on "
            f"{self.first:%Y-%m-%d}; a branch with a new name is a new series, and is not compared with "
            "the nights under the old name"
        )


def renamed(
    connection: Connection, environments: Iterable[Environment] | None = None
) -> tuple[RenamedSteps | RenamedBranch, ...]:
    """Return the steps and branches that ended where others began, in some environments or in all."""
    wanted = list_environments(connection) if environments is None else environments
    return tuple(
        found
        for environment in wanted
        for find in (_in_environment, _branches)
        for found in find(connection, environment)
    )


def _branches(connection: Connection, environment: Environment) -> Iterable[RenamedBranch]:
    """Yield the branches of each base that ended where others of the same base began."""
    of_base: defaultdict[str, dict[str, Sequence[Night]]] = defaultdict(dict)
    for branch, base in bases_beside(connection, environment).items():
        of_base[base][branch] = nights_of(connection, environment, branch)
    for branches in of_base.values():
        nights_in_order = sorted(
            {night.started_at for its_nights in branches.values() for night in its_nights}
        )
        for last, first in pairwise(nights_in_order):
            ended = [branch for branch, its_nights in branches.items() if its_nights[-1].started_at == last]
            begun = [branch for branch, its_nights in branches.items() if its_nights[0].started_at == first]
            if len(ended) == len(begun) == 1 and len(branches[ended[0]]) > 1:
                yield RenamedBranch(environment, ended[0], begun[0], last, first)


def _in_environment(connection: Connection, environment: Environment) -> Iterable[RenamedSteps]:
    ranges: defaultdict[str, dict[str, tuple[str, str]]] = defaultdict(dict)
    query = (
        select(series.c.branch, series.c.step, func.min(nights.c.started_at), func.max(nights.c.started_at))
        .join_from(series, points, points.c.series_id == series.c.id)
        .join(nights, (nights.c.session_id == points.c.session_id) & (nights.c.branch == series.c.branch))
        .where(in_environment(series, environment), nights.c.is_base == 0)
        .group_by(series.c.branch, series.c.step, series.c.step_position)
        .order_by(series.c.branch, series.c.step_position)
    )
    for branch, step, first, last in connection.execute(query):
        earlier = ranges[branch].get(step, (first, last))
        ranges[branch][step] = (min(first, earlier[0]), max(last, earlier[1]))
    for branch, steps in ranges.items():
        if len(steps) > 1:
            yield from _of_branch(environment, branch, steps, nights_of(connection, environment, branch))


def _of_branch(
    environment: Environment,
    branch: str,
    steps: Mapping[str, tuple[str, str]],
    its_nights: Iterable[Night],
) -> Iterable[RenamedSteps]:
    measured = list(its_nights)
    for before, after in pairwise(measured):
        ended = tuple(step for step, (_, last) in steps.items() if last == to_text(before.started_at))
        begun = tuple(step for step, (first, _) in steps.items() if first == to_text(after.started_at))
        if ended and begun:
            yield RenamedSteps(environment, branch, ended, begun, before, after)
