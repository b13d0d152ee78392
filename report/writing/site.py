"""The whole site: every page of a history, of which only what changed is made again."""

import hashlib
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache, partial
from pathlib import Path

from build.home import ROOT
from build.progress import Progress, ProgressTask
from build.sources.commits import IMMATERIAL
from history.changes import repository
from history.changes.boxes.notes import BoxNote, read_box_notes
from history.changes.report import ChangeReport, report_changes
from history.series.last_nights import tracked_branch
from history.series.task_states import TaskState, read_states
from history.store.database import Database
from history.store.reader import Reader
from history.timestamps import now
from report import addresses
from report.markup.frame import Page, rendered
from report.pages.bisect import bisect_page, bisects_page
from report.pages.branch import branch_page, branches_page, failures
from report.pages.changes import changes_page
from report.pages.help import help_page, subjects_of
from report.pages.ladder import ladder_index, ladder_page
from report.pages.machine import machine_page, machines_page
from report.pages.overview.page import index_page
from report.pages.series import series_page
from report.pages.sessions import older_years, sessions_page, year_page
from report.values.bisect_page import BisectPage
from report.values.branch_page import NIGHTS, Sights, read_branch
from report.values.catalog import USUAL_CHANGE, Catalog, read_catalog
from report.values.commits import CommitsOf, no_commits
from report.values.comparisons import Comparisons
from report.values.failed_sessions import FailedSession, read_failed_sessions
from report.values.ladder import read_ladders
from report.values.machine_page import read_machine
from report.values.overview import LatestComparison, comparisons_by_hand, latest_comparisons, read_overview
from report.writing.change_pages import ChangePages
from report.writing.parallel import InParallel
from report.writing.series_data import call, series_index
from report.writing.series_files import SeriesFiles
from report.writing.session_files import intervals_of, write_sessions
from report.writing.tree import SiteTree, renewed
from report.writing.trend_file import write_trend

STATIC = Path(__file__).parent.parent / "static"
GLOSSARY = ROOT / "docs/glossary.md"


@dataclass(frozen=True)
class SiteOptions:
    """How a site is written."""

    folder: Path
    is_public: bool = False
    tracker: str = ""
    """The address of an issue's page, with `{repository}` and `{number}`; empty for no links to issues."""

    address: str = ""
    """Where the site is published; empty where that is not known."""

    threshold: float = USUAL_CHANGE
    """The fraction beyond which a change of what is timed is reported: that of the plan."""

    bisects: Sequence[BisectPage] = ()
    """Latest first."""

    commits: CommitsOf = no_commits
    """Gives the commits between the nights of a change."""


@dataclass(frozen=True)
class SiteSummary:
    """What was written."""

    folder: Path
    pages: int
    """All pages of the site."""

    changed: int
    """The files that are new or differ from before."""


@dataclass(frozen=True)
class _Site:
    """What all pages are made of."""

    history: Reader
    options: SiteOptions
    catalog: Catalog
    reports: Sequence[ChangeReport]
    latest: Sequence[LatestComparison]
    comparisons: Comparisons
    tree: SiteTree
    states: Sequence[TaskState]
    """What the last nights found of all that is tracked."""

    failed: Sequence[FailedSession]
    """The sessions of which nothing became a night."""

    @property
    def prefix(self) -> str:
        """What the signature of every source begins with: with other code all pages are made again."""
        return f"{code_digest()} {self.options.is_public} {self.options.threshold:g}"

    def write(self, page: Page) -> None:
        self.tree.write(page.path, rendered(page, public=self.options.is_public))


