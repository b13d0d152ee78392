"""The page of the trend, which is made again when a night or a change was added to it."""

from collections.abc import Callable, Sequence

from history.changes.report import ChangeReport
from history.store.database import Database
from report import addresses
from report.markup.frame import Page
from report.pages.trend import trend_page
from report.values.catalog import Catalog
from report.values.trend.means import read_trends
from report.writing.tree import SiteTree


def write_trend(
    database: Database,
    catalog: Catalog,
    reports: Sequence[ChangeReport],
    tree: SiteTree,
    prefix: str,
    write: Callable[[Page], None],
) -> None:
    """Write the page, unless the old site has the same one; its signature begins with `prefix`."""
    with tree.made_of("trend", _signature(catalog, reports, prefix)) as fresh:
        if fresh:
            with database.reading() as connection:
                trends = list(read_trends(connection, catalog))
            write(trend_page(trends, reports, catalog))


def _signature(catalog: Catalog, reports: Sequence[ChangeReport], prefix: str) -> str:
    """Return what the page is made of: the nights of every environment, and all changes."""
    parts = [prefix]
    for nights in catalog.places:
        parts += [str(nights.place), str(nights.base_of)]
        parts += [f"{night.uid} {catalog.by_id[night.session_id].state}" for night in nights.nights]
    parts += [
        f"{report.change.fingerprint} {report.change.status} {report.change.updated_at}" for report in reports
    ]
    return addresses.digest(*parts)
