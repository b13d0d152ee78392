"""Cards of the overview: a change for the worse, a box that measured nothing, the verdict of a session."""

from collections.abc import Sequence

import htpy as h

from history.changes.report import ChangeReport, most_prominent
from history.changes.repository import Change, Member
from history.comparison.compare import is_regression
from history.comparison.exact import is_exact
from history.comparison.result import ContenderComparison, StepComparison
from history.comparison.verdict import Verdict
from history.counts import counted
from history.errors import stored_version
from history.numbers import DASH
from history.rendering.changes import counted_rounds
from history.rendering.commands import DECIDED, change_search, run_again
from history.rendering.table import verdict_word
from report import addresses
from report.charts.sparkline import spark
from report.markup.formats import SHORT_HASH, bounds, change_of, change_text, day, metric_name, span, typeset
from report.markup.parts import SIGNS, commands, tone_of
from report.pages.bisect import culprit_of
from report.pages.changes import change_mark, commits_text, confidence, direction_sign, headline, is_worse
from report.pages.overview.sentence import box_link, verdict_words
from report.values.bisect_page import BisectPage
from report.values.box_states import BoxState
from report.values.catalog import Catalog
from report.values.clearance import Clearance
from report.values.commits import NoCommits
from report.values.overview import ChangeNews, LatestComparison

MAX_STEPS = 4
"""The steps that a card names."""

COUNTED = "Instructions are no time. "
"""What a card of counted passes says: more of them need not be slower."""


def change_card(news: ChangeNews, catalog: Catalog) -> h.Node:
    """Return the card of an open change for the worse."""
    report = news.report
    change = report.change
    is_new = news.is_new and not change.is_muted
    since = "new" if is_new else f"known since {day(change.found_at)}"
    if change.is_muted and change.muting is not None:
        since = f"muted until {change.muting.until}"
    return h.li(class_="card worse")[
        h.div(".card-text")[
            h.h3[
                direction_sign(change.direction),
                " ",
                h.a(href=addresses.change(change.fingerprint))[headline(report)],
                " ",
                h.span(class_=f"badge {'worse' if is_new else 'plain'}")[since],
            ],
            _sides(change),
            h.p(".where")[_place(report, catalog)],
            h.p[_how_sure(report, catalog.clearance)],
            h.p[_since_which_commit(news, catalog.clearance)],
            _next(report, news.bisect, catalog.clearance),
        ],
        _spark(news, catalog),
    ]


def _sides(change: Change) -> h.Node:
    """Return which steps moved, and of a trade how either side did; of a single step the heading says all."""
    sides = [members for members in (change.leading, change.opposite) if members]
    is_told = len(sides) == 1 and len({member.key.step for member in change.leading}) == 1
    return None if is_told else [_side(members) for members in sides]


def _side(members: Sequence[Member]) -> h.Node:
    """Return how some series moved that moved alike: of a trade there are two such lines."""
    main = most_prominent(members)
    worse = is_worse(main)
    tone, sign = ("plain", "◇") if worse is None else ("worse", "▾") if worse else ("better", "▴")
    steps = list(dict.fromkeys([main.key.step, *(member.key.step for member in members)]))
    return h.p(".side")[
        h.span(class_=f"sign {tone}", aria_hidden="true")[sign],
        " ",
        h.strong(class_=f"number {tone}")[change_of(main.ratio)],
        h.span(".quiet")[f" ({span(main.ratio_low, main.ratio_high)})"],
        f" {metric_name(main.key.metric)}: {_listed(steps)}",
    ]


def _listed(names: Sequence[str]) -> str:
    more = len(names) - MAX_STEPS
    return f"{', '.join(names[:MAX_STEPS])}{f' and {more} more' if more > 0 else ''}"


def _place(report: ChangeReport, catalog: Catalog) -> str:
    change = report.change
    environments = [catalog.clearance.place(member.key.environment) for member in change.members]
    configurations = sorted({environment.configuration for environment in environments})
    boxes = sorted({environment.box for environment in environments})
    against = f" against {report.base}" if report.base else ""
    return f"{change.branch}{against}, {change.suite} ({_listed(configurations)}), on {_listed(boxes)}"


