"""What a person does about a change: search for its commit, accept it, measure it again."""

import htpy as h

from history.changes.report import ChangeReport
from history.rendering.commands import change_again, change_decision, change_search
from history.store.records import ChangeStatus
from report.markup.parts import commands, section
from report.values.bisect_page import BisectPage
from report.values.catalog import Catalog


def actions(report: ChangeReport, bisect: BisectPage | None, href: str, catalog: Catalog) -> h.Node:
    """Return the commands for a change as a part of its page, and what its bisect says without a culprit.

    `href` is the page of the bisect, if linked.
    """
    is_told = bisect is not None and not bisect.culprit and bool(href)
    again, search, decision = change_again(report), [], []
    if catalog.clearance.is_public:
        # What the versions got may say more of the house than their names.
        again = [line for line in again if line.startswith("./compare.py")]
    else:
        is_found = bisect is not None and bisect.culprit is not None
        is_wanted = report.change.status is ChangeStatus.OPEN and not is_found
        search = change_search(report) if is_wanted else []
        decision = change_decision(report)
    blocks = [
        commands(lines, label)
        for label, lines in (("Find the commit", search), ("Acknowledge", decision), ("Reproduce", again))
        if lines
    ]
    found = (
        h.p[h.a(href=href)[f"Bisect {bisect.uid}"], f": {bisect.headline}."] if bisect and is_told else None
    )
    return section("What to do", h.div(".actions")[found, blocks]) if blocks or found else None
