"""What a command is going to take, said in one line before it begins, from what this machine has recorded."""

import platform
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from build.cache.store import compile_seconds
from build.errors import TidemarkError
from build.home import Home
from build.make import lookup
from build.progress import in_words
from build.version import Version
from history.counts import counted
from history.open import open_reader
from history.series.round_seconds import RecordedSeconds, recorded_seconds
from history.store.reader import Reader
from runners.measuring.request import PASSES, Request, counted_once, is_slowly_counted
from runners.measuring.variants import definition_of
from suites.keys.profile import Mode

START_SECONDS = 4.0
"""A guess, for what no round is recorded of: starting and resetting a server."""


@dataclass(frozen=True)
class Recorded:
    """What a machine has recorded of the work of a request."""

    compiles: Sequence[tuple[Version, float | None]]
    """The versions that have to be compiled, with the mean seconds of the last compiles of this kind."""
    rounds: RecordedSeconds


def recorded_of(
    request: Request, home: Home, store: Reader, *, slim: Sequence[str] | None = None
) -> Recorded:
    """Return what this machine has recorded of what `request` needs; with `slim` a slim build will do."""
    compiles = []
    for version in request.versions:
        chosen = definition_of(version, request.variants)
        try:
            build = lookup(
                version.plain,
                home,
                patches=chosen.patches,
                choices=chosen.choices,
                git_source=request.git.get(version.engine),
                slim=slim,
                relinks=bool(request.layouts),
            )
        except TidemarkError:
            build = None  # whoever needs it says what is wrong
        if build is None:
            compiles.append((version, compile_seconds(home, version.engine, slim=slim is not None)))
    return Recorded(compiles, _recorded_rounds(request, home, store))


def _recorded_rounds(request: Request, home: Home, store: Reader) -> RecordedSeconds:
    """Return what `store` has and, for a try, what the machine's own history has of other steps."""

    def of(history: Reader) -> RecordedSeconds:
        with history.database.reading() as connection:
            return recorded_seconds(connection, platform.node(), request.suite.name, request.profile_name)

    found = of(store)
    if request.is_try and home.history.is_file():
        # What it lacks is a guess, and a history that cannot be read is no reason to end.
        with suppress(TidemarkError), open_reader(home.history) as own:
            other = of(own)
            found = RecordedSeconds({**other.timed, **found.timed}, {**other.counted, **found.counted})
    return found


def expected(request: Request, recorded: Recorded, *, counts: bool, rounds: bool = True) -> str:
    """Return the line: compiles, counts and rounds, with their minutes.

    `counts` and `rounds` are whether there are any passes of their own, and any rounds with slices.
    """
    parts = [_compile(version, seconds) for version, seconds in recorded.compiles]
    parts += [_counts(request, recorded)] if counts else []
    parts += [_rounds(request, recorded)] if rounds else []
    budget = request.budget_seconds if request.has_deadline else None
    within = "" if budget is None else f"; within a budget of {in_words(budget)}"
    return f"expected: {', '.join(parts)}{within}"


def _compile(version: Version, seconds: float | None) -> str:
    return (
        f"compile {version} {'(not known yet how long)' if seconds is None else 'about ' + in_words(seconds)}"
    )


def _counts(request: Request, recorded: Recorded) -> str:
    steps = counted_once(request.steps)
    is_limited = request.has_deadline and any(map(is_slowly_counted, request.versions))
    what = f"counts of {'up to ' * is_limited}{counted(len(steps), 'step')}"
    known = [recorded.rounds.counted.get(step.name) for step in steps]
    seconds = [value for value in known if value is not None]
    if not seconds:
        return f"{what} (not known yet how long)"
    mean = sum(seconds) / len(seconds)
    passes = request.passes or PASSES
    whole = mean * len(steps) * passes * len(request.versions)
    most = (request.budget_seconds or 0.0) / 2 if is_limited else whole
    return f"{what} about {in_words(min(whole, most))}"


def _blocks(request: Request, recorded: Recorded) -> str:
    """Return what the blocks of long mode take; loading and resets come on top."""
    profile = request.profile
    guess = START_SECONDS + 2 * profile.turns_per_block * profile.slice_seconds
    known = [recorded.rounds.timed.get(step.name) for step in request.steps]
    of_steps = [(guess if seconds is None else seconds) * len(request.versions) for seconds in known]
    guessed = ", a guess" if None in known else ""
    steps = counted(len(request.steps), "step")
    limit = profile.warm_limit_seconds * len(request.versions)
    guessed += ", after loading" + (f" and at most {in_words(limit)} of warming up" if limit else "")
    if request.until_decided:
        return (
            f"blocks of {steps} about {in_words(sum(of_steps) / len(of_steps))} each{guessed}, "
            f"{_until_decided(request, 'in a step until it is decided', 'in each step')}"
        )
    whole = in_words(sum(of_steps) * request.least_rounds)
    return f"{counted(request.least_rounds, 'block')} of {steps} about {whole}{guessed}"


def _until_decided(request: Request, decided: str, fixed: str) -> str:
    """Return how many rounds there are, ended by `decided`, or by `fixed` if their number is."""
    least, most = request.least_rounds, request.most_rounds
    return f"{most} of them {fixed}" if least == most else f"{least} to {most} of them {decided}"


def _rounds(request: Request, recorded: Recorded) -> str:
    if request.profile.mode is Mode.LONG:
        return _blocks(request, recorded)
    profile, versions = request.profile, len(request.versions)
    guess = START_SECONDS + profile.seconds + profile.warm_seconds
    known = [recorded.rounds.timed.get(step.name) for step in request.steps]
    whole = sum(guess if seconds is None else seconds for seconds in known) * versions
    guessed = ", a guess" if None in known else ""
    steps = counted(len(request.steps), "step")
    if request.until_decided:
        return (
            f"rounds of {steps} about {in_words(whole)} each{guessed}, "
            f"{_until_decided(request, 'until decided', 'in all')}"
        )
    whole *= request.repetitions
    return f"{counted(request.repetitions, 'round')} of {steps} about {in_words(whole)}{guessed}"
