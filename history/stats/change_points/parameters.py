"""The numbers that were chosen by simulation, from parameters.toml, which says what each of them means.

The benchmark's part `choose` tries others in their place; everything else takes WATCH and PARTITION.
"""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

TABLE = Path(__file__).with_name("parameters.toml")


@dataclass(frozen=True)
class WatchParameters:
    """What the nightly watch asks for, and what its baseline believes."""

    handicaps: Sequence[float]
    threshold: float
    stricter: float
    stricter_correlated: float
    stricter_over_larger: float
    sure_over_larger: float
    stricter_at_first: float
    young: float
    young_tailed: float
    young_correlated: float
    tailed: float
    usual_strongest: float
    correlated: float
    rising: float
    max_rising: float
    lag: int
    correlated_lag: float
    correlated_from: float
    level_nights: float
    steady: float
    min_steady: float
    clean_nights: float
    tail_doubt: float
    correlation_doubt: float
    correlation_margin: float
    scale_doubt: float
    step_in_larger: float
    over_larger: float
    over_each: float
    over_nights: int
    short_fades: float
    own_width: float
    own_prior: float
    own_margin: float


@dataclass(frozen=True)
class PartitionParameters:
    """What a change of a finished series costs."""

    required: float
    required_tailed: float
    degree_penalty: float
    steps_penalty: float
    step_penalty: float
    mixed_penalty: float


_table = tomllib.loads(TABLE.read_text(encoding="utf-8"))
WATCH = WatchParameters(**_table["watch"])
PARTITION = PartitionParameters(**_table["partition"])
SEEDS: dict[str, int] = _table["seeds"]
"""The first word of the seeds of each part of the benchmark, by the part's name."""
