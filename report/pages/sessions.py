"""The list of sessions."""

from collections import Counter
from collections.abc import Mapping, Sequence

import htpy as h

from history.store.records import SessionStatus
from report import addresses
from report.markup.formats import day, metric_name, moment, short_version
from report.markup.frame import Page
from report.markup.metrics import named
from report.markup.parts import filtered_by, filters, note, stat, table
from report.values.catalog import Catalog, SessionEntry

FILTERS = ("kind", "suite", "box", "metric", "status")
MAX_VERSIONS = 4
MAX_ROWS = 400
"""The sessions on the first page; older ones are on a page for each year."""


def sessions_page(catalog: Catalog) -> Page:
    """Return the list of the latest sessions."""
    entries = list(catalog.sessions.values())[::-1]
    root = addresses.way_to_root(addresses.SESSIONS)
    counts = Counter(entry.kind for entry in entries)
    links = [
        h.li[h.a(href=f"{root}{_path(year)}", data_keeps_view="yes")[f"{year}: {len(of_year)}"]]
        for year, of_year in older_years(catalog).items()
    ]
    body: h.Node = note("No session was recorded yet.")
    if entries:
        body = [
            h.ul(".stats")[(stat(str(count), kind) for kind, count in counts.most_common())],
            _years(links, len(entries)) if links else None,
            _table(entries[:MAX_ROWS], catalog, root, "Sessions, latest first"),
        ]
    return Page(addresses.SESSIONS, "Sessions", body, catalog.data_until)


def _years(links: Sequence[h.Node], count: int) -> h.Node:
    return h.nav(aria_label="Sessions by year")[
        h.p(".key")[f"The latest {MAX_ROWS} of {count} sessions. All of a year, with the same filters:"],
        h.ul(".inline")[links],
    ]


def older_years(catalog: Catalog) -> Mapping[int, Sequence[SessionEntry]]:
    """Return the sessions of each year, latest first; nothing when one page has room for all."""
    entries = list(catalog.sessions.values())
    by_year: dict[int, list[SessionEntry]] = {}
    for entry in reversed(entries) if len(entries) > MAX_ROWS else ():
        by_year.setdefault(entry.started_at.year, []).append(entry)
    return by_year


def year_page(year: int, entries: Sequence[SessionEntry], catalog: Catalog) -> Page:
    """Return the list of the sessions of a year."""
    root = addresses.way_to_root(_path(year))
    until = max(entry.ended_at or entry.started_at for entry in entries)
    body = _table(entries, catalog, root, f"Sessions of {year}, latest first")
    return Page(_path(year), f"Sessions of {year}", body, until, crumbs=(("Sessions", addresses.SESSIONS),))


def _path(year: int) -> str:
    return f"sessions/in-{year}.html"


def _table(entries: Sequence[SessionEntry], catalog: Catalog, root: str, caption: str) -> h.Node:
    heads = ("began", "session", "kind", "suite", "profile", "box", "versions", "judged by", "status")
    rows = (_row(entry, catalog, root) for entry in entries)
    return [
        filters("sessions", FILTERS),
        table(heads, rows, caption=caption, sortable=True, class_="filtered"),
    ]


def _row(entry: SessionEntry, catalog: Catalog, root: str) -> h.Node:
    box = catalog.clearance.box(entry.box)
    versions = [short_version(version) for version in entry.versions[:MAX_VERSIONS]]
    more = len(entry.versions) - len(versions)
    pruned = ", rounds pruned" if not entry.runs and entry.status is SessionStatus.FINISHED else ""
    attributes = filtered_by(
        kind=entry.kind,
        suite=entry.suite,
        box=box,
        metric=metric_name(entry.judged_by),
        status=entry.status,
        day=day(entry.started_at),
    )
    return h.tr(attributes)[
        h.td[moment(entry.started_at)],
        h.th(scope="row")[h.a(href=f"{root}{addresses.session(entry.uid)}")[entry.uid]],
        h.td[entry.kind],
        h.td[entry.suite],
        h.td[entry.profile],
        h.td[h.a(href=f"{root}{addresses.machine(box)}")[box]],
        h.td(title=", ".join(entry.versions))[", ".join(versions), f" and {more} more" if more > 0 else None],
        h.td[named(entry.judged_by)],
        h.td[f"{entry.outcome}{pruned}"],
    ]
