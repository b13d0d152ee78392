"""The page of a bisect: verdict, posterior of each commit, rounds and log; and the list of bisects."""

from collections.abc import Container, Sequence

import htpy as h

from history.counts import counted, plural_of
from report import addresses
from report.charts.posterior import PositionMark, posterior_figure
from report.markup.formats import amount, change_of, moment, probability, signed, typeset
from report.markup.frame import Page
from report.markup.parts import bullets, commands, facts, note, numeric, section, table
from report.values.bisect_page import BisectPage, BisectPosition, CommitCosts, CommitFunctions, CommitMessage
from report.values.clearance import Clearance

MAX_POSITIONS = 60
"""The most positions that are shown: those that were measured first, then the likeliest."""

MIN_PROBABILITY = 0.0005
"""The least probability of a commit that is shown without having been measured."""

MAX_MESSAGES = 10
"""The most messages that are shown, where a verdict names a range of commits."""


def bisect_page(
    values: BisectPage, clearance: Clearance, sessions: Container[str] = (), *, linked: bool = True
) -> Page:
    """Return the page of a bisect; `linked` is False for one to mail.

    `sessions` are those that the history has: a log can come from another box.
    """
    path = addresses.bisect(values.uid)
    root = addresses.way_to_root(path) if linked else ""
    body: list[h.Node] = [
        h.p(".sentence")[typeset(values.headline)],
        facts(
            (
                ("question", values.question),
                ("source", clearance.text(values.source)),
                ("culprit", culprit_of(values, clearance)),
                ("box", clearance.box(values.box)),
                ("began", moment(values.began_at)),
                (plural_of(values.round_name), str(len(values.rounds))),
                ("confidence asked for", probability(values.confidence)),
                ("change", _change(values, root, linked)),
            )
        ),
        bullets(values.hints),
        _steps(values),
        posterior_section(values, "", clearance),
        [_costs(costs) for costs in values.costs],
        [_functions(functions) for functions in values.functions],
        [] if clearance.is_public else [_message(said) for said in values.messages[:MAX_MESSAGES]],
        _counted(values),
        _rounds(values, root, sessions if linked else ()),
        _log(values),
        _collapsed(values),
        commands(values.commands) if values.commands and not clearance.is_public else None,
    ]
    return Page(
        path,
        f"Bisect {values.uid}",
        body,
        values.updated_at,
        heading=["Bisect ", h.code[values.uid]],
        crumbs=(("Bisects", addresses.BISECTS),),
    )


def bisects_page(bisects: Sequence[BisectPage], clearance: Clearance) -> Page:
    """Return the list of bisects."""
    root = addresses.way_to_root(addresses.BISECTS)
    rows = (
        h.tr[
            h.th(scope="row")[h.a(href=f"{root}{addresses.bisect(bisect.uid)}")[bisect.uid]],
            h.td[moment(bisect.began_at)],
            h.td[clearance.box(bisect.box)],
            h.td[bisect.question],
            h.td[typeset(bisect.headline)],
            h.td[culprit_of(bisect, clearance)],
            numeric(str(len(bisect.rounds))),
        ]
        for bisect in bisects
    )
    body: h.Node = note("There was no bisect yet: ./tidemark bisect looks for the commit behind a change.")
    if bisects:
        body = table(
            ("bisect", "began", "box", "question", "verdict", "culprit", "rounds or passes"),
            rows,
            caption="Bisects, latest first",
            sortable=True,
        )
    return Page(
        addresses.BISECTS, "Bisects", body, max((bisect.updated_at for bisect in bisects), default=None)
    )


def culprit_of(values: BisectPage, clearance: Clearance) -> h.Node:
    """Return the commit that a bisect found, which leads to upstream's page of it; None without one.

    A public site does not say who wrote it: it may be a commit of the house.
    """
    culprit = values.culprit
    if culprit is None:
        return None
    return [
        _commit(culprit.commit, culprit.address),
        f" {culprit.subject}" if culprit.subject != culprit.commit else None,
        f" ({culprit.author})" if culprit.author and not clearance.is_public else None,
    ]


def _commit(commit: str, address: str) -> h.Node:
    """Return a commit, which leads to upstream's page of it where there is one."""
    name = h.code[commit]
    return h.a(href=address, rel="noreferrer")[name] if address.startswith("https:") else name


def posterior_section(values: BisectPage, href: str, clearance: Clearance) -> h.Node:
    """Return the posterior of a bisect as a part of a page; `href` is the page of the bisect, if linked."""
    marks = [
        PositionMark(
            position.position,
            position.commit,
            position.subject,
            position.probability,
            position.ratio,
            position.low,
            position.high,
            position.rounds,
            position.address if position.address.startswith("https:") else "",
            clearance.text(position.excluded),
        )
        for position in _shown(values)
    ]
    said = f": {typeset(values.headline)}."
    lead: h.Node = [h.a(href=href)[f"Bisect {values.uid}"], said] if href else None
    if not values.rounds or not marks:
        return section("Which commit", note(f"No {values.round_name} was measured yet."), lead=lead)
    return section(
        "Which commit",
        posterior_figure(
            marks,
            values.nobody,
            "Ratio to good where it was measured, and the probability of each commit",
            plural_of(values.round_name),
        ),
        lead=lead,
    )


