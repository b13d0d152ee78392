"""The trackers that a plan can name, and how one of them is opened."""

from collections.abc import Mapping
from importlib import import_module

from runners.alerting.tracker import Tracker

TRACKERS: Mapping[str, str] = {
    "github": "runners.alerting.github",
}
"""Name in the plan -> the module that implements it, with a function `connect`."""


def open_tracker(name: str, repository: str) -> Tracker:
    """The issues of a repository. Raises MissingTokenError when there is no token for the tracker.

    The module is imported only here, because a tracker's client library takes longer to load than most
    commands take to run.
    """
    tracker: Tracker = import_module(TRACKERS[name]).connect(repository)
    return tracker
