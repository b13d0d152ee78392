"""Titles and bodies of issues: what a Postgres or MySQL hacker needs to know, and what to do next."""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from build.version import Engine, parse_version
from history.changes.confirmation import Confirmation
from history.changes.level_shift import Direction
from history.changes.repository import Change, ChangeStatus, Member
from history.comparison.profile_diff import FunctionChange
from history.rendering.confirmed import interval, surest, what
from history.rendering.escaping import escaped
from history.rendering.profiles import named_functions
from history.rendering.table import NAMES
from history.series.series import Night, Point
from suites.measurement import METRICS

MOST_ROWS = 30
"""Series in a table; the history has all of them."""

HASH = 12
"""Characters of a commit."""

COMPARED_AT = {
    Engine.POSTGRES: "https://github.com/postgres/postgres/compare/",
    Engine.MYSQL: "https://github.com/mysql/mysql-server/compare/",
}
"""Where people look at a range of commits."""


@dataclass(frozen=True)
class Told:
    """A change with everything that its issue says."""

    change: Change
    base: str
    """The version it is relative to."""

    commits: tuple[str | None, str | None]
    """Before and after; None of what did not come from git."""

    later: Sequence[Point] = ()
    """Of the worst series, the nights behind the first with the change that have a value."""

    bisected: str = ""
    """What a bisect of it found, as Markdown."""

    gained: Sequence[FunctionChange] = ()
    """Functions whose CPU time per query grew most, of the surest step."""


def title(told: Told) -> str:
    """One line: branch, the worst step, how much, and how many more."""
    change = told.change
    member = worst(change)
    more = len({(each.key.step) for each in change.members}) - 1
    steps = f" and {more} more" if more > 0 else ""
    branch = change.branch.replace("@", " ")
    return f"{branch}: {member.key.step}{steps} {_moved(member)} ({change.suite})"


def body(told: Told) -> str:
    """Markdown, without a marker."""
    return "\n".join(line for part in _parts(told) for line in part).rstrip() + "\n"


def worst(change: Change) -> Member:
    """The series that says most to people: of throughput before costs, the largest change."""
    return max(
        change.members,
        key=lambda each: (each.key.metric == "qps", abs(each.level_after / each.level_before - 1)),
    )


def _parts(told: Told) -> Iterator[Iterator[str]]:
    yield _what(told)
    yield _table(told.change)
    yield _functions(told)
    yield _commits(told)
    yield iter([told.bisected] if told.bisected else [])
    yield _by_hand(told)
    yield _silence()


def _what(told: Told) -> Iterator[str]:
    change, member = told.change, worst(told.change)
    ratio = member.level_after / member.level_before
    name = NAMES.get(member.key.metric, member.key.metric)
    yield (
        f"**{escaped(member.key.step)}** {_moved(member)}: {name} is "
        f"{ratio:.3f} times what it was ({member.ratio_low:.3f} to {member.ratio_high:.3f}), relative to "
        f"{escaped(told.base)} in the same nights."
    )
    confirmed = surest(change)
    if confirmed is not None:
        yield ""
        yield f"Confirmed the same night by {_held_against(confirmed)}."
    if told.later and change.status is ChangeStatus.OPEN:
        yield ""
        yield _since(told)
    if change.status is ChangeStatus.CLOSED and change.reason:
        yield ""
        yield f"**It is gone**: {escaped(change.reason)}."
        back = next((each.gone_confirmed for each in change.members if each.gone_confirmed), None)
        if back is not None:
            yield f"Confirmed that night by {_held_against(back)}."
    if change.direction is Direction.MIXED:
        yield ""
        yield "Some series got worse and others better in the same range."
    yield ""


def _since(told: Told) -> str:
    """What later nights say: the body is what tells it, not a comment for each."""
    last, nights = told.later[-1], len(told.later)
    assert last.relative is not None
    ratio = last.relative / worst(told.change).level_before
    return (
        f"{nights} more {'night' if nights == 1 else 'nights'} since; in the last, of "
        f"{last.night.started_at:%Y-%m-%d} (`{last.night.version}`), it is {ratio:.3f} times what it was."
    )


