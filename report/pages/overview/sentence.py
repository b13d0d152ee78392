"""The news of the last night in one sentence."""

from collections.abc import Sequence

import htpy as h

from history.counts import counted
from history.rendering.table import outcome
from report import addresses
from report.markup.formats import day, metric_name, typeset
from report.values.box_states import BoxState, Lack
from report.values.catalog import Catalog, SessionKind
from report.values.overview import LatestComparison, Overview
from suites.metrics import Role

MAX_NAMED = 3
"""The boxes, and the gaps, that the sentence names; of more it says how many."""

BOXES = "boxes"
"""The id of the table of boxes."""

_SIGNS = {"failed": "✖", "worse": "▾", "open": "?", "same": "="}


def news_sentence(overview: Overview, catalog: Catalog) -> h.Node:
    """Return the sentence: the night, changes for the worse, boxes, undecided steps, and what is missing.

    Of a branch that has too few nights for changes it is the sentence that `compare` has on its session.
    """
    tone = _tone(overview)
    clauses = [
        _blind(overview, catalog),
        _without_night(overview, catalog),
        _changes(overview),
        _reported(overview, catalog),
        _undecided(overview),
        _not_measured(overview, catalog),
    ]
    return h.p(class_=f"sentence news {tone}")[
        h.span(class_=f"sign {tone}", aria_hidden="true")[_SIGNS[tone]],
        f" {_single(overview, catalog) or _night(overview, catalog)}: ",
        _joined([clause for clause in clauses if clause], "; "),
        ".",
    ]


def _tone(overview: Overview) -> str:
    """Return the class of the sentence, by the most urgent of what it says."""
    comparisons = overview.of_last_night
    if overview.blind:
        return "failed"
    if overview.worse or any(entry.worse for entry in overview.verdicts):
        return "worse"
    lacks = any(box.lacks for box in overview.nightly)
    undecided = any(entry.undecided for entry in comparisons)
    return "open" if overview.missing or lacks or undecided or not comparisons else "same"


def _joined(nodes: Sequence[h.Node], separator: str) -> h.Node:
    """Return nodes with a text between them."""
    return [[separator if number else None, node] for number, node in enumerate(nodes)]


def _single(overview: Overview, catalog: Catalog) -> str:
    """Return the sessions of a history without nights, or without a second one of anything; else nothing."""
    sessions = {entry.night.uid: entry.night for entry in overview.verdicts}
    if overview.nightly or not sessions:
        nights = [place.nights for place in catalog.places]
        if any(len(entries) > 1 for entries in nights):
            return ""
        sessions = {entries[0].uid: entries[0] for entries in nights}
    if not sessions:
        return ""
    last = day(max(entry.started_at for entry in sessions.values()))
    return f"Session of {last}" if len(sessions) == 1 else f"{len(sessions)} sessions up to {last}"


def _night(overview: Overview, catalog: Catalog) -> str:
    reported = [box for box in overview.nightly if not box.is_missing]
    days = sorted({day(box.at) for box in reported})
    if not days and catalog.sessions and overview.open_worse[1]:
        last = max(entry.started_at for entry in catalog.sessions.values())
        return f"{counted(len(catalog.sessions), 'session')} up to {day(last)}"
    if not days:
        return "No night yet"
    if not any(catalog.is_of_service(box.uid) for box in reported):
        return f"Sessions up to {days[-1]}"
    if len(days) == 1:
        return f"Night of {days[0]}"
    dated = [f"{day(box.at)} on {catalog.clearance.box(box.box)}" for box in reported]
    more = f" and {len(dated) - MAX_NAMED} more" if len(dated) > MAX_NAMED else ""
    return f"Last night ({', '.join(dated[:MAX_NAMED])}{more})"


def _blind(overview: Overview, catalog: Catalog) -> h.Node:
    if not overview.blind:
        return None
    names = _names(overview.blind, catalog)
    longest = max(box.blind_nights for box in overview.blind)
    is_night = any(catalog.is_of_service(box.uid) for box in overview.blind)
    row = f"for {counted(longest, 'night')}" if is_night else f"in {counted(longest, 'session')}"
    in_a_row = f" {row} in a row" if longest > 1 else ""
    return h.strong["nothing could be measured on ", _joined(names, ", "), in_a_row]


def _names(boxes: Sequence[BoxState], catalog: Catalog) -> list[h.Node]:
    named: list[h.Node] = [
        [box_link(box, catalog), f" (last seen {day(box.at)})" if box.is_missing else None]
        for box in boxes[:MAX_NAMED]
    ]
    more = len(boxes) - MAX_NAMED
    return [*named, h.a(href=f"#{BOXES}")[f"{more} more"]] if more > 0 else named


