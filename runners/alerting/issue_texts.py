"""Titles and bodies of the issues of changes, from a ChangeReport: what is known, and what to do next."""

import shlex
from collections.abc import Iterator

from build.engines import ENGINES
from build.version import parse_version
from history.changes.confirmation import Confirmation
from history.changes.level_shift import Direction
from history.changes.report import ChangeReport
from history.changes.repository import Change, Member
from history.escaping.characters import one_line
from history.escaping.markdown import code_span, escaped
from history.rendering.confirmations import counted_rounds, interval, occasion, series_name
from history.rendering.profiles import named_functions
from history.series.series import Night
from history.store.records import ChangeStatus
from report import addresses
from runners.bisect.report.render import result
from runners.bisect.report.state import BisectState
from runners.bisect.run.event_log import answered
from suites.metrics import METRICS, PRIMARY, label_of, moved_by

MOST_ROWS = 30
"""Series in the table of an issue; the history has all of them."""

HASH = 12
"""Characters of a commit."""


PAGE = "Charts, confirmation and costs: "
"""Stands before the address of the change's page."""


def title(report: ChangeReport) -> str:
    """One line: the branch, the main series' step, by how much, and how many other steps."""
    change = report.change
    member = report.main_series
    more = len({other.key.step for other in change.members}) - 1
    steps = f" and {more} more" if more > 0 else ""
    branch = change.branch.replace("@", " ")
    return one_line(f"{branch}: {member.key.step}{steps} {_moved(member)} ({change.suite})")


def body(report: ChangeReport, site: str = "") -> str:
    """Markdown, without a marker; with a link to the change's page if there is a `site`."""
    return "\n".join(line for part in _parts(report, site) for line in part).rstrip() + "\n"


def _parts(report: ChangeReport, site: str) -> Iterator[Iterator[str]]:
    yield _what(report)
    yield _page(report, site)
    yield _table(report.change)
    yield _functions(report)
    yield _commits(report)
    yield _bisect(report)
    yield _by_hand(report)
    yield _muting()


def _what(report: ChangeReport) -> Iterator[str]:
    change, member = report.change, report.main_series
    name = label_of(member.key.metric)
    yield (
        f"**{escaped(member.key.step)}** {_moved(member)}: {name} is {member.ratio:.3f} times what it was "
        f"({member.ratio_low:.3f} to {member.ratio_high:.3f}), relative to "
        f"{escaped(report.base or 'its base')} in the same nights."
    )
    confirmed = report.confirmation
    if confirmed is not None:
        yield ""
        how = escaped(occasion(confirmed))
        yield f"{how[0].upper()}{how[1:]} by {_measurement(confirmed)}."
    if report.later and change.status is ChangeStatus.OPEN:
        yield ""
        yield _since(report)
    if change.status is ChangeStatus.CLOSED and change.reason:
        yield ""
        yield f"**It is gone**: {escaped(change.reason)}."
        if report.return_confirmation is not None:
            yield f"Confirmed that night by {_measurement(report.return_confirmation)}."
    if change.direction is Direction.MIXED:
        yield ""
        yield "Some series got worse and others better in the same range."
    yield ""


def _page(report: ChangeReport, site: str) -> Iterator[str]:
    if site:
        yield f"{PAGE}<{site.rstrip('/')}/{addresses.change(report.change.fingerprint)}>"
        yield ""


def _since(report: ChangeReport) -> str:
    """What later nights show. It stands in the body, because a comment for every night would be too many."""
    last, nights = report.later[-1], len(report.later)
    assert last.relative is not None
    ratio = last.relative / report.main_series.level_before
    return (
        f"{nights} more {'night' if nights == 1 else 'nights'} since; in the last, of "
        f"{last.night.started_at:%Y-%m-%d} ({code_span(last.night.version)}), it is {ratio:.3f} times what "
        f"it was."
    )


