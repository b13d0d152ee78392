"""A change as one page: what, how sure, where, since when, which commit, and how to see it again."""

import re
from collections.abc import Iterator

import htpy as h

from build.engines import ENGINES
from history.changes.repository import Change
from history.errors import stored_version
from history.rendering.changes import counted_rounds, owners_text
from history.series.series import SeriesKey
from history.store.records import ChangeStatus
from report import addresses
from report.charts.intervals import IntervalRow, interval_figure
from report.charts.nights import night_figure
from report.markup.formats import amount, change_of, day, moment, share, signed, span, typeset
from report.markup.frame import Page
from report.markup.metrics import named
from report.markup.parts import facts, note, numeric, section, table, tone_of
from report.pages.bisect import culprit_of, posterior_section
from report.pages.change.actions import actions
from report.pages.change.commits import commits_section
from report.pages.change.costs import PLACE_HEADS, cells_of, costs_section
from report.pages.change.pictures import picture_links
from report.pages.changes import (
    change_sentence,
    chart_of,
    commits_text,
    confidence,
    direction_sign,
    headline,
    replication,
    series_name,
)
from report.pages.setup import differences
from report.values.bisect_page import BisectPage
from report.values.catalog import Catalog
from report.values.change_details import ChangeDetails
from report.values.clearance import Clearance
from report.values.commits import Commits

_REPOSITORY = re.compile(r"[A-Za-z0-9_.:-]+(/[A-Za-z0-9_.~-]+)+")


def change_page(
    details: ChangeDetails,
    catalog: Catalog,
    bisect: BisectPage | None,
    commits: Commits,
    *,
    linked: bool = True,
    tracker: str = "",
) -> Page:
    """Return the page of a change; `linked` is False for one to mail, which links to nothing of the site.

    `commits` are those between its nights, as the site may show them. `tracker` is the address of an
    issue's page, with `{repository}` and `{number}`.
    """
    report = details.report
    change = report.change
    path = addresses.change(change.fingerprint)
    root = addresses.way_to_root(path) if linked else ""
    culprit = culprit_of(bisect, catalog.clearance) if bisect else None
    searched = f"{root}{addresses.bisect(bisect.uid)}" if bisect and linked else ""
    body = [
        h.p(".sentence")[change_sentence(report, catalog.clearance)],
        h.p(".sentence")["Culprit: ", culprit, "."] if culprit else None,
        actions(report, bisect, searched, catalog),
        _main_chart(details, catalog, root, linked),
        _facts(details, catalog, root, tracker, linked),
        commits_section(commits, bisect),
        replication(details, catalog, root, linked),
        _confirmation(details, catalog, root, linked),
        posterior_section(bisect, searched, catalog.clearance) if bisect else None,
        costs_section(details, catalog, root, linked),
        _functions(details, catalog),
        _environment(details, catalog),
        _others(details, catalog, root, linked),
        _members(details, catalog, root, linked),
        picture_links(details, catalog, root) if linked else None,
        None if linked else tab_separated(details, catalog),
    ]
    last = (
        max(drawn.points[-1].night.started_at for drawn in details.series if drawn.points)
        if any(drawn.points for drawn in details.series)
        else change.updated_at
    )
    return Page(
        path,
        f"{headline(report)}: {change.branch}",
        body,
        last,
        heading=[
            direction_sign(change.direction),
            f" {headline(report)} ",
            h.span(".quiet")[change.branch],
        ],
        crumbs=(("Changes", addresses.CHANGES),),
    )


def _facts(details: ChangeDetails, catalog: Catalog, root: str, tracker: str, linked: bool) -> h.Node:
    report = details.report
    change = report.change
    return facts(
        (
            (
                "status",
                [
                    h.span(class_=f"badge status-{change.status}")[str(change.status)],
                    f" {_why(change, catalog.clearance)}",
                ],
            ),
            *_decisions(change, catalog.clearance),
            *_rules(change, catalog.clearance),
            (
                "branch",
                h.a(href=f"{root}{addresses.branch(change.branch)}")[change.branch]
                if linked
                else change.branch,
            ),
            (
                "nights",
                f"after {moment(change.last_before.started_at)}, "
                f"up to {moment(change.first_after.started_at)}",
            ),
            ("commits", _commits(details)),
            ("detected", moment(change.found_at)),
            ("base", report.base or "none"),
            ("issue", _issue(details, catalog.clearance, tracker)),
            ("fingerprint", h.code[change.fingerprint]),
        )
    )


