"""Titles and bodies of the issues of changes, from ChangeReports: what is known, and what to do next."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from build.engines import ENGINES
from build.version import parse_version
from history.changes.confirmation import Confirmation
from history.changes.level_shift import Direction
from history.changes.report import ChangeReport
from history.changes.repository import Change
from history.counts import counted
from history.escaping.characters import one_line
from history.escaping.markdown import (
    Markdown,
    code_block,
    code_span,
    columns,
    document,
    joined,
    link,
    md,
    mention,
    row,
)
from history.metric_words import label_of, moved_by, subject_of
from history.numbers import size_text
from history.rendering.changes import counted_rounds, interval, occasion, series_name
from history.rendering.commands import WITHOUT_COMMIT, change_again, change_search
from history.rendering.profiles import named_functions
from history.series.series import Night
from history.store.records import ChangeStatus
from report import addresses
from runners.bisect.report.render import result
from runners.bisect.report.state import BisectState
from runners.bisect.run.event_log import answered

MAX_ROWS = 30
"""Series in the table of an issue; the history has all of them."""

HASH = 12
"""Characters of a commit."""


PAGE = md("Charts, confirmation and costs: ")
"""Stands before the address of the change's page."""


def title(group: Sequence[ChangeReport]) -> str:
    """One line: the branch, the main series' step, by how much, how many other steps, and what else.

    The base is named where it could be another one.
    """
    change = group[0].change
    also = [_other(report.change, change) for report in group[1:]]
    named = f", also {', '.join(dict.fromkeys(also))}" if also else ""
    base = group[0].base.replace("@", " ") if group[0].base and group[0].names_base else ""
    where = f"{change.suite}, against {base}" if base else change.suite
    return one_line(f"{_branch(change)}: {group[0].headline} ({where}){named}")


def body(group: Sequence[ChangeReport], site: str = "") -> Markdown:
    """The text of an issue about one change or several between the same commits, the main one first.

    Each has a link to its page if there is a `site`.
    """
    return document(line for part in _parts(group, site) for line in part)


def _parts(group: Sequence[ChangeReport], site: str) -> Iterator[Iterator[str]]:
    main = group[0]
    if len(group) > 1:
        yield _members(group)
    yield _what(main)
    yield _decisions(main)
    yield _owners(main)
    yield _page(main, site)
    yield _table(main)
    for report in group[1:]:
        yield _heading(report)
        yield _what(report)
        yield _decisions(report)
        yield _owners(report)
        yield _page(report, site)
        yield _table(report)
    yield _functions(main)
    yield _commits(main)
    yield _bisect(next((report for report in group if report.bisect is not None), main))
    yield _by_hand(main)
    yield _muting()


def _members(group: Sequence[ChangeReport]) -> Iterator[str]:
    yield md("{} changes lie between the same commits:", len(group))
    yield ""
    heads = ("change", "branch", "suite", "by", "status")
    yield columns(heads, heads)
    for report in group:
        change = report.change
        status = f"{change.status}, muted" if change.is_muted else str(change.status)
        cells = (change.branch, change.suite, report.headline, status)
        yield row((code_span(change.fingerprint), *cells))
    yield ""


def _heading(report: ChangeReport) -> Iterator[str]:
    yield md("**{}**, {}:", report.change.branch.replace("@", " "), report.change.suite)
    yield ""


def _decisions(report: ChangeReport) -> Iterator[str]:
    """What people decided about a change: who, why, and until when."""
    for event in report.change.acknowledgements:
        said = str(event)
        yield md("- {}{}", said[0].upper(), said[1:])
    if report.change.acknowledgements:
        yield ""


def _owners(report: ChangeReport) -> Iterator[str]:
    """Whose a change is, by which rules of the plan; and by which it is muted, or was."""
    change = report.change
    if change.muting is not None:
        said = str(change.muting)
        yield md("- {}{}", said[0].upper(), said[1:])
        yield ""
    if change.owners:
        by_rule = {
            rule: joined([mention(owner.account) for owner in owners], ", ")
            for rule, owners in groupby(change.owners, key=lambda owner: owner.rule)
        }
        yield md(
            "Owners: {}.",
            joined([md("{} (by {})", who, code_span(rule)) for rule, who in by_rule.items()], "; "),
        )
        yield ""


def _what(report: ChangeReport) -> Iterator[str]:
    change, member = report.change, report.main_series
    name = label_of(member.key.metric)
    yield md(
        "**{}** {}: {} is {:.3f} times what it was ({:.3f} to {:.3f}), relative to {} in the same nights.",
        subject_of(member.key.metric, member.key.step),
        f"{size_text(member.ratio)} {moved_by(member.key.metric, member.ratio)}",
        name,
        member.ratio,
        member.ratio_low,
        member.ratio_high,
        report.base or "its base",
    )
    confirmed = report.confirmation
    if confirmed is not None:
        yield ""
        how = occasion(confirmed)
        yield md("{} by {}.", f"{how[0].upper()}{how[1:]}", _measurement(confirmed))
    if report.later and change.status is ChangeStatus.OPEN:
        yield ""
        yield _since(report)
    if change.status is ChangeStatus.CLOSED and change.reason:
        yield ""
        yield md("**It is gone**: {}.", change.reason)
        if report.return_confirmation is not None:
            yield md("Confirmed that night by {}.", _measurement(report.return_confirmation))
    if change.direction is Direction.MIXED:
        yield ""
        yield md("Some series got worse and others better between the same nights: {}.", report.headline)
    yield ""