def write_site(
    history: Reader, options: SiteOptions, progress: Progress, clock: Callable[[], datetime] = now
) -> SiteSummary:
    """Write the site of a history as it is now, or renew it, while others record.

    Raises SiteError, and leaves the old site as it is then.
    """
    with (
        renewed(options.folder, clock()) as tree,
        progress.task("reading the history") as task,
        history.database.snapshot() as database,
        InParallel(database, partial(_notes, database)) as notes,
    ):
        history = Reader(database)
        with database.reading() as connection:
            catalog = read_catalog(connection, is_public=options.is_public, threshold=options.threshold)
            reports = report_changes(connection, repository.load(connection))
            states = tuple(read_states(connection).values())
            failed = read_failed_sessions(connection, catalog)
        comparisons = Comparisons(history)
        latest = [
            comparison
            for nights in catalog.places
            for comparison in latest_comparisons(comparisons, catalog, nights)
        ]
        site = _Site(history, options, catalog, reports, latest, comparisons, tree, states, failed)
        changes = _change_pages(site)
        task.rename("writing sessions")
        _sessions(site, task)
        # The pages of branches show the verdicts of nights, which are known once sessions are written.
        with InParallel(database, partial(_changed_branches, site)) as pages:
            parts: Mapping[str, Callable[[_Site], None]] = {
                "data of the series": _series,
                "overview": partial(_overview, changes=changes),
                "changes": partial(_changes, pages=changes),
                "branches": partial(_branches, pages=pages),
                "trend": _trend,
                "versions": _ladders,
                "machines": partial(_machines, notes=notes),
                "bisects": _bisects,
            }
            for name, write in parts.items():
                task.rename(f"writing {name}")
                write(site)
        _static(site)
    count = sum(path.endswith(".html") for path in tree.new)
    return SiteSummary(options.folder, count, len(tree.changed))


def _overview(site: _Site, changes: ChangePages) -> None:
    catalog = site.catalog
    by_hand = tuple(comparisons_by_hand(site.comparisons, catalog))
    with site.history.database.reading() as connection:
        overview = read_overview(connection, catalog, site.reports, site.latest, by_hand, changes)
    site.write(index_page(catalog, overview))
    site.write(sessions_page(catalog))
    for year, entries in older_years(catalog).items():
        signature_of_year = addresses.digest(site.prefix, *(entry.uid + entry.signature for entry in entries))
        with site.tree.made_of(f"sessions of {year}", signature_of_year) as fresh:
            if fresh:
                site.write(year_page(year, entries, catalog))
    site.write(help_page(subjects_of(GLOSSARY.read_text(encoding="utf-8"))))


def _change_pages(site: _Site) -> ChangePages:
    options = site.options
    made_of = (site.history, site.catalog, site.tree, site.prefix)
    return ChangePages(*made_of, options.bisects, options.tracker, options.commits, options.address)


def _changes(site: _Site, pages: ChangePages) -> None:
    site.write(changes_page(site.reports, site.catalog.clearance, site.catalog.data_until))
    for report in site.reports:
        pages.write(report, site.write)
    pages.write_feed(site.reports)


_Drawn = tuple[str, list[str]]
"""The page of a branch as HTML, and in what it fails."""


def _changed_branches(site: _Site) -> Mapping[str, _Drawn]:
    """Return the pages of branches that changed, by branch: to render them takes longest."""
    return {
        branch: _branch(site, branch)
        for branch in site.catalog.branches
        if not site.tree.has(_branch_source(branch), _branch_signature(site, branch))
    }


def _branches(site: _Site, pages: InParallel[Mapping[str, _Drawn]]) -> None:
    changed = pages.value()
    for branch in site.catalog.branches:
        with site.tree.made_of(_branch_source(branch), _branch_signature(site, branch)) as fresh:
            if fresh:
                html, failing = changed.get(branch) or _branch(site, branch)
                site.tree.write(addresses.branch(branch), html)
                site.tree.remember(failing)
    found = {branch: site.tree.value_of(_branch_source(branch)) or [] for branch in site.catalog.branches}
    site.write(branches_page(site.catalog, found))


def _branch(site: _Site, branch: str) -> _Drawn:
    reports = _changes_of(site, branch)
    with site.history.database.reading() as connection:
        places = read_branch(
            connection,
            site.catalog,
            branch,
            reports,
            _visible(site, branch),
            partial(intervals_of, site.tree),
            site.states,
            site.failed,
        )
    page = branch_page(branch, places, reports, site.catalog)
    return rendered(page, public=site.options.is_public), failures(places, site.catalog.clearance)


def _branch_source(branch: str) -> str:
    return f"branch {branch}"


def _visible(site: _Site, branch: str) -> Sights:
    return {
        (entry.place, entry.metric.name): entry.visible for entry in site.latest if entry.branch == branch
    }


def _changes_of(site: _Site, branch: str) -> Sequence[ChangeReport]:
    return [report for report in site.reports if report.change.branch == branch]