def _held_against(each: Confirmation) -> str:
    return (
        f"{each.rounds} interleaved rounds, old commit against new commit (`{each.before.version}` and "
        f"`{each.after.version}`): {escaped(what(each))} {interval(each)}, at {each.confidence:.1%} "
        f"confidence, in session {each.uid}"
    )


def _table(change: Change) -> Iterator[str]:
    yield "| box | step | metric | before | after | change | interval |"
    yield "|:--|:--|:--|--:|--:|--:|--:|"
    for each in change.members[:MOST_ROWS]:
        ratio = each.level_after / each.level_before
        cells = (
            escaped(each.key.place.box),
            escaped(each.key.step),
            NAMES.get(each.key.metric, each.key.metric),
            f"{each.level_before:.3f}",
            f"{each.level_after:.3f}",
            f"{ratio - 1:+.1%}",
            f"{each.ratio_low - 1:+.1%} to {each.ratio_high - 1:+.1%}",
        )
        yield f"| {' | '.join(cells)} |"
    more = len(change.members) - MOST_ROWS
    if more > 0:
        yield f"| and {more} more series | | | | | | |"
    yield ""
    yield "Before and after are ratios to the base; costs are per query, and less of them is better."
    yield ""


def _functions(told: Told) -> Iterator[str]:
    if told.gained:
        yield f"CPU time per query grew most in {escaped(named_functions(told.gained))}."
        yield ""


def _commits(told: Told) -> Iterator[str]:
    change = told.change
    nights = f"{change.last_before.started_at:%Y-%m-%d} and {change.first_after.started_at:%Y-%m-%d}"
    old, new = told.commits
    if old and new:
        address = COMPARED_AT[parse_version(change.first_after.version).engine]
        span = f"{old[:HASH]}...{new[:HASH]}"
        yield f"It lies between the nights of {nights}: [{span}]({address}{span})."
    else:
        before, after = escaped(change.last_before.version), escaped(change.first_after.version)
        yield f"It lies between the nights of {nights}: {before} to {after}."
    yield ""


def _by_hand(told: Told) -> Iterator[str]:
    change, member = told.change, worst(told.change)
    old, new = change.last_before.version, change.first_after.version
    suite, step = _word(change.suite), _word(member.key.step)
    profile = _word(member.key.place.configuration.split()[0])
    run = f"./tidemark run --suite {suite} --profile {profile} --step {step} --until-decided {old} {new}"
    yield "By hand:"
    yield ""
    yield "```sh"
    yield f"./tidemark build {old} {new}"
    yield run
    yield f"./compare.py {old} {new} --suite {suite} --profile {profile} --step {step} --costs"
    yield "```"
    yield ""
    yield "To find the commit:"
    yield ""
    yield "```sh"
    engine = parse_version(new).engine
    good, bad = _ref(change.last_before, told.commits[0]), _ref(change.first_after, told.commits[1])
    metric = "" if member.key.metric == "qps" else f" --metric {member.key.metric}"
    what = f"--suite {suite} --profile {profile} --step {step}{metric}"
    yield f"./tidemark bisect --engine {engine} --good {good} --bad {bad} {what}"
    yield "```"
    yield ""


def _silence() -> Iterator[str]:
    yield "Nobody wants to hear of it again? Label it `acknowledged` or `not-a-regression`."


def _word(text: str) -> str:
    """One word of a shell, that cannot end the block of code it stands in."""
    return shlex.quote(" ".join(text.split()).replace("`", "'"))


def _ref(night: Night, commit: str | None) -> str:
    return commit[:HASH] if commit else parse_version(night.version).ref


def _moved(member: Member) -> str:
    change = member.level_after / member.level_before - 1
    name = NAMES.get(member.key.metric, member.key.metric)
    if member.key.metric in ("qps", "tps"):
        return f"{abs(change):.1%} {'slower' if change < 0 else 'faster'}"
    unit = METRICS[member.key.metric].unit
    each = " per query" if unit.endswith("/query") else ""
    return f"{abs(change):.1%} {'less' if change < 0 else 'more'} {name}{each}"
