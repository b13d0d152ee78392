"""Changes of level in a series of nights: found in a finished series, or watched for night by night."""

from history.detection.change_point import ChangePoint, Known
from history.detection.finished import find_changes, find_changes_many
from history.detection.watching import FALSE_SHARE, Watch, surprise_many, watch_many

__all__ = [
    "FALSE_SHARE",
    "ChangePoint",
    "Known",
    "Watch",
    "find_changes",
    "find_changes_many",
    "surprise_many",
    "watch_many",
]