def _why(change: Change, clearance: Clearance) -> str:
    """Why a change has its status; what people decided is told apart."""
    is_told = change.status is ChangeStatus.ACKNOWLEDGED and change.acknowledgements
    return "" if is_told else clearance.text(change.reason or "")


def _decisions(change: Change, clearance: Clearance) -> Iterator[tuple[str, h.Node]]:
    """What people decided about a change: who, why, and until when."""
    if change.acknowledgements:
        events = [str(clearance.acknowledgement(event)) for event in change.acknowledgements]
        yield "decided", h.ul(".plain-list")[(h.li[event] for event in events)]


def _rules(change: Change, clearance: Clearance) -> Iterator[tuple[str, h.Node]]:
    """What the plan says of a change: that it is muted, or was, and whose it is."""
    if change.muting is not None:
        yield "muted", str(clearance.muting(change.muting))
    owners = clearance.owners(change.owners)
    if owners:
        rules = " and ".join(dict.fromkeys(owner.rule for owner in owners))
        yield "owners", f"{owners_text(owners).partition(': ')[2]}, by {rules}"


def _commits(details: ChangeDetails) -> h.Node:
    report = details.report
    old, new = report.commits
    text = commits_text(report)
    if not old or not new:
        return text
    page = ENGINES[stored_version(report.change.first_after.version).engine].compare_page
    address = f"{page}{old[:12]}...{new[:12]}"
    return h.a(href=address, rel="noreferrer")[text] if address.startswith("https:") else text


def _issue(details: ChangeDetails, clearance: Clearance, tracker: str) -> h.Node:
    if details.issue is None:
        return None
    name, number, state = details.issue
    repository = clearance.repository(name)
    text = f"{repository}#{number}, {state}"
    if tracker.startswith("https:") and _REPOSITORY.fullmatch(repository):
        address = tracker.replace("{repository}", repository).replace("{number}", str(number))
        return h.a(href=address, rel="noreferrer")[text]
    return text


def _main_chart(details: ChangeDetails, catalog: Catalog, root: str, linked: bool) -> h.Node:
    main = details.series[0]
    if not main.points:
        return note("The nights of its main series are no longer in the history.")
    return section(
        "Nights before and after", night_figure(chart_of(main, details, catalog, root, "main", linked))
    )


def _confirmation(details: ChangeDetails, catalog: Catalog, root: str, linked: bool) -> h.Node:
    confirmed = details.report.confirmation
    if confirmed is None:
        return section(
            "Confirmation",
            note("No session measured both commits side by side: the change is inferred from nights alone."),
        )
    uid = h.a(href=f"{root}{addresses.session(confirmed.uid)}")[confirmed.uid] if linked else confirmed.uid
    name = confirmed.round_name
    rows = [
        IntervalRow(
            f"{name} {number}", ratio, tone="quiet" if left_out else "plain", note=left_out, is_small=True
        )
        for number, ratio, left_out in details.confirmed_rounds
    ]
    which = "other" if any(interval.note for interval in rows) else "all"
    judged = details.confirmed_step
    tone = tone_of(judged.verdict) if judged is not None else "plain"
    rows.append(
        IntervalRow(
            "all passes" if confirmed.is_counted else f"{which} {name}s",
            confirmed.ratio,
            confirmed.low,
            confirmed.high,
            tone,
            f"confidence {confidence(confirmed.confidence)}",
        )
    )
    return section(
        "Confirmed side by side",
        interval_figure(
            rows,
            f"{confirmed.after.version} over {confirmed.before.version}, {name} by {name}",
            what=name,
            threshold=_threshold(details, catalog),
        ),
        lead=[
            "Session ",
            uid,
            f" measured the old and the new commit in {counted_rounds(confirmed)}: "
            f"{series_name(confirmed.key, catalog.clearance)}.",
        ],
    )


def _threshold(details: ChangeDetails, catalog: Catalog) -> float:
    """Return the threshold by which the main series was judged; without rounds, that of its metric."""
    judged = details.confirmed_step
    return judged.threshold if judged else catalog.threshold_of(details.report.main_series.key.metric)


def _place_of(key: SeriesKey, catalog: Catalog) -> str:
    place = catalog.clearance.place(key.environment)
    return f"{place.suite} on {place.box}"