def _without_night(overview: Overview, catalog: Catalog) -> h.Node:
    if overview.nightly or overview.verdicts or overview.open_worse[1]:
        return None
    sessions = list(catalog.sessions.values())
    if all(entry.kind is SessionKind.IMPORTED for entry in sessions):
        return [
            "imported results are compared once they have a base: ",
            h.code["./tidemark history import --base VERSION"],
        ]
    last = max((entry.started_at for entry in sessions), default=None)
    return f"{counted(len(sessions), 'session')}{f', the last of {day(last)}' if last else ''}"


def _changes(overview: Overview) -> h.Node:
    new, all_open = overview.open_worse
    if not overview.nightly and not overview.verdicts and not all_open:
        return None
    known = all_open - new
    if overview.verdicts and not overview.worse:
        return _verdicts(overview)
    where = " where anything was measured" if overview.blind else ""
    told = f"{new or 'no'} new {'changes' if new > 1 else 'change'} for the worse{where}"
    return f"{told}, {known} known {'is' if known == 1 else 'are'} still open" if known else told


def _verdicts(overview: Overview) -> h.Node:
    """Return the sentences on the sessions that have too few nights before them to search for changes."""
    named, others = overview.verdicts[:MAX_NAMED], overview.verdicts[MAX_NAMED:]
    worse = sum(entry.worse > 0 for entry in others)
    more = f"; {counted(len(others), 'more comparison')}, {worse or 'none'} worse" if others else ""
    return [_joined(list(map(verdict_words, named)), "; "), f"{more} (too few nights to search for changes)"]


def verdict_words(entry: LatestComparison) -> h.Node:
    """Return what `compare` says of a session's contender: `postgres@18.6 against postgres@17.11: ...`."""
    comparison = entry.comparison
    metric = f", {metric_name(entry.metric.name)}" if entry.metric.role is not Role.THROUGHPUT else ""
    found = typeset(outcome(comparison)).removesuffix(".")
    link = h.a(href=addresses.session(entry.night.uid))
    return [link[f"{comparison.contender} against {comparison.base}{metric}"], f": {found}"]


def _reported(overview: Overview, catalog: Catalog) -> h.Node:
    boxes, missing = overview.nightly, overview.missing
    if not boxes or _single(overview, catalog):
        return None
    told = f"{len(boxes) - len(missing)} of {counted(len(boxes), 'box')} reported"
    if not missing:
        return told
    return [f"{told}, without ", _joined(_names(missing, catalog), ", ")]


def _undecided(overview: Overview) -> h.Node:
    if all(entry in overview.verdicts for entry in overview.of_last_night):
        return None  # the verdicts have said it
    steps = {
        (entry.place.suite, step.step): False
        for entry in overview.of_last_night
        for step in entry.comparison.steps
    }
    for entry in overview.of_last_night:
        suite = entry.place.suite
        steps |= {(suite, step.step): True for step in entry.comparison.steps if step.is_open}
    where = "" if len(overview.of_last_night) == 1 else " in one comparison at least"
    return f"{sum(steps.values())} of {counted(len(steps), 'step')} undecided{where}"


def _not_measured(overview: Overview, catalog: Catalog) -> h.Node:
    """Return what boxes that reported and measured something did not measure."""
    seen = [box for box in overview.nightly if not box.is_blind and not box.is_missing]
    lacks = [(box, lack) for box in seen for lack in box.lacks]
    if not overview.nightly and not overview.verdicts:
        return None
    if not lacks:
        return "nothing else is missing" if overview.blind or overview.missing else "everything was measured"
    more = len(lacks) - MAX_NAMED
    named = [_lack(box, lack, catalog) for box, lack in lacks[:MAX_NAMED]]
    rest = [h.a(href=f"#{BOXES}")[f"{more} more"]] if more > 0 else []
    return ["not measured: ", _joined([*named, *rest], ", ")]


def _lack(box: BoxState, lack: Lack, catalog: Catalog) -> h.Node:
    what = f"{lack.step} of {lack.branch}" if lack.step else lack.branch
    return [lack_link(box, lack, what), f" on {catalog.clearance.box(box.box)}"]


def lack_link(box: BoxState, lack: Lack, text: str) -> h.Node:
    """Return a text that leads to the session in which something is missing, if there is one."""
    return h.a(href=addresses.session(box.uid))[text] if box.uid else text


def box_link(box: BoxState, catalog: Catalog) -> h.Node:
    """Return the name of a box, which leads to its page; one that never had a session has none."""
    name = catalog.clearance.box(box.box)
    return h.a(href=addresses.machine(name))[name] if box.has_sessions else name
