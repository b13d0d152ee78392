"""Verdicts in words, with what to do next."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from build.errors import TidemarkError
from history.counts import counted
from history.escaping.characters import one_line
from history.numbers import change_text, share
from history.rendering.commands import COUNTED, DECIDED, defining_words, patch_notes, quoted
from runners.bisect.domain.rules import LevelStep, SearchVerdict, WholeDifference
from runners.bisect.report.state import BisectState
from suites.additions.variant import EXTENSIONS, option_words

MAX_IN_HEADLINE = 3
"""The most steps that a headline lists; where there are more, a table has them."""


def headline(state: BisectState) -> str:
    """Return the answer to the question in one line."""
    verdict = state.verdict
    if verdict is None:
        return "there is no verdict yet"
    told = {
        "culprit": _culprit,
        "range": _range,
        "none": _none,
        "two-steps": _several_steps,
        "several-steps": _several_steps,
        "slope": _slope,
        "varying": _varying,
        "moving": _moving,
        "undecided": _undecided,
        "swapped": _swapped,
    }[verdict.kind](state, verdict)
    return told if verdict.whole is None else f"{told}; {_sum(verdict.whole)}"


def changed(size: float, interval: tuple[float, float]) -> str:
    """Format a ratio as a change with its interval: `-38.8 % (-41.0 to -36.2)`."""
    return change_text(size, *interval)


PATCHED = "patched"
"""The variant of commits that were patched, in the commands that measure them again."""


def reproduce(state: BisectState) -> Iterator[str]:
    """Yield lines for a shell that measure the change again: comments, and two commands."""
    question, counted, pair = state.log.question, state.metric.is_counted, state.pair()
    where = ["--suite", question.suite, "--profile", question.profile, "--step", question.step]
    seconds = ["--seconds", f"{question.seconds:g}"] if question.seconds and not counted else []
    declared = question.declared.arguments()
    how = COUNTED if counted else DECIDED
    option = "--exact-threshold" if counted else "--threshold"
    smallest = [option, f"{100 * question.threshold:g}"] if question.threshold else []
    # The definition holds what every position got. Only patches must be those of a variant.
    name = PATCHED if question.variant.get("patches") and not question.extension else ""
    try:
        defined = defining_words(name, question.variant)
    except TidemarkError as error:
        yield f"# No command measures this again: {one_line(error.what)}."
        return
    yield from patch_notes(question.variant)
    if question.extension:
        commits = [version.variant for version in pair]
        for commit in commits:
            made = {"name": question.extension, "repository": question.git, "ref": commit}
            defined += option_words(commit, {EXTENSIONS: [made]})
    else:
        pair = (replace(pair[0], variant=name), replace(pair[1], variant=name))
        defined += ["--git", question.git] if question.git else []
    versions = [str(version) for version in pair]
    yield quoted(["./tidemark", "run", *defined, *where, *seconds, *declared, *how, *versions])
    yield quoted(["./compare.py", *versions, *where, "--metric", question.metric, *smallest])


def merge_hint(state: BisectState) -> str:
    """Return what it means that a merge is the culprit; empty for other culprits."""
    verdict, parents = state.verdict, state.log.span.parents
    if verdict is None or verdict.kind != "culprit" or not parents:
        return ""
    merged = parents[verdict.suspects[0] - 1]
    if len(merged) < 2:
        return ""
    names = ", ".join(state.log.span.named(place) for place in merged)
    return f"It is a merge of {names}: none of them has the change, which comes from merging them"


def _sum(whole: WholeDifference) -> str:
    """Return the whole difference, and what of it the steps leave unexplained."""
    left = changed(whole.unexplained, whole.unexplained_interval)
    return f"bad differs from good by {changed(whole.size, whole.interval)}, of which {left} is not explained"


def whole_hint(state: BisectState) -> str:
    """Return which parts of the range differ without a commit that is named, and how to go on; or empty."""
    if state.verdict is None:
        return ""
    whole, hints = state.verdict.whole, list[str]()
    if whole is not None and whole.parts:
        parts = ", and ".join(
            f"by {changed(part.size, part.interval)} {_where(state, part)}" for part in whole.parts
        )
        hints.append(f"In addition, {_what(state)} changes {parts}, where no single commit could be named")
    if state.log.bisect.is_open:
        hints.append("The rest of the range is not searched yet: the same command with --all goes on")
    return ". ".join(hints)


def steps_of(state: BisectState) -> Sequence[tuple[str, str, str]]:
    """Return commit, subject and change of each step, with what is not explained and the sum at the end.

    Empty unless the search went on until its steps made up the difference.
    """
    verdict = state.verdict
    if verdict is None or verdict.whole is None:
        return ()
    whole, rows = verdict.whole, list[tuple[str, str, str]]()
    for step in verdict.steps:
        suspects, last = step.suspects, state.point(step.suspects[-1])
        name = last.short if len(suspects) == 1 else f"one of {len(suspects)} up to {last.short}"
        rows.append((name, last.subject, changed(step.size, step.interval)))
    together = ("together", "", changed(whole.explained, whole.explained_interval))
    left = ("not explained", "", changed(whole.unexplained, whole.unexplained_interval))
    return [*rows, together, left, ("whole difference", "", changed(whole.size, whole.interval))]


def smaller_step_hint(state: BisectState) -> str:
    """Return what is known of a much smaller change elsewhere and how to search for it; empty without one."""
    rest = state.verdict.rest if state.verdict else None
    if rest is None:
        return ""
    low, high = state.point(rest.low).short, state.point(rest.high).short
    return (
        f"In addition, something between {low} and {high} changes {_what(state)} by "
        f"{changed(rest.size, rest.interval)}, too little for the same search to locate. To search for it: "
        f"--good {quoted([low])} --bad {quoted([high])}"
    )


def undone_hint(state: BisectState) -> str:
    """Return which changes on the way were undone again, and are no reason why bad differs; or empty."""
    undone = state.verdict.undone if state.verdict else ()
    if not undone:
        return ""
    steps = ", and ".join(f"by {changed(step.size, step.interval)} {_where(state, step)}" for step in undone)
    return f"On the way {_what(state)} changed {steps}: these cancel, and are not why bad differs from good"


def _where(state: BisectState, step: LevelStep) -> str:
    """Return the commit of a step, or the commits between or among which it lies."""
    span = state.log.span
    if len(step.suspects) == 1:
        return f"at {span.named(step.suspects[0])}"
    if step.among:
        return f"at one of {_of_branches(state, step.among)}"
    return f"between {state.point(step.low).short} and {state.point(step.high).short}"


def _culprit(state: BisectState, verdict: SearchVerdict) -> str:
    place = verdict.suspects[0]
    point, name = state.point(place), state.log.span.named(place)
    name = f"{name} ({point.subject})" if point.subject else name
    return f"{name} changes {_what(state)} by {changed(verdict.size, verdict.interval)}"


def _of_branches(state: BisectState, places: Sequence[int]) -> str:
    """Return how many commits these are, with the first and the last one; they may be of several branches."""
    first, last = state.log.span.named(places[0]), state.log.span.named(places[-1])
    return f"{counted(len(places), 'commit')}, the first {first}, the last {last}"


def _range(state: BisectState, verdict: SearchVerdict) -> str:
    if verdict.among:
        return (
            f"one of {_of_branches(state, verdict.among)}, changes {_what(state)} by "
            f"{changed(verdict.size, verdict.interval)}; those between cannot be measured"
        )
    low, high = state.point(verdict.low + 1), state.point(verdict.high)
    many = verdict.high - verdict.low
    return (
        f"one of {many} neighbouring commits, {low.short} to {high.short}, changes {_what(state)} by "
        f"{changed(verdict.size, verdict.interval)}; the others cannot be measured"
    )


def _none(state: BisectState, verdict: SearchVerdict) -> str:
    seen = f"a change of {share(verdict.smallest_seen)} or more would have been detected"
    low, high = verdict.interval
    if low <= 1 <= high:
        return f"good and bad do not differ in {_what(state)} on this machine: {seen}"
    differ = f"bad differs from good in {_what(state)} by {changed(verdict.size, verdict.interval)}"
    return f"{differ}, less than was searched for: {seen}"


def _several_steps(state: BisectState, verdict: SearchVerdict) -> str:
    if verdict.whole is not None and len(verdict.steps) > MAX_IN_HEADLINE:
        together = changed(verdict.whole.explained, verdict.whole.explained_interval)
        return f"{len(verdict.steps)} steps: together they change {_what(state)} by {together}"
    steps = ", and ".join(
        f"{_where(state, step)} by {changed(step.size, step.interval)}" for step in verdict.steps
    )
    count = "two" if len(verdict.steps) == 2 else str(len(verdict.steps))
    return f"{count} steps: {_what(state)} changes {steps}"


def _slope(state: BisectState, verdict: SearchVerdict) -> str:
    return (
        f"a slope and no single culprit: many small changes add up to a change of {_what(state)} of "
        f"{changed(verdict.size, verdict.interval)}"
    )


def _varying(state: BisectState, verdict: SearchVerdict) -> str:
    return (
        f"no commit is named: {_what(state)} varies from commit to commit all along the range, more than a "
        f"few steps explain; bad differs from good by {changed(verdict.size, verdict.interval)}"
    )


def _moving(state: BisectState, verdict: SearchVerdict) -> str:
    low, high = verdict.interval
    return (
        f"no commit is named: {_what(state)} moves while the search goes on, between {low:.3g} and "
        f"{high:.3g} of good, and a change of a commit is there from its first round on; find out what else "
        "changes"
    )


def _undecided(state: BisectState, verdict: SearchVerdict) -> str:
    if verdict.among:
        return (
            f"undecided after {state.rounds} rounds: most likely one of {_of_branches(state, verdict.among)} "
            f"({100 * verdict.confidence:.0f} %)"
        )
    low, high = state.point(verdict.low), state.point(verdict.high)
    return (
        f"undecided after {state.rounds} rounds: most likely between {low.short} and {high.short} "
        f"({100 * verdict.confidence:.0f} %)"
    )


def _swapped(state: BisectState, verdict: SearchVerdict) -> str:
    question = state.log.question
    other = "better" if question.direction == "worse" else "worse"
    return (
        f"bad is {other}, not {question.direction}: {_what(state)} differs from good by "
        f"{changed(verdict.size, verdict.interval)}; search for it with --direction {other}"
    )


def _what(state: BisectState) -> str:
    return f"{state.log.question.metric} of {state.log.question.step}"
