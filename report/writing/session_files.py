"""The pages and data of sessions, which are written once: a session that has ended does not change."""

from collections.abc import Callable, Collection, Mapping

from build.progress import ProgressTask
from history.store.records import SessionStatus
from report import addresses
from report.charts.flame_graph import difference_graph, flame_graph
from report.markup.frame import Page
from report.pages.session import session_page
from report.pages.setup import setup_page
from report.pages.step import pruned_step_page, step_page
from report.values.catalog import Catalog
from report.values.clearance import Clearance
from report.values.comparisons import Comparisons
from report.values.night_intervals import NightIntervals, night_intervals
from report.values.session_page import SessionPage, StepRuns, read_session
from report.writing.tree import SiteTree

LATEST_GRAPHS = 10
"""The latest profiled sessions that get flame graphs, besides those of changes and bisects."""


def intervals_of(tree: SiteTree, uid: str) -> NightIntervals:
    """Return the intervals of a session's night, whose pages must have been written or kept."""
    return tree.value_of(_steps_of(uid)) or {}


def write_sessions(
    comparisons: Comparisons,
    catalog: Catalog,
    tree: SiteTree,
    prefix: str,
    touched: Mapping[str, Collection[str]],
    write: Callable[[Page], None],
    task: ProgressTask,
) -> None:
    """Write the pages of all sessions.

    `prefix` is what all signatures begin with; `touched` are the sessions of changes and bisects, with the
    steps that are about them.
    """
    entries = list(catalog.sessions.values())
    profiled = [entry.uid for entry in entries if entry.id in catalog.profiles]
    drawn = {*profiled[-LATEST_GRAPHS:], *touched}
    for number, entry in enumerate(entries):
        source = f"session {entry.uid}"
        graphs = entry.uid in drawn and entry.id in catalog.profiles
        state = f"{prefix} {entry.signature} {graphs}"
        values: SessionPage | None = None
        with tree.made_of(source, state) as fresh:
            if fresh:
                task.update(number, len(entries))
                values = read_session(comparisons, catalog, entry)
                write(session_page(values, catalog.clearance))
        if entry.runs:
            with tree.made_of(_steps_of(entry.uid), state) as fresh:
                if fresh:
                    values = values or read_session(comparisons, catalog, entry)
                    _write_steps(values, catalog.clearance, tree, write, has_graphs=graphs)
                    night = catalog.nights_by_session.get(entry.id)
                    tree.remember(night_intervals(values.comparison, night))
        elif (
            entry.status is not SessionStatus.RUNNING
            and not tree.keep(_steps_of(entry.uid))
            and (steps := touched.get(entry.uid))
        ):
            # Its rounds were pruned before this site was begun: links of its change must lead somewhere.
            values = values or read_session(comparisons, catalog, entry)
            with tree.made_of(_steps_of(entry.uid), state):
                for step in sorted(steps):
                    write(pruned_step_page(values, step))


def _steps_of(uid: str) -> str:
    return f"steps of {uid}"


def _write_steps(
    values: SessionPage,
    clearance: Clearance,
    tree: SiteTree,
    write: Callable[[Page], None],
    *,
    has_graphs: bool,
) -> None:
    uid = values.entry.uid
    for step in values.steps:

        def graphs(name: str, contender: str, step: StepRuns = step) -> Mapping[str, str]:
            both = step.differentials.get(contender)
            if both is None or not has_graphs:
                return {}
            addresses_by_name = {}
            drawn = {
                "base": flame_graph(both.base, f"{name}: base"),
                contender: flame_graph(both.contender, f"{name}: {contender}"),
                "the difference": difference_graph(both, f"{name}: {contender} against its base"),
            }
            for what, svg in drawn.items():
                path = addresses.flame_graph(uid, name, f"{contender} {what}")
                tree.write(path, svg)
                addresses_by_name[what] = path
            return addresses_by_name

        write(step_page(values, step, clearance, graphs))
    if values.setups:
        write(setup_page(values, clearance))