def _how_sure(report: ChangeReport, clearance: Clearance) -> h.Node:
    confirmed, main = report.confirmation, report.main_series
    if confirmed is None:
        size = change_text(main.ratio, main.ratio_low, main.ratio_high)
        sure = f"confidence {confidence(main.confidence)}; not measured side by side yet"
        return [h.strong["Inferred from nights"], f": {size} {metric_name(main.key.metric)}, {sure}."]
    replicated = clearance.box(confirmed.replicated_on) if confirmed.replicated_on else ""
    return [
        h.strong["Confirmed side by side"],
        f" on {replicated}" if replicated else None,
        f": {change_text(confirmed.ratio, confirmed.low, confirmed.high)} "
        f"{metric_name(confirmed.key.metric)} of {confirmed.key.step} in ",
        h.a(href=addresses.session(confirmed.uid))[counted_rounds(confirmed)],
        ".",
    ]


def _since_which_commit(news: ChangeNews, clearance: Clearance) -> h.Node:
    """Return the culprit of a bisect, else the commits between the nights as far as they are known."""
    report, bisect, commits = news.report, news.bisect, news.commits
    if bisect is not None and bisect.culprit is not None:
        found = h.a(href=addresses.bisect(bisect.uid))[f"bisect {bisect.uid}"]
        return [h.strong["Culprit"], ": ", culprit_of(bisect, clearance), ", found by ", found, "."]
    before, after = report.change.last_before, report.change.first_after
    if before.version == after.version:
        is_one = stored_version(before.version).is_release
        why = "there are no commits" if is_one else "it may have moved; no commits are recorded"
        return f"Both nights measured {before.version}: {why} between them."
    nights = f"between the nights of {day(before.started_at)} and {day(after.started_at)}"
    if isinstance(commits, NoCommits):
        return f"{commits_text(report)}, {nights}."
    suspects = commits.material or commits.newest
    last = suspects[0]
    less = (
        f", {len(commits.material)} of which can change the server" if len(suspects) < commits.total else ""
    )
    which = "the only one that can" if len(commits.material) == 1 < commits.total else "the newest"
    name: h.Node = h.code[last.commit[:SHORT_HASH]]
    if last.address.startswith("https:"):
        name = h.a(href=last.address, rel="noreferrer")[name]
    return [
        h.a(href=f"{addresses.change(report.change.fingerprint)}#commits")[counted(commits.total, "commit")],
        f"{less} {nights}; {which}: " if commits.total > 1 else f" {nights}: ",
        name,
        f" {last.subject}",
        f" ({last.author})" if last.author else None,
    ]


def _next(report: ChangeReport, bisect: BisectPage | None, clearance: Clearance) -> h.Node:
    """Return the next command to copy, or what is known instead of it."""
    if bisect is not None:
        if bisect.culprit is not None:
            return None
        return h.p(".where")[
            h.a(href=addresses.bisect(bisect.uid))[f"Bisect {bisect.uid}"], f": {typeset(bisect.headline)}"
        ]
    lines = change_search(report) if not clearance.is_public else []
    return _command(lines, f"Find the commit of {report.main_series.key.step}")


def _command(lines: Sequence[str], what: str) -> h.Node:
    """Return a command to copy; comments, which say why there is none, are sentences above it."""
    said = [line.removeprefix("#").strip() for line in lines if line.startswith("#")]
    told = [line for line in lines if not line.startswith("#")]
    return [
        h.p(".where")[" ".join(said)] if said else None,
        h.div(".actions")[commands(told, what)] if told else None,
    ]


def _spark(news: ChangeNews, catalog: Catalog) -> h.Node:
    if not news.points:
        return None
    main = news.report.main_series
    key = main.key
    label = (
        f"{key.step}, {metric_name(key.metric)} on {catalog.clearance.box(key.environment.box)}: "
        f"{change_of(main.ratio)} between {day(main.last_before.started_at)} and "
        f"{day(main.first_after.started_at)}"
    )
    nights = [(point.night.started_at, point.relative) for point in news.points]
    return spark(nights, change_mark(main, news.report.change, ""), label)


