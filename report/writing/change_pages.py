"""The pages of changes, of which only those are made again whose content changed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial

from history.changes.report import ChangeReport
from history.store.reader import Reader
from history.store.records import ChangeStatus
from report import addresses
from report.charts.alone import style_of_charts
from report.markup.frame import Page
from report.pages.change.feed import change_feed
from report.pages.change.page import change_page
from report.pages.change.pictures import pictures
from report.values.bisect_page import BisectPage
from report.values.catalog import Catalog
from report.values.change_details import issue_of, read_details
from report.values.commits import Commits, CommitsOf, NoCommits, as_text, from_json, to_json
from report.writing.alone import STYLE
from report.writing.session_files import intervals_of
from report.writing.tree import SiteTree


@dataclass
class ChangePages:
    """Writes the pages of changes, and knows the commits between the nights of each."""

    history: Reader
    catalog: Catalog
    tree: SiteTree
    prefix: str
    """What the signature of every page begins with."""

    bisects: Sequence[BisectPage]
    """Latest first."""

    tracker: str
    """The address of an issue's page, with `{repository}` and `{number}`."""

    commits_of: CommitsOf
    address: str
    """The address of the site's root; empty where it is not known."""

    _commits: dict[str, Commits] = field(default_factory=dict)

    def commits(self, report: ChangeReport) -> Commits:
        """Return the commits between the nights of a change, as the site may show them.

        Git is asked once for a range: what it said is kept with the page.
        """
        fingerprint = report.change.fingerprint
        if fingerprint not in self._commits:
            kept = self.tree.value_before(_source(report))
            same = isinstance(kept, dict) and kept.get("range") == self._range(report)
            known = from_json(kept["commits"]) if same else None
            self._commits[fingerprint] = known or self.catalog.clearance.commits(self.commits_of(report))
        return self._commits[fingerprint]

    def bisect(self, report: ChangeReport) -> BisectPage | None:
        """Return the latest bisect that looks for a change; None without one.

        One that was not told of the change is of it if it found one of its commits by one of its steps.
        """
        named = (shown for shown in self.bisects if shown.change == report.change.fingerprint)
        found = (shown for shown in self.bisects if shown.change is None and self._has_found(report, shown))
        return next(named, None) or next(found, None)

    def _has_found(self, report: ChangeReport, shown: BisectPage) -> bool:
        if shown.culprit is None or shown.step not in {member.key.step for member in report.change.members}:
            return False
        commits = self.commits(report)
        listed = () if isinstance(commits, NoCommits) else commits.newest
        return any(commit.commit.startswith(shown.culprit.commit) for commit in listed)

    def write(self, report: ChangeReport, write: Callable[[Page], None]) -> None:
        """Write the page of a change, unless the old site has the same one."""
        bisect = self.bisect(report)
        with self.tree.made_of(_source(report), self._signature(report, bisect)) as fresh:
            if fresh:
                intervals = partial(intervals_of, self.tree)
                details = read_details(self.history, self.catalog, report, intervals)
                commits = self.commits(report)
                write(change_page(details, self.catalog, bisect, commits, tracker=self.tracker))
                for path, picture in pictures(details, self.catalog, self._style).items():
                    self.tree.write(path, picture)
                self.tree.remember({"range": self._range(report), "commits": to_json(commits)})

    def write_feed(self, reports: Sequence[ChangeReport]) -> None:
        """Write the feed of all changes."""
        oldest = next(iter(self.catalog.sessions.values()), None)
        when = oldest.started_at if oldest is not None else self.tree.written_at
        found = [(report, self.commits(report)) for report in reports]
        feed = change_feed(found, self.catalog.clearance, self.catalog.clearance.salt, self.address, when)
        self.tree.write(addresses.FEED, feed)

    @cached_property
    def _style(self) -> str:
        """The style sheet of the pictures of changes."""
        return style_of_charts(STYLE.read_text(encoding="utf-8"))

    def _range(self, report: ChangeReport) -> str:
        return addresses.digest(self.prefix, *map(str, report.commits))

    def _signature(self, report: ChangeReport, bisect: BisectPage | None) -> str:
        """Return what a page is made of: an open change follows the nights, one that is closed does not."""
        change = report.change
        parts = [
            self.prefix,
            self._style,
            str(change.updated_at),
            str(change.status),
            str(change.reason),
            self.tracker,
        ]
        with self.history.database.reading() as connection:
            issue = issue_of(connection, change.fingerprint)
        parts += [f"{bisect.uid} {bisect.updated_at}" if bisect else "", str(issue)]
        parts.append(as_text(self.commits(report)))
        if change.status is ChangeStatus.OPEN:
            places = {member.key.environment for member in change.members}
            found = [self.catalog.place_named(place) for place in sorted(places, key=str)]
            parts += [place_nights.nights[-1].uid for place_nights in found if place_nights is not None]
        return addresses.digest(*parts)


def _source(report: ChangeReport) -> str:
    return f"change {report.change.fingerprint}"