def _page(report: ChangeReport, site: str) -> Iterator[str]:
    if site:
        address = f"{site.rstrip('/')}/{addresses.change(report.change.fingerprint)}"
        yield md("{}{}", PAGE, link(address))
        yield ""


def _since(report: ChangeReport) -> Markdown:
    """What later nights show. It stands in the body, because a comment for every night would be too many."""
    last, nights = report.later[-1], len(report.later)
    assert last.relative is not None
    ratio = last.relative / report.main_series.level_before
    return md(
        "{} since; in the last, of {:%Y-%m-%d} ({}), it is {:.3f} times what it was.",
        counted(nights, "more night"),
        last.night.started_at,
        code_span(last.night.version),
        ratio,
    )


def _measurement(confirmed: Confirmation) -> Markdown:
    return md(
        "{}, old commit against new commit ({} and {}): {} {}, {}",
        counted_rounds(confirmed),
        code_span(confirmed.before.version),
        code_span(confirmed.after.version),
        series_name(confirmed),
        interval(confirmed),
        # Counts have no confidence, because they hardly scatter.
        ("" if confirmed.is_counted else f"at {100 * confirmed.confidence:.1f} % confidence, ")
        + f"in session {confirmed.uid}",
    )


def _table(report: ChangeReport) -> Iterator[str]:
    yield md("| box | step | metric | before | after | change | interval |")
    yield md("|:--|:--|:--|--:|--:|--:|--:|")
    for member in report.members[:MAX_ROWS]:
        cells = (
            member.key.environment.box,
            member.key.step,
            label_of(member.key.metric),
            f"{member.level_before:.3f}",
            f"{member.level_after:.3f}",
            f"{100 * (member.ratio - 1):+.1f} %",
            f"{100 * (member.ratio_low - 1):+.1f} to {100 * (member.ratio_high - 1):+.1f} %",
        )
        yield row(cells)
    more = len(report.members) - MAX_ROWS
    if more > 0:
        yield md("| and {} more series | | | | | | |", more)
    yield ""
    base = report.base or "the base"
    yield md("Before and after are ratios to {}; costs are per query, and less of them is better.", base)
    yield ""


def _functions(report: ChangeReport) -> Iterator[str]:
    if report.gained:
        what = "Instructions" if report.is_gained_counted else "CPU time"
        yield f"{what} per query grew most in {named_functions(report.gained)}."
        yield ""


def _commits(report: ChangeReport) -> Iterator[str]:
    change = report.change
    nights = f"{_shown(change.last_before)} and {_shown(change.first_after)}"
    old, new = report.commits
    if old and new:
        address = ENGINES[parse_version(change.first_after.version).engine].compare_page
        span = f"{old[:HASH]}...{new[:HASH]}"
        yield md("It lies between the nights of {}: {}.", nights, link(f"{address}{span}", span))
    else:
        before, after = change.last_before.version, change.first_after.version
        yield f"It lies between the nights of {nights}: {before} to {after}."
    yield ""


def _shown(night: Night) -> str:
    """Return the date of a night; of a past commit also when it was measured."""
    measured = f" (measured {night.measured_at:%Y-%m-%d})" if night.measured_at else ""
    return f"{night.started_at:%Y-%m-%d}{measured}"


def _bisect(report: ChangeReport) -> Iterator[str]:
    if report.bisect is not None:
        yield result(BisectState(answered(report.bisect)))


def _by_hand(report: ChangeReport) -> Iterator[str]:
    for heading, lines in (
        ("By hand:", change_again(report)),
        ("To find the commit:", [] if report.course in WITHOUT_COMMIT else change_search(report)),
    ):
        if lines:
            yield from (heading, "", code_block(lines), "")
    if report.course in WITHOUT_COMMIT:
        yield from (*WITHOUT_COMMIT[report.course], "")


def _muting() -> Iterator[str]:
    yield md(
        "Nobody wants to hear of it again? Close it as not planned, or label it `acknowledged` or"
        " `not-a-regression`. Closed as completed, it is opened again when later nights still show it. Where"
        " an issue is closed without a reason, as in GitLab and Gitea, closing it means not planned."
    )


def _branch(change: Change) -> str:
    return change.branch.replace("@", " ")


def _other(change: Change, main: Change) -> str:
    """How the title names another change: by its variant, its suite, or both."""
    variant = change.branch.partition("#")[2]
    parts = (f"#{variant}" if variant else "", change.suite if change.suite != main.suite else "")
    return " ".join(filter(None, parts)) or change.suite
