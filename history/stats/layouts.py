"""Intervals over layouts: rounds of servers whose functions lie in another order from round to round.

Equal sources laid out differently are not equally fast, by the luck of each layout, which all its rounds
share. Further rounds of the same layout therefore say nothing of others: the layout is what was drawn, the
cluster, and its rounds are repeated measurements of it.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

from history.stats.estimators import MINIMUM_REPETITIONS, Interval, mean, variance
from history.stats.noise_model import Noise, without_stalls
from history.stats.repeated_intervals import Design, sequential_interval

MIN_LAYOUTS = MINIMUM_REPETITIONS
"""The layouts that an interval needs at least: fewer do not say how much layouts differ."""


def layout_of(number: int, layouts: int) -> int:
    """Return the layout, from 1, of round `number`, from 1, in a session with so many layouts."""
    return (number - 1) % layouts + 1


def layout_interval(
    logs: Sequence[float], layout_by_round: Sequence[int], design: Design, prior: Noise | None
) -> Interval | None:
    """Return the interval of contender/base that holds for any layout, not just for those that were measured.

    `logs` are the rounds' ln(contender / base) in order, `layout_by_round` the layout of each; the rest is as
    in sequential_interval. With the mean log ratio of each of N layouts, without stalled rounds, it is the
    mean of these means and its t interval with N - 1 degrees of freedom, the analysis of cluster means
    (Donner & Klar, Design and Analysis of Cluster Randomization Trials, 2000, section 7.2). The standard
    error is at least that of sequential_interval, which takes rounds for independent.

    Nothing is borrowed from other steps: they ran in the same layouts, and may have had the same luck.
    Returns None before the first look, and with rounds of fewer than MIN_LAYOUTS layouts.
    """
    plain = sequential_interval(logs, design, prior)
    if plain is None:
        return None
    kept = {*(logs if prior is None else without_stalls(logs, prior.sd))}
    rounds = [(layout, log) for layout, log in zip(layout_by_round, logs, strict=True) if log in kept]
    means = [mean([log for of, log in rounds if of == layout]) for layout in {of for of, _ in rounds}]
    n = len(means)
    if n < MIN_LAYOUTS:
        return None
    middle, error = mean(means), max(plain.error, math.sqrt(variance(means) / n))
    margin, last = (design.margin(look, n - 1) * error for look in (len(logs), design.cap))
    ends = [math.exp(max(-700.0, min(end, 700.0))) for end in (middle, middle - margin, middle + margin)]
    return replace(plain, estimate=ends[0], low=ends[1], high=ends[2], error=error, last_margin=last)
