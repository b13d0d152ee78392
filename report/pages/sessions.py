"""The list of sessions."""

from collections import Counter

import htpy as h

from report import addresses
from report.markup.formats import moment, short_version
from report.markup.frame import Page
from report.markup.parts import note, stat, table
from report.values.catalog import Catalog, SessionEntry

MOST_VERSIONS = 4
MOST_ROWS = 400
"""The sessions on the first page; older ones are on a page for each year."""


def sessions_pages(catalog: Catalog) -> list[Page]:
    """Return the list of the latest sessions, and one of each year when there are more."""
    entries = list(reversed(catalog.sessions.values()))
    root = addresses.way_to_root(addresses.SESSIONS)
    years = sorted({one.started_at.year for one in entries}, reverse=True)
    by_year = {year: [one for one in entries if one.started_at.year == year] for year in years}
    counts = Counter(one.kind for one in entries)
    links = h.ul(".inline")[
        (h.li[h.a(href=f"{root}sessions/in-{year}.html")[f"{year}: {len(by_year[year])}"]] for year in years)
    ]
    body: h.Node = note("No session was recorded yet.")
    if entries:
        body = [
            h.ul(".stats")[(stat(str(count), kind) for kind, count in counts.most_common())],
            h.nav(aria_label="Sessions by year")[links] if len(entries) > MOST_ROWS else None,
            _table(entries[:MOST_ROWS], catalog, root, "Sessions, latest first"),
        ]
    first = Page(addresses.SESSIONS, "Sessions", body, catalog.data_until)
    if len(entries) <= MOST_ROWS:
        return [first]
    return [first, *(_year(year, of_year, catalog) for year, of_year in by_year.items())]


def _year(year: int, entries: list[SessionEntry], catalog: Catalog) -> Page:
    path = f"sessions/in-{year}.html"
    root = addresses.way_to_root(path)
    until = max(one.ended_at or one.started_at for one in entries)
    body = _table(entries, catalog, root, f"Sessions of {year}, latest first")
    return Page(path, f"Sessions of {year}", body, until, crumbs=(("Sessions", addresses.SESSIONS),))


def _table(entries: list[SessionEntry], catalog: Catalog, root: str, caption: str) -> h.Node:
    heads = ("began", "session", "kind", "suite", "profile", "box", "versions", "status")
    return table(heads, (_row(one, catalog, root) for one in entries), caption=caption, sortable=True)


def _row(entry: SessionEntry, catalog: Catalog, root: str) -> h.Node:
    box = catalog.clearance.box(entry.box)
    versions = [short_version(one) for one in entry.versions[:MOST_VERSIONS]]
    more = len(entry.versions) - len(versions)
    pruned = ", rounds pruned" if not entry.runs and entry.status == "finished" else ""
    return h.tr[
        h.td[moment(entry.started_at)],
        h.th(scope="row")[h.a(href=f"{root}{addresses.session(entry.uid)}")[entry.uid]],
        h.td[entry.kind],
        h.td[entry.suite],
        h.td[entry.profile],
        h.td[h.a(href=f"{root}{addresses.machine(box)}")[box]],
        h.td[", ".join(versions), f" and {more} more" if more > 0 else None],
        h.td[f"{entry.status}{pruned}"],
    ]
