"""The priors of the steps of a session: what a step's noise is likely to be, by that of others."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from history.stats.noise_model import Noise, pooled_noise
from suites.keys.levels import level_of


def priors_of(
    rounds: Mapping[str, Sequence[float]], calibrated: Mapping[str, Noise]
) -> dict[str, Noise | None]:
    """Return the prior of each step, by its name; `rounds` are the log ratios of each in their order.

    `calibrated` has the noise of steps that were calibrated. Unless all were, noise is pooled among steps of
    the same level of clients only: it grows with the clients that wait for a core (0.6 % of a round at one
    client and 7.7 % at 64 on two cores), so that quiet levels would promise of a noisy one what it does not
    keep. A calibration says how much the levels differ.
    """
    all_known = all(step in calibrated for step in rounds)
    levels: defaultdict[str, list[str]] = defaultdict(list)
    for step in rounds:
        levels["" if all_known else level_of(step)].append(step)
    priors: dict[str, Noise | None] = {}
    for steps in levels.values():
        pooled = pooled_noise([rounds[step] for step in steps], [calibrated.get(step) for step in steps])
        priors.update(zip(steps, pooled, strict=True))
    return priors