def blind_card(box: BoxState, catalog: Catalog) -> h.Node:
    """Return the card of a box on which nothing could be measured."""
    what = "night" if catalog.is_of_service(box.uid) else "session"
    last = f"last {what}" if box.blind_nights == 1 else f"last {counted(box.blind_nights, what)}"
    reasons = list(dict.fromkeys(catalog.clearance.text(lack.reason) for lack in box.lacks if lack.reason))
    return h.li(class_="card failed")[
        h.div(".card-text")[
            h.h3[
                h.span(".sign.failed", aria_hidden="true")["✖"],
                " ",
                box_link(box, catalog),
                f": nothing could be measured in its {last}",
            ],
            h.p(".where")[_listed(list(dict.fromkeys(lack.branch for lack in box.lacks)))],
            [h.p(".why-failed")[reason] for reason in reasons[:2]],
            h.p(".where")[
                h.a(href=addresses.session(box.uid))["The last session"] if box.uid else None,
                f" of {day(box.at)}. What the site says of its changes is as old as its last value.",
            ],
        ]
    ]


def verdict_card(entry: LatestComparison, catalog: Catalog) -> h.Node:
    """Return the card of a session whose verdict is the news."""
    tone = "worse" if entry.worse else "open" if entry.undecided else "same"
    comparison = entry.comparison
    place = catalog.clearance.place(entry.place)
    steps = [
        step
        for step in comparison.steps
        if is_regression(step) or step.judged.verdict is not Verdict.UNCHANGED
    ]
    shown = sorted(steps, key=_news_of_step)[:MAX_STEPS]
    more = len(steps) - len(shown)
    return h.li(class_=f"card {tone}")[
        h.div(".card-text")[
            h.h3[verdict_words(entry)],
            [_step(comparison, step) for step in shown],
            h.p(".where")[f"and {counted(more, 'more step')} that changed or are undecided"]
            if more > 0
            else None,
            h.p(".where")[
                f"{metric_name(entry.metric.name)}, {place.suite} ({place.configuration}) on {place.box}, "
                f"session of {day(entry.night.started_at)}. "
                f"{COUNTED if is_exact(entry.metric.name) else ''}"
                "There are too few nights to search for changes of a branch."
            ],
            _decide(entry, catalog.clearance),
        ]
    ]


_ORDER = (Verdict.REGRESSION, Verdict.IMPROVEMENT, Verdict.INCONCLUSIVE, None, Verdict.UNCHANGED)


def _news_of_step(step: StepComparison) -> tuple[bool, int, float]:
    judged = step.judged
    order = _ORDER.index(judged.verdict)
    return not is_regression(step), order, -abs((judged.value or 1.0) - 1)


def _step(comparison: ContenderComparison, step: StepComparison) -> h.Node:
    judged = step.judged
    tone = "worse" if is_regression(step) else tone_of(judged.verdict)
    shown = Verdict.REGRESSION if tone == "worse" else judged.verdict
    sign = SIGNS[shown] if shown is not None else DASH
    worse = [found.text for found in step.findings if found.is_worse]
    if step.has_more_instructions and step.is_open:
        worse.insert(0, "more instructions")
    more = f" and {len(worse) - 1} more" if len(worse) > 1 else ""
    also = f"; {typeset(worse[0])}{more}" if worse else ""
    return h.p(".side")[
        h.span(class_=f"sign {tone}", aria_hidden="true")[sign],
        " ",
        h.strong(class_=f"number {tone_of(judged.verdict)}")[change_of(judged.value)],
        h.span(".quiet")[f" ({bounds(judged.interval)})"] if judged.interval else None,
        f" {step.step}: {verdict_word(comparison, step)}{also}",
    ]


def _decide(entry: LatestComparison, clearance: Clearance) -> h.Node:
    """Return the command that measures undecided steps until they are decided."""
    undecided = [step.step for step in entry.comparison.steps if step.is_open]
    if not undecided or clearance.is_public:
        return None
    versions = [str(entry.comparison.base), str(entry.comparison.contender)]
    lines = run_again(entry.comparison.session, versions, undecided, DECIDED)
    return _command(lines, f"Measure {entry.branch} until decided")
