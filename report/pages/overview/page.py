"""The first page: the last night in a sentence, what is open as cards, and how each branch and box stands."""

from collections.abc import Sequence

import htpy as h

from history.changes.report import ChangeReport
from report import addresses
from report.markup.frame import Page
from report.markup.parts import commands, note, section, table
from report.pages.changes import CHANGE_HEADS, change_rows
from report.pages.overview.cards import blind_card, change_card, verdict_card
from report.pages.overview.sentence import BOXES, news_sentence
from report.pages.overview.tables import boxes_table, branches_table
from report.values.catalog import Catalog
from report.values.overview import MAX_CARDS, SETTLED_DAYS, Overview

BRANCHES = "branches"
"""The id of the table of branches."""


def index_page(catalog: Catalog, overview: Overview) -> Page:
    """Return the overview."""
    body: h.Node = _overview(catalog, overview) if catalog.sessions or overview.boxes else _empty()
    return Page(addresses.INDEX, "Overview", body, catalog.data_until)


def _empty() -> h.Node:
    return [
        note("This history is empty: nothing was measured yet."),
        commands(
            ["./tidemark demo", "./tidemark run postgres@17.11 postgres@18.6", "./tidemark report"],
            "To fill it",
        ),
    ]


def _overview(catalog: Catalog, overview: Overview) -> h.Node:
    return [
        news_sentence(overview, catalog),
        _cards(overview, catalog),
        _folded(
            overview.others,
            catalog,
            "open for the better, or without a better direction",
            "Open changes that are not for the worse, latest first",
        ),
        _folded(
            overview.settled,
            catalog,
            f"settled in the last {SETTLED_DAYS} days",
            "Changes that were closed, acknowledged or explained, latest first; "
            f"they leave this page after {SETTLED_DAYS} days",
        ),
        section(
            "Branches in their latest session",
            branches_table(overview, catalog),
            id_=BRANCHES,
            lead=[h.a(href=addresses.TREND)["Trend"], ": the mean of each branch over a year."],
        ),
        section("Boxes", boxes_table(overview.boxes, catalog), id_=BOXES),
    ]


def _cards(overview: Overview, catalog: Catalog) -> h.Node:
    blind, verdicts = overview.blind, overview.told_verdicts
    cards = [
        *(blind_card(box, catalog) for box in blind[:MAX_CARDS]),
        *(change_card(news, catalog) for news in overview.worse),
        *(verdict_card(entry, catalog) for entry in verdicts[:MAX_CARDS]),
    ]
    open_changes = overview.open_worse[1] - len(overview.worse)
    return [
        h.h2(".hidden")["What needs somebody"] if cards else None,
        h.ul(".cards")[cards] if cards else None,
        _more(len(blind) - MAX_CARDS, "boxes on which nothing could be measured", f"#{BOXES}"),
        _more(open_changes, "open changes for the worse", f"{addresses.CHANGES}#status=open"),
        _more(len(verdicts) - MAX_CARDS, "comparisons that are worse", f"#{BRANCHES}"),
    ]


def _more(number: int, what: str, href: str) -> h.Node:
    """Return where those are that have no card."""
    return h.p[h.a(href=href)[f"and {number} more {what}"]] if number > 0 else None


def _folded(reports: Sequence[ChangeReport], catalog: Catalog, what: str, caption: str) -> h.Node:
    if not reports:
        return None
    number = f"{len(reports)} {'change' if len(reports) == 1 else 'changes'} {what}"
    return h.details(".folded")[
        h.summary[number], table(CHANGE_HEADS, change_rows(reports, catalog.clearance, ""), caption=caption)
    ]
