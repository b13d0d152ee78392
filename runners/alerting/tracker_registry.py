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
"""Name in the plan -> the module that implements it, with functions `connect` and `issue_pages`."""

WITHOUT_ADDRESS = frozenset({"gitea"})
"""Trackers of which there is no single one, so that a plan has to name its address."""

WITH_SUBGROUPS = frozenset({"gitlab"})
"""Trackers whose repositories may lie in groups within groups: `group/subgroup/name`."""


def issue_pages(name: str, url: str | None = None) -> str:
    """Return the address of an issue's page in a tracker, with `{repository}` and `{number}`.

    `url` is that of the tracker's pages, as the plan names it; None for the tracker's own.
    """
    address: str = import_module(TRACKERS[name]).issue_pages(url)
    return address


def open_tracker(name: str, repository: str, url: str | None = None) -> Tracker:
    """Import a tracker of TRACKERS and return the issues of a repository in it.

    `url` is as for `issue_pages`. Raises MissingTokenError when there is no token for the tracker.
    """
    tracker: Tracker = import_module(TRACKERS[name]).connect(repository, url)
    return tracker
