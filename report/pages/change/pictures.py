"""The charts of a change as files of their own, to stand in a wiki or an issue."""

from collections.abc import Iterator

import htpy as h

from report import addresses
from report.charts.alone import picture_of
from report.pages.changes import change_sentence, chart_of, headline, moved
from report.values.catalog import Catalog
from report.values.change_details import ChangeDetails, MemberSeries


def pictures(details: ChangeDetails, catalog: Catalog, style: str) -> dict[str, str]:
    """Return the pictures of a change and of its series that have nights, by path; `style` colours them."""
    found = {}
    report = details.report
    main = details.series[0]
    if main.points:
        chart = chart_of(main, details, catalog, "", "main", linked=False)
        title = f"{headline(report)}, {report.change.branch}"
        path = addresses.picture(report.change.fingerprint)
        found[path] = picture_of(chart, title, change_sentence(report, catalog.clearance), style)
    for series, path in _series(details, catalog):
        chart = chart_of(series, details, catalog, "", "series", linked=False)
        sentence = f"{chart.title}: {moved(series.member)}."
        found[path] = picture_of(chart, chart.title, sentence, style, small=True)
    return found


def picture_links(details: ChangeDetails, catalog: Catalog, root: str) -> h.Node:
    """Return links to the pictures of a change, with where to use them."""
    if not details.series[0].points:
        return None
    links = [("the change", addresses.picture(details.report.change.fingerprint))]
    for series, path in _series(details, catalog):
        key = series.member.key
        links.append((f"{key.step}, {key.metric}, {catalog.clearance.box(key.environment.box)}", path))
    return h.p(".key")[
        "Pictures for a wiki or an issue, at addresses that stay: ",
        [
            [", " if number else "", h.a(href=f"{root}{path}")[name]]
            for number, (name, path) in enumerate(links)
        ],
        ".",
    ]


def _series(details: ChangeDetails, catalog: Catalog) -> Iterator[tuple[MemberSeries, str]]:
    for series in details.series:
        key, place = series.member.key, catalog.clearance.place(series.member.key.environment)
        if series.points:
            parts = (place.box, place.suite, place.configuration, key.branch, key.step, key.metric)
            yield (
                series,
                addresses.picture(details.report.change.fingerprint, addresses.series_id(*parts)),
            )
