"""The trackers that a plan can name: the modules in `runners/alerting/trackers/`."""

from collections.abc import Iterable, Mapping
from importlib import import_module
from pkgutil import iter_modules

from runners.alerting import trackers
from runners.alerting.tracker import Tracker


def modules_in(folders: Iterable[str]) -> dict[str, str]:
    """Return the trackers in folders by name, in the order of the alphabet, with the names of their modules.

    None of them is imported, because a tracker's client library takes longer to load than most commands take
    to run.
    """
    names = sorted(module.name for module in iter_modules(folders))
    return {name: f"{trackers.__name__}.{name}" for name in names}


TRACKERS: Mapping[str, str] = modules_in(trackers.__path__)
"""Name in the plan -> the module that implements it, with a function `connect`."""


def pages_of(name: str) -> str:
    """Return the address of the pages of a tracker, below which those of its repositories are."""
    address: str = import_module(TRACKERS[name]).pages()
    return address


def open_tracker(name: str, repository: str) -> Tracker:
    """Import a tracker of TRACKERS and return the issues of a repository in it.

    Raises MissingTokenError when there is no token for the tracker.
    """
    tracker: Tracker = import_module(TRACKERS[name]).connect(repository)
    return tracker