def _shown(values: BisectPage) -> list[BisectPosition]:
    told = [at for at in values.positions if at.rounds or at.excluded or at.probability >= MIN_PROBABILITY]
    likely = sorted(told, key=lambda commit: (commit.rounds == 0, -commit.probability))[:MAX_POSITIONS]
    return sorted(likely, key=lambda position: position.position)


def _change(values: BisectPage, root: str, linked: bool) -> h.Node:
    if values.change is None:
        return None
    return h.a(href=f"{root}{addresses.change(values.change)}")[values.change] if linked else values.change


def _costs(values: CommitCosts) -> h.Node:
    rows = (
        h.tr[h.th(scope="row")[cost], h.td[unit], [numeric(typeset(figure)) for figure in figures]]
        for cost, unit, *figures in values.rows
    )
    heads = ("cost", "unit", "before", "after", "ratio", "interval")
    return section(
        f"Costs that moved with {values.commit}",
        table(heads, rows, caption="Means of the rounds that had a commit on either side of it"),
    )


def _functions(values: CommitFunctions) -> h.Node:
    what, unit = ("Instructions", "") if values.is_exact else ("CPU time", ", µs/query")
    rows = (
        h.tr[
            h.th(scope="row")[h.code[name[:80]]],
            numeric(amount(before)),
            numeric(amount(after)),
            numeric(signed(change)),
        ]
        for name, before, after, change in values.rows
    )
    heads = ("function", f"before{unit}", f"after{unit}", "change")
    return section(
        f"{what} per query, {values.commit} against the commit before it",
        table(heads, rows, caption=f"{what} by function"),
    )


def _message(values: CommitMessage) -> h.Node:
    label = f"Message of {values.commit}, {values.author}, {values.date[:10]}"
    return h.details[h.summary[label], h.pre(tabindex="0", role="group", aria_label=label)[values.message]]


def _steps(values: BisectPage) -> h.Node:
    if not values.steps:
        return None
    pages = {position.commit: position.address for position in values.positions}
    rows = (
        h.tr[
            h.th(scope="row")[_commit(commit, pages.get(commit, ""))], h.td[subject], numeric(typeset(change))
        ]
        for commit, subject, change in values.steps
    )
    heads = ("commit", "subject", "change")
    return section("What makes up the difference", table(heads, rows, caption="Changes multiply"))


def _counted(values: BisectPage) -> h.Node:
    if not values.counted:
        return None
    rows = (
        h.tr[h.th(scope="row")[h.code[commit]], h.td[subject], numeric(f"{ratio:.4f}"), numeric(str(passes))]
        for commit, subject, ratio, passes in values.counted
    )
    heads = ("commit", "subject", "instructions, ratio to good", "passes")
    return section("Counted first", table(heads, rows, caption="Instructions per query"))


def _rounds(values: BisectPage, root: str, sessions: Container[str]) -> h.Node:
    names = {position.position: position.commit for position in values.positions}
    rows = (
        h.tr[
            h.td[
                h.a(href=f"{root}{addresses.session(measured_round.session)}")[measured_round.session]
                if measured_round.session in sessions
                else measured_round.session
            ],
            numeric(str(measured_round.number)),
            h.td[
                ", ".join(
                    f"{names.get(place, place)} {change_of(ratio)}"
                    for place, ratio in sorted(measured_round.ratios.items())
                )
            ],
        ]
        for measured_round in values.rounds
    )
    if not values.rounds:
        return None
    return h.details[
        h.summary[counted(len(values.rounds), values.round_name)],
        table(
            ("session", values.round_name, "ratios to good"),
            rows,
            caption=f"{plural_of(values.round_name).capitalize()} of the bisect",
        ),
    ]


def _log(values: BisectPage) -> h.Node:
    if not values.log:
        return None
    rows = (h.tr[h.td[moment(when)], h.td[kind], h.td[session]] for when, kind, session in values.log)
    return h.details[
        h.summary["Log"], table(("when", "event", "session"), rows, caption="Events of the bisect")
    ]


def _collapsed(values: BisectPage) -> h.Node:
    if not values.collapsed:
        return None
    rows = (
        h.tr[h.th(scope="row")[h.code[commit[:12]]], h.td[subject], h.td[reason]]
        for commit, subject, reason in values.collapsed
    )
    return h.details[
        h.summary[f"Cannot change a server: {counted(len(values.collapsed), 'commit')}"],
        table(("commit", "subject", "why"), rows, caption="Commits that cannot change a server"),
    ]
