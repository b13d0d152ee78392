"""Changes of level in a series of nights: found in a finished series, or watched for night by night."""

from history.stats.change_points.change_point import ChangePoint, Known
from history.stats.change_points.counted_steps import StepRule, step_probabilities, watch_steps
from history.stats.change_points.localization import measured_again
from history.stats.change_points.online_cusum import FALSE_SHARE
from history.stats.change_points.segmentation import SHORTEST, find_changes, find_changes_many
from history.stats.change_points.shared_nights import shared_moves
from history.stats.change_points.suspicion import StepEvidence, evidence_tonight
from history.stats.change_points.watch import SeriesWatch, tail_probabilities, watch_many

__all__ = [
    "FALSE_SHARE",
    "SHORTEST",
    "ChangePoint",
    "StepEvidence",
    "Known",
    "SeriesWatch",
    "StepRule",
    "evidence_tonight",
    "find_changes",
    "find_changes_many",
    "measured_again",
    "shared_moves",
    "step_probabilities",
    "tail_probabilities",
    "watch_many",
    "watch_steps",
]
