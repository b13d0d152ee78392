"""One page alone, with its style sheet inside: to mail, or to attach to an issue."""

from collections.abc import Callable
from functools import partial

from build.errors import TidemarkError
from history.changes import repository
from history.changes.report import report_changes
from history.store.bisects import load
from history.store.reader import Reader
from report.markup.frame import Page
from report.pages.bisect import bisect_page
from report.pages.change.page import change_page
from report.pages.session import session_page
from report.values.catalog import Catalog, read_catalog
from report.values.change_details import read_details
from report.values.clearance import Clearance
from report.values.commits import CommitsOf, no_commits
from report.values.comparisons import Comparisons
from report.values.session_page import read_session
from report.writing.alone import alone
from runners.bisect.report.state import BisectState, load_state
from runners.bisect.run.event_log import read_log
from runners.reporting.arguments import KINDS
from runners.reporting.bisects import bisect_values, read_bisects


class PageError(TidemarkError):
    """There is no such page."""


def page_alone(
    store: Reader, kind: str, name: str, *, is_public: bool = False, commits_of: CommitsOf = no_commits
) -> str:
    """Return one page as HTML. Raises PageError if there is no such kind or name."""
    makers: dict[str, Callable[[Reader, Catalog, str], Page]] = {
        "change": partial(_change, commits_of=commits_of),
        "session": _session,
        "bisect": _bisect,
    }
    if kind not in makers:
        raise PageError(f"there is no page of the kind '{kind}'", hint=f"the kinds are: {', '.join(KINDS)}")
    with store.database.reading() as connection:
        catalog = read_catalog(connection, is_public=is_public)
    return alone(makers[kind](store, catalog, name))


def bisect_alone(state: BisectState) -> str:
    """Return the page of a bisect alone."""
    return alone(bisect_page(bisect_values(state), Clearance(), linked=False))


def _change(store: Reader, catalog: Catalog, name: str, *, commits_of: CommitsOf) -> Page:
    with store.database.reading() as connection:
        found = repository.load(connection, fingerprint=name)
        reports = report_changes(connection, found)
    if not reports:
        raise PageError(
            f"there is no change {name}", where=store.where, hint="./tidemark history changes lists them"
        )
    bisect = next((read_bisect for read_bisect in read_bisects(store) if read_bisect.change == name), None)
    commits = catalog.clearance.commits(commits_of(reports[0]))
    return change_page(read_details(store, catalog, reports[0]), catalog, bisect, commits, linked=False)


def _session(store: Reader, catalog: Catalog, name: str) -> Page:
    entry = catalog.sessions.get(name)
    if entry is None:
        raise PageError(
            f"there is no session {name}", where=store.where, hint="./tidemark report lists all sessions"
        )
    return session_page(read_session(Comparisons(store), catalog, entry), catalog.clearance, linked=False)


def _bisect(store: Reader, catalog: Catalog, name: str) -> Page:
    with store.database.reading() as connection:
        bisect = load(connection, name)
    state = load_state(store, read_log(store, bisect))
    return bisect_page(bisect_values(state), catalog.clearance, linked=False)