def _functions(details: ChangeDetails, catalog: Catalog) -> h.Node:
    main = details.report.main_series.key
    gained = details.report.gained
    if not gained:
        return section("Functions", note("There are no profiles of both sides, or no function gained."))
    counted_ones = details.report.is_gained_counted
    what, unit = ("Instructions", "") if counted_ones else ("CPU time", ", µs/query")
    rows = (
        h.tr[
            h.th(scope="row")[h.code[function.name[:80]]],
            numeric(amount(function.base.own)),
            numeric(amount(function.contender.own)),
            numeric(signed(function.own_change)),
            numeric(share(function.own_share, 0)),
        ]
        for function in gained
    )
    heads = ("function", f"before{unit}", f"after{unit}", "change", "share")
    caption = f"{what} per query of {main.step} by function, {_place_of(main, catalog)}"
    title = "Functions that execute more" if counted_ones else "Functions that take more time"
    return section(title, table(heads, rows, caption=caption))


def _environment(details: ChangeDetails, catalog: Catalog) -> h.Node:
    clearance = catalog.clearance
    place = _place_of(details.report.main_series.key, catalog)
    settings = [clearance.settings(setup.settings) for setup in details.setups]
    manifests = [clearance.manifest(setup.manifest) for setup in details.setups]
    changed = [
        f"{clearance.box(event.box)}, {day(event.night.started_at)}: {typeset(clearance.text(event.text))}"
        for event in details.report.environment
    ]
    return section(
        "What else differs",
        h.ul[(h.li[line] for line in changed)]
        if changed
        else note("Machine, base, suite and tools are the same in both nights."),
        h.details[
            h.summary[f"Settings of both nights: {place}"], differences(details.setups, settings, "setting")
        ],
        h.details[
            h.summary[f"Builds of both nights: {place}"],
            differences(details.setups, manifests, "entry of the manifest"),
        ],
    )


def _others(details: ChangeDetails, catalog: Catalog, root: str, linked: bool) -> h.Node:
    others = [remaining for remaining in details.series[1:] if remaining.points]
    if not others:
        return None
    charts = (
        night_figure(chart_of(other, details, catalog, root, f"s{number}", linked), small=True)
        for number, other in enumerate(others)
    )
    return section("Other series that moved with it", h.div(".multiples")[charts])


def _members(details: ChangeDetails, catalog: Catalog, root: str, linked: bool) -> h.Node:
    rows = []
    for member in details.report.change.members:
        key = member.key
        place = catalog.clearance.place(key.environment)
        series = addresses.series_id(
            place.box, place.suite, place.configuration, key.branch, key.step, key.metric
        )
        rows.append(
            h.tr[
                h.th(scope="row")[
                    h.a(href=f"{root}{addresses.series(series)}")[key.step] if linked else key.step
                ],
                h.td[named(key.metric)],
                numeric(change_of(member.ratio)),
                [h.td[text] for text in cells_of(place)],
                numeric(f"{member.level_before:.3f}"),
                numeric(f"{member.level_after:.3f}"),
                numeric(span(member.ratio_low, member.ratio_high)),
                numeric(confidence(member.confidence)),
                h.td[f"gone since {day(member.gone.started_at)}" if member.gone else "persists"],
            ]
        )
    heads = (
        "step",
        "metric",
        "change",
        *PLACE_HEADS,
        "before",
        "after",
        "interval",
        "confidence",
        "state",
    )
    return section(
        "All its series",
        table(heads, rows, caption="All series of the change", sortable=linked),
        lead="Before and after are ratios to the base of the same night.",
    )


def tab_separated(details: ChangeDetails, catalog: Catalog) -> h.Node:
    """Return the nights of the main series as tab-separated text to copy out of a mailed page."""
    main = details.series[0]
    lines = ["night\tversion\tmeasured\tvalue\tbase\tratio\tgap"]
    for point in main.points:
        ratio = f"{point.relative:.6g}" if point.relative is not None else ""
        cells = (
            f"{point.night.started_at:%Y-%m-%dT%H:%MZ}",
            point.night.version,
            f"{point.night.measured_at or point.night.started_at:%Y-%m-%dT%H:%MZ}",
            str(point.value or ""),
            str(point.base or ""),
            ratio,
            catalog.clearance.text(point.gap),
        )
        lines.append("\t".join(" ".join(cell.split()) for cell in cells))
    return section(
        "The nights as tab-separated text",
        h.pre(tabindex="0", role="group", aria_label="tab-separated nights")["\n".join(lines)],
    )