def _branch_signature(site: _Site, branch: str) -> str:
    """Return what a branch's page is made of: its nights, what its steps see, and its changes."""
    visible = _visible(site, branch)
    parts = [site.prefix, *(f"{place} {sorted(sees.items())}" for place, sees in visible.items())]
    parts += [str(state) for state in site.states if tracked_branch(state) == branch]
    parts += [session.entry.uid for session in site.failed if branch in session.reasons]
    for place_nights in site.catalog.nights_of_branch(branch):
        nights = [site.catalog.by_id[night.session_id] for night in place_nights.of_branch(branch)[-NIGHTS:]]
        parts += [
            str(place_nights.place),
            str(place_nights.base_of.get(branch)),
            *(f"{entry.uid} {entry.signature}" for entry in nights),
        ]
    parts += [
        f"{change.change.fingerprint} {change.change.status} {change.change.updated_at}"
        for change in _changes_of(site, branch)
    ]
    return addresses.digest(*parts)


def _trend(site: _Site) -> None:
    write_trend(site.history.database, site.catalog, site.reports, site.tree, site.prefix, site.write)


def _ladders(site: _Site) -> None:
    clearance = site.catalog.clearance
    found = [
        read_ladders(site.comparisons, site.catalog, nights, base)
        for nights in site.catalog.places
        for base in nights.bases
    ]
    site.write(ladder_index([ladder for ladders in found for ladder in ladders], clearance))
    for ladders in filter(None, found):
        site.write(ladder_page(ladders, clearance))


def _notes(database: Database) -> tuple[BoxNote, ...]:
    with database.reading() as connection:
        return read_box_notes(connection)


def _machines(site: _Site, notes: InParallel[tuple[BoxNote, ...]]) -> None:
    boxes = sorted({entry.box for entry in site.catalog.sessions.values()})
    with site.history.database.reading() as connection:
        read = [read_machine(connection, site.catalog, box, notes.value(), site.failed) for box in boxes]
    values = [machine for machine in read if machine.periods]
    site.write(machines_page(values, site.catalog))
    for value in values:
        site.write(machine_page(value, site.catalog))


def _bisects(site: _Site) -> None:
    clearance = site.catalog.clearance
    site.write(bisects_page(site.options.bisects, clearance))
    for bisect in site.options.bisects:
        site.write(bisect_page(bisect, clearance, site.catalog.sessions))


def _series(site: _Site) -> None:
    catalog, tree = site.catalog, site.tree
    with site.history.database.reading() as connection:
        files = SeriesFiles(connection, catalog, tree, site.prefix)
        for nights in catalog.places:
            files.write(nights)
        sees: dict[tuple[str, ...], float] = {
            (
                entry.place.box,
                entry.place.suite,
                entry.place.configuration,
                entry.branch,
                step,
                entry.metric.name,
            ): visible
            for entry in site.latest
            for step, visible in entry.visible.items()
            if visible is not None
        }
        index, count = series_index(connection, catalog, site.reports, sees)
    tree.write("data/series.js", index)
    site.write(series_page(count, catalog.data_until))


def _sessions(site: _Site, task: ProgressTask) -> None:
    write_sessions(
        site.comparisons,
        site.catalog,
        site.tree,
        site.prefix,
        _touched(site),
        site.write,
        task,
    )


def _touched(site: _Site) -> Mapping[str, Collection[str]]:
    """Return the sessions of changes and bisects, by uid, with the steps of each that they are about."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for report in site.reports:
        for member in report.change.members:
            nights = (
                site.catalog.by_id[night.session_id].uid for night in (member.last_before, member.first_after)
            )
            for uid in (*nights, *([member.confirmed.uid] if member.confirmed else [])):
                found[uid].add(member.key.step)
    for bisect in site.options.bisects:
        for probe in bisect.rounds:
            found[probe.session].add(bisect.step)
    return found


def _static(site: _Site) -> None:
    for file in sorted(STATIC.rglob("*")):
        if file.is_file() and file.suffix in (".js", ".css", ".svg"):
            site.tree.write_bytes(f"static/{file.relative_to(STATIC)}", file.read_bytes())
    licence = STATIC / "uplot/LICENSE"
    site.tree.write_bytes("static/uplot/LICENSE.txt", licence.read_bytes())
    until = site.catalog.data_until
    site.tree.write(
        "data/written.js", call("written", _seconds(site.tree.written_at), until and _seconds(until))
    )


def _seconds(when: datetime) -> int:
    return int(when.timestamp())


@cache
def code_digest() -> str:
    """Return the digest of the code that pages are made by: with other code, all pages are made again."""
    digest = hashlib.sha256()
    rooms = (path for room in ("history", "report") for path in (ROOT / room).rglob("*.py"))
    for file in sorted([*rooms, ROOT / "suites/metrics.py", IMMATERIAL]):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:12]
