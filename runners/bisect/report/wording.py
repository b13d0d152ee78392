"""What a verdict means, in words, for people who decide what to do next."""

import shlex
from collections.abc import Iterator

from history.rendering.numbers import percent
from runners.bisect.domain.rules import SearchVerdict
from runners.bisect.report.state import BisectState


def headline(account: BisectState) -> str:
    """One line that answers the question."""
    verdict = account.verdict
    if verdict is None:
        return "there is no verdict yet"
    return {
        "culprit": _culprit,
        "range": _range,
        "none": _none,
        "two-steps": _two_steps,
        "slope": _slope,
        "undecided": _undecided,
        "swapped": _swapped,
    }[verdict.kind](account, verdict)


def changed(size: float, interval: tuple[float, float]) -> str:
    """A ratio as a change: `-38.8 % (-41.0 % to -36.2 %)`."""
    low, high = interval
    return f"{_signed(size)} ({_signed(low)} to {_signed(high)})"


def reproduce(account: BisectState) -> Iterator[str]:
    """Three commands of a shell."""
    question = account.log.question
    old, new = map(str, account.pair())
    git = f" --git {_word(question.git)}" if question.git else ""
    source = f"TIDEMARK_GIT_{question.engine.upper()}={_word(question.git)} " if question.git else ""
    where = (
        f"--suite {_word(question.suite)} --profile {_word(question.profile)} --step {_word(question.step)}"
    )
    yield f"./tidemark build{git} {old} {new}"
    yield f"{source}./tidemark run {where} --until-decided {old} {new}"
    yield f"./compare.py {old} {new} {where} --metric {question.metric}"


def within(account: BisectState) -> str:
    """What to do with a culprit that is a merge: its own side is another search. Empty for others."""
    blamed = account.blamed()
    if len(blamed) != 1:
        return ""
    came = f"came with the merge {blamed[0].short}"
    side = [each for each in account.log.span.collapsed if each["reason"] == came]
    if not side:
        return ""
    last = side[-1]["commit"]
    part = f"$(git merge-base {blamed[0].commit}^1 {last})"
    return f"It is a merge of {len(side)} commits; to search these: --good {part} --bad {last}"


def beside(account: BisectState) -> str:
    """What is known of a much smaller change elsewhere, and how to look for it. Empty without one."""
    rest = account.verdict.rest if account.verdict else None
    if rest is None:
        return ""
    low, high = account.point(rest.low).short, account.point(rest.high).short
    return (
        f"Besides, something between {low} and {high} changes {_what(account)} by "
        f"{changed(rest.size, rest.interval)}: too little beside it to be searched for at once. For that: "
        f"--good {_word(low)} --bad {_word(high)}"
    )


def _culprit(account: BisectState, verdict: SearchVerdict) -> str:
    point = account.point(verdict.high)
    name = f"{point.short} ({point.subject})" if point.subject else point.short
    return f"{name} changes {_what(account)} by {changed(verdict.size, verdict.interval)}"


def _range(account: BisectState, verdict: SearchVerdict) -> str:
    low, high = account.point(verdict.low + 1), account.point(verdict.high)
    many = verdict.high - verdict.low
    return (
        f"one of {many} neighbours, {low.short} to {high.short}, changes {_what(account)} by "
        f"{changed(verdict.size, verdict.interval)}; the others cannot be measured"
    )


def _none(account: BisectState, verdict: SearchVerdict) -> str:
    return (
        f"good and bad do not differ in {_what(account)} on this machine: a change of "
        f"{percent(verdict.smallest_seen)} or more would have been seen"
    )


def _two_steps(account: BisectState, verdict: SearchVerdict) -> str:
    steps = ", and ".join(
        f"{account.point(each.high).short} by {changed(each.size, each.interval)}" for each in verdict.steps
    )
    return f"two steps: {_what(account)} changes at {steps}"


def _slope(account: BisectState, verdict: SearchVerdict) -> str:
    return (
        f"a slope, and no single culprit: many small changes bring {_what(account)} to "
        f"{changed(verdict.size, verdict.interval)}"
    )


def _undecided(account: BisectState, verdict: SearchVerdict) -> str:
    low, high = account.point(verdict.low), account.point(verdict.high)
    return (
        f"undecided after {account.rounds} rounds: likeliest between {low.short} and {high.short} "
        f"({verdict.confidence:.0%})"
    )


def _swapped(account: BisectState, verdict: SearchVerdict) -> str:
    question = account.log.question
    other = "better" if question.direction == "worse" else "worse"
    return (
        f"bad is {other}, not {question.direction}: {_what(account)} differs from good by "
        f"{changed(verdict.size, verdict.interval)}; ask for it with --direction {other}"
    )


def _what(account: BisectState) -> str:
    return f"{account.log.question.metric} of {account.log.question.step}"


def _signed(ratio: float) -> str:
    return f"{ratio - 1:+.1%}"


def _word(text: str) -> str:
    """One word of a shell, that cannot end the block of code it stands in."""
    return shlex.quote(" ".join(text.split()).replace("`", "'"))
