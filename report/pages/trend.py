"""The trend: the geometric mean of each branch over a year of nights, with its releases and changes."""

from collections.abc import Iterable, Mapping, Sequence

import htpy as h

from history.changes.report import ChangeReport
from history.counts import counted
from history.numbers import two_decimals
from report import addresses
from report.charts.nights import ChangeMark
from report.charts.trend import AT_ENDS, ReleaseMark, TrendChart, TrendLine, TrendNight, trend_figure
from report.markup.formats import change_of, day, metric_name, short_version
from report.markup.frame import Page
from report.markup.metrics import described
from report.markup.parts import note, numeric, row, section, table
from report.pages.changes import change_mark
from report.values.catalog import Catalog
from report.values.trend.means import MIN_SHARE, NIGHTS, BranchMeans, PlaceTrend
from report.values.trend.releases import NewRelease, releases_of


def trend_page(trends: Sequence[PlaceTrend], reports: Sequence[ChangeReport], catalog: Catalog) -> Page:
    """Return the page of all trends; `reports` are all changes."""
    body: list[h.Node] = [
        h.p(".lead")[
            "How the branches of each suite and box moved over time: the geometric mean of the ratios to the "
            "base of the same night, over the same steps in every night, of the latest "
            f"{NIGHTS} nights at most."
        ]
    ]
    names = sorted({branch.branch for trend in trends for branch in trend.branches})
    looks = {name: number for number, name in enumerate(names)}
    body += [_trend(trend, reports, catalog, looks) for trend in trends]
    if not trends:
        body.append(note("No branch was measured beside a base yet: there is nothing relative to show."))
    until = max(
        (night.started_at for trend in trends for branch in trend.branches for night, _ in branch.means),
        default=None,
    )
    return Page(addresses.TREND, "Trend", body, until, crumbs=(("Branches", addresses.BRANCHES),))


def _trend(
    trend: PlaceTrend, reports: Sequence[ChangeReport], catalog: Catalog, looks: Mapping[str, int]
) -> h.Node:
    place = catalog.clearance.place(trend.place)
    chart = TrendChart(
        f"{place.suite} on {place.box}, geometric mean of {metric_name(trend.metric.name)}",
        [_line(branch, catalog, looks[branch.branch]) for branch in trend.branches],
        [_release(release, trend) for release in _releases(trend, catalog)],
        list(_changes(trend, reports)),
    )
    return section(
        f"{place.suite} on {place.box}",
        _steps(trend),
        _levels(trend, chart.lines),
        trend_figure(chart),
        id_=addresses.anchor(f"{place.suite}-{place.box}-{place.configuration}-{trend.metric.name}"),
        lead=f"{place.configuration}; geometric mean of {described(trend.metric)}, relative to {trend.base}.",
    )


def _steps(trend: PlaceTrend) -> h.Node:
    """Say which steps the means are of, and which nights and steps are left out."""
    incomplete = _by_branch({branch.branch: len(branch.incomplete) for branch in trend.branches})
    empty = _by_branch({branch.branch: branch.empty for branch in trend.branches})
    others = _by_branch(trend.others)
    said = (
        f"Left out, because they lack one of these steps: {incomplete}. " if incomplete else "",
        f"Without any value of {metric_name(trend.metric.name)}: {empty}. " if empty else "",
        f"In no mean, because they have a value in less than {100 * MIN_SHARE:.0f} % of the nights of all "
        f"branches together: {others}."
        if others
        else "",
    )
    return [
        h.p[f"Every mean is of the same {counted(len(trend.steps), 'step')}: {', '.join(trend.steps)}."],
        h.p(".quiet")["".join(said)] if any(said) else None,
    ]


def _by_branch(counts: Mapping[str, int]) -> str:
    """Return a list of nights: `postgres@18 1 night, postgres@master 2 nights`."""
    return ", ".join(f"{name} {counted(count, 'night')}" for name, count in counts.items() if count)


def _levels(trend: PlaceTrend, lines: Iterable[TrendLine]) -> h.Node:
    """Return where each branch was and is."""
    rows = []
    for line in lines:
        first, last = line.ends
        rows.append(
            row(
                h.a(href=f"{addresses.branch(line.name)}#metric={trend.metric.name}")[line.name],
                numeric(two_decimals(line.move)),
                numeric(change_of(line.move)),
                numeric(change_of(first)),
                numeric(change_of(last)),
                numeric(f"{day(line.nights[0].when)} to {day(line.nights[-1].when)}"),
                numeric(str(len(line.nights))),
            )
        )
    heads = (
        "branch",
        "moved by",
        "change",
        "first nights to base",
        "last nights to base",
        "from, to",
        "nights",
    )
    caption = f"Medians of the first and the last {AT_ENDS} nights; of fewer than {2 * AT_ENDS}, of each half"
    return table(heads, rows, caption=caption)


def _line(branch: BranchMeans, catalog: Catalog, look: int) -> TrendLine:
    return TrendLine(
        branch.branch,
        [
            TrendNight(night.started_at, mean, addresses.session(catalog.by_id[night.session_id].uid))
            for night, mean in branch.means
        ],
        look,
    )


def _releases(trend: PlaceTrend, catalog: Catalog) -> list[NewRelease]:
    """Return the releases of the branches of a trend and of its base, in the time that it shows."""
    nights = catalog.place_named(trend.place)
    shown = {trend.base, *(branch.branch for branch in trend.branches)}
    first = min(branch.means[0][0].started_at for branch in trend.branches)
    found = releases_of(nights) if nights is not None else ()
    return [release for release in found if release.branch in shown and release.when >= first]


def _release(release: NewRelease, trend: PlaceTrend) -> ReleaseMark:
    of_base = "base " if release.branch == trend.base else ""
    return ReleaseMark(
        release.when,
        f"{of_base}{short_version(release.version)}",
        f"{day(release.when)}: {of_base}{release.branch} is {release.version}, before {release.before}",
    )


def _changes(trend: PlaceTrend, reports: Sequence[ChangeReport]) -> Iterable[ChangeMark]:
    """Yield the mark of each change of a branch here, by the step that it moved most."""
    first = min(branch.means[0][0].started_at for branch in trend.branches)
    shown = {branch.branch for branch in trend.branches}
    for report in reports:
        members = [
            member
            for member in report.change.members
            if member.key.environment == trend.place
            and member.key.metric == trend.metric.name
            and member.key.branch in shown
            and member.first_after.started_at >= first
        ]
        if members:
            main = max(members, key=lambda member: abs(member.ratio - 1))
            mark = change_mark(main, report.change, addresses.change(report.change.fingerprint))
            steps = len({member.key.step for member in members})
            more = f" and {counted(steps - 1, 'more step')}" if steps > 1 else ""
            yield ChangeMark(
                **{**vars(mark), "label": f"{main.key.branch}: {main.key.step}{more} {mark.label}"}
            )
