"""Curves: the levels of a step in one comparison, from few clients to many."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from history.comparison.result import ContenderComparison, StepComparison
from suites.metrics import METRICS, Role

LEVELS = "levels"
"""The option of a session with its levels, by step: plain `step`, `clients`, and the cores of both sides."""


@dataclass(frozen=True)
class ClientLevel:
    """One level of a step: throughputs are geometric means over the rounds of both versions."""

    clients: int
    comparison: StepComparison
    base: float | None
    contender: float | None


@dataclass(frozen=True)
class Curve:
    """All levels of one step, in order of their clients."""

    step: str
    unit: str
    """The unit of the throughputs."""

    levels: tuple[ClientLevel, ...]
    cores: int
    """The cores of the machine."""


@dataclass(frozen=True)
class Shape:
    """What a curve of one version says."""

    peak: float
    clients: int
    """The clients of the level with the peak."""

    most: int
    """The clients of the highest level."""

    droop: float
    """How much less the highest level has than the peak, as a fraction of the peak."""

    per_core: float
    """The peak over the cores of the machine."""


def curves(contender: ContenderComparison) -> list[Curve]:
    """Return the curves of a comparison of throughput within one session; none of other metrics or nights."""
    levels = contender.session.options.get(LEVELS)
    if contender.nights is not None or not isinstance(levels, dict):
        return []
    by_step: dict[str, list[ClientLevel]] = {}
    for step in contender.steps:
        level = levels.get(step.step)
        if isinstance(level, Mapping) and METRICS[step.judged.metric].role is Role.THROUGHPUT:
            clients = int(level["clients"])
            client_level = ClientLevel(clients, step, step.judged.base, step.judged.contender)
            by_step.setdefault(str(level["step"]), []).append(client_level)
    cores = contender.session.machine.cores
    return [
        Curve(
            step,
            METRICS[found[0].comparison.judged.metric].unit,
            tuple(sorted(found, key=lambda level: level.clients)),
            cores,
        )
        for step, found in by_step.items()
        if len(found) > 1
    ]


def shape(clients: Sequence[int], throughputs: Sequence[float | None], cores: int) -> Shape | None:
    """Return the shape of a version's curve; None if its highest level has no throughput."""
    known = [(value, count) for value, count in zip(throughputs, clients, strict=True) if value]
    if not known or throughputs[-1] is None:
        return None
    peak, at = max(known, key=lambda pair: (pair[0], -pair[1]))
    return Shape(peak, at, clients[-1], 1 - throughputs[-1] / peak, peak / max(1, cores))


def client_share(step: StepComparison) -> float | None:
    """Return the load generator's share of the CPU time of both sides, in the base; None if unknown."""
    values = {ratio.metric: ratio.base for ratio in step.metrics}
    client, server = (values.get(f"{side}_cpu_us_per_op") for side in ("client", "server"))
    return client / (client + server) if client is not None and server else None


def shapes(curve: Curve) -> tuple[Shape | None, Shape | None]:
    """Return the shapes of base and contender."""
    clients = [level.clients for level in curve.levels]
    base, contender = ([getattr(point, side) for point in curve.levels] for side in ("base", "contender"))
    return shape(clients, base, curve.cores), shape(clients, contender, curve.cores)