def _measurement(confirmed: Confirmation) -> str:
    return (
        f"{counted_rounds(confirmed)}, old commit against new commit "
        f"({code_span(confirmed.before.version)} and {code_span(confirmed.after.version)}): "
        f"{escaped(series_name(confirmed))} {interval(confirmed)}, {_certainty(confirmed)}"
        f"in session {escaped(confirmed.uid)}"
    )


def _certainty(confirmed: Confirmation) -> str:
    """The confidence of rounds; counts have none, because they hardly scatter."""
    return "" if confirmed.is_counted else f"at {confirmed.confidence:.1%} confidence, "


def _table(change: Change) -> Iterator[str]:
    yield "| box | step | metric | before | after | change | interval |"
    yield "|:--|:--|:--|--:|--:|--:|--:|"
    for member in change.members[:MOST_ROWS]:
        cells = (
            escaped(member.key.environment.box),
            escaped(member.key.step),
            label_of(member.key.metric),
            f"{member.level_before:.3f}",
            f"{member.level_after:.3f}",
            f"{member.ratio - 1:+.1%}",
            f"{member.ratio_low - 1:+.1%} to {member.ratio_high - 1:+.1%}",
        )
        yield f"| {' | '.join(cells)} |"
    more = len(change.members) - MOST_ROWS
    if more > 0:
        yield f"| and {more} more series | | | | | | |"
    yield ""
    yield "Before and after are ratios to the base; costs are per query, and less of them is better."
    yield ""


def _functions(report: ChangeReport) -> Iterator[str]:
    if report.gained:
        yield f"CPU time per query grew most in {escaped(named_functions(report.gained))}."
        yield ""


def _commits(report: ChangeReport) -> Iterator[str]:
    change = report.change
    nights = f"{_shown(change.last_before)} and {_shown(change.first_after)}"
    old, new = report.commits
    if old and new:
        address = ENGINES[parse_version(change.first_after.version).engine].compare_page
        span = f"{old[:HASH]}...{new[:HASH]}"
        yield f"It lies between the nights of {nights}: [{span}]({address}{span})."
    else:
        before, after = escaped(change.last_before.version), escaped(change.first_after.version)
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
    change, member = report.change, report.main_series
    old, new = _word(change.last_before.version), _word(change.first_after.version)
    suite, step = _word(change.suite), _word(member.key.step)
    profile = _word(member.key.environment.configuration.split()[0])
    counted = METRICS[member.key.metric].is_counted
    how = "--exact-only" if counted else "--until-decided"
    shown = f"--metric {member.key.metric}" if counted else "--costs"
    defined = "".join(f"{_word(word)} " for word in report.variant_options)
    what = f"--suite {suite} --profile {profile} --step {step}"
    run = f"./tidemark run {defined}{what} {how} {old} {new}"
    yield "By hand:"
    yield ""
    yield "```sh"
    if not defined:
        yield f"./tidemark build {old} {new}"
    yield run
    yield f"./compare.py {old} {new} --suite {suite} --profile {profile} --step {step} {shown}"
    yield "```"
    yield ""
    yield "To find the commit:"
    yield ""
    yield "```sh"
    engine = parse_version(change.first_after.version).engine
    good, bad = _ref(change.last_before, report.commits[0]), _ref(change.first_after, report.commits[1])
    metric = "" if member.key.metric == PRIMARY else f" --metric {member.key.metric}"
    what = f"--suite {suite} --profile {profile} --step {step}{metric}"
    yield f"./tidemark bisect {defined}--engine {engine} --good {good} --bad {bad} {what}"
    yield "```"
    yield ""


def _muting() -> Iterator[str]:
    yield "Nobody wants to hear of it again? Label it `acknowledged` or `not-a-regression`."


def _word(text: str) -> str:
    """One word of a shell, that cannot end the block of code it stands in."""
    return shlex.quote(one_line(text).replace("`", "'"))


def _ref(night: Night, commit: str | None) -> str:
    version = parse_version(night.version)
    return (commit[:HASH] if commit else version.ref) + (f"#{version.variant}" if version.variant else "")


def _moved(member: Member) -> str:
    return f"{abs(member.ratio - 1):.1%} {moved_by(member.key.metric, member.ratio)}"
