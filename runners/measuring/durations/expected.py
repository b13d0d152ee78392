"""What a command is going to take, said in one line before it begins, from what this machine has recorded."""

import platform
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from math import ceil

from build import host
from build.cache.store import compile_seconds
from build.errors import TidemarkError
from build.home import Home
from build.host import slowdown
from build.progress import in_words
from build.provide import find
from build.version import Version
from history.counts import counted
from history.open import open_reader
from history.series.round_seconds import RecordedSeconds, beyond, recorded_seconds
from history.store.reader import Reader
from runners.measuring.failures.policy import MAX_DISTURBED
from runners.measuring.request import PASSES, Request, counted_once, is_slowly_counted
from suites.keys.profile import Mode

START_SECONDS = 4.0
"""A guess, for what no round is recorded of: starting and resetting a server."""

PASS_SECONDS, SLOW_PASS_SECONDS = 5.0, 60.0
"""A guess of what a counted pass takes for one version, where none is recorded, and for one whose server
starts slowly under callgrind."""

BUSY = 0.5
"""The number of other processes that want a core from which on rounds are taken to be disturbed."""


@dataclass(frozen=True)
class ExpectedCompile:
    """A compile that a request needs."""

    version: Version
    seconds: float | None
    """On an idle machine; None where no compile is recorded."""
    is_bound: bool = False
    """Whether it takes so long at most: a patched version of which ccache may have nearly all objects."""


@dataclass(frozen=True)
class Recorded:
    """What a machine has recorded of the work of a request."""

    compiles: Sequence[ExpectedCompile]
    """The versions that have to be compiled."""
    rounds: RecordedSeconds
    others: float = 0.0
    """How many processes of others want a core now; what is recorded is of a machine without any."""
    cores: int = 1

    def slower(self, own: int) -> float:
        """Return how many times as long work of so many processes takes now."""
        return slowdown(self.others, min(own, self.cores), self.cores)


def recorded_of(
    request: Request, home: Home, store: Reader, *, slim: tuple[str, ...] | None = None
) -> Recorded:
    """Return what this machine has recorded of what `request` needs; with `slim` a slim build will do."""
    compiles = []
    for version in request.versions:
        asked = replace(request.build_of(version).server, slim=slim)  # extensions compile in seconds
        try:
            build = find(asked, home)
        except TidemarkError:
            build = None  # whoever needs it says what is wrong
        if build is None:
            compiles.append(_compile_of(version, home, slim=slim is not None, patched=bool(asked.patches)))
    return Recorded(compiles, _recorded_rounds(request, home, store), host.runnable(), host.cores())


def _compile_of(version: Version, home: Home, *, slim: bool, patched: bool) -> ExpectedCompile:
    seconds = compile_seconds(home, version.engine, slim=slim, patched=patched)
    if seconds is None and patched:
        return ExpectedCompile(version, compile_seconds(home, version.engine, slim=slim), is_bound=True)
    return ExpectedCompile(version, seconds)


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
            loading = other.loading if found.loading is None else found.loading
            found = RecordedSeconds(
                {**other.timed, **found.timed}, {**other.counted, **found.counted}, loading
            )
    return found


def expected(request: Request, recorded: Recorded, *, counts: bool, rounds: bool = True) -> str:
    """Return the line: compiles, loading, counts and rounds, with their minutes on the machine as it is now.

    `counts` and `rounds` are whether there are any passes of their own, and any rounds with slices. What
    counting leaves nothing of is said: a budget that is all the time there is.
    """
    slower = recorded.slower(recorded.cores)
    parts = [_compile(compiled, slower) for compiled in recorded.compiles]
    before = sum(
        compiled.seconds * slower
        for compiled in recorded.compiles
        if compiled.seconds is not None and not compiled.is_bound
    )
    if recorded.rounds.loading is not None:
        # A try has one session that counts and one of rounds, and each loads its data.
        sessions = 2 if request.is_try and counts and rounds else 1
        loading = recorded.rounds.loading * len(request.versions) * recorded.slower(1)
        parts.append(f"loading about {in_words(sessions * loading)}")
        before += loading
    if counts:
        seconds, text = _counts(request, recorded)
        parts.append(text)
        before += seconds
    parts += [_rounds(request, recorded)] if rounds else []
    line = f"expected: {', '.join(parts)}"
    if recorded.others >= BUSY:
        line += f", as {recorded.others:.0f} other processes want a core"
    if not request.has_deadline or request.budget_seconds is None:
        return line
    line += f"; within a budget of {in_words(request.budget_seconds)}"
    if counts and rounds and before >= request.budget_seconds:
        enough = ceil(2 * before / 60)
        line += f", which is used up before the first round: --budget {enough}, or fewer steps, has rounds"
    return line


def _compile(compiled: ExpectedCompile, slower: float) -> str:
    if compiled.seconds is None:
        return f"compile {compiled.version} (not known yet how long)"
    about = "at most about" if compiled.is_bound else "about"
    return f"compile {compiled.version} {about} {in_words(compiled.seconds * slower)}"


def _counts(request: Request, recorded: Recorded) -> tuple[float, str]:
    """Return the seconds of the counted passes, and what they are."""
    steps, versions = counted_once(request.steps), len(request.versions)
    is_slow = any(map(is_slowly_counted, request.versions))
    is_limited = request.has_deadline and is_slow and not request.is_try
    known = [recorded.rounds.counted.get(step.name) for step in steps]
    some = [value for value in known if value is not None]
    mean = sum(some) / len(some) if some else SLOW_PASS_SECONDS if is_slow else PASS_SECONDS
    whole = mean * recorded.slower(versions) * len(steps) * (request.passes or PASSES) * versions
    if is_limited:
        whole = min(whole, (request.budget_seconds or 0.0) / 2)
    what = f"counts of {'up to ' * is_limited}{counted(len(steps), 'step')}"
    return whole, f"{what} about {in_words(whole)}{', a guess' * (not some)}"


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
    known = [recorded.rounds.timed.get(step.name) for step in request.steps]
    guess = START_SECONDS + profile.seconds + profile.warm_seconds
    seconds = (beyond(guess if took is None else took, profile.seconds, recorded.slower(1)) for took in known)
    whole = sum(seconds) * versions
    guessed = ", a guess" if None in known else ""
    if recorded.others >= BUSY and not request.keep_disturbed:
        whole *= 1 + MAX_DISTURBED
        guessed += f", measured {1 + MAX_DISTURBED} times as others disturb it (--keep-disturbed: once)"
    steps = counted(len(request.steps), "step")
    if request.until_decided:
        return (
            f"rounds of {steps} about {in_words(whole)} each{guessed}, "
            f"{_until_decided(request, 'until decided', 'in all')}"
        )
    whole *= request.repetitions
    return f"{counted(request.repetitions, 'round')} of {steps} about {in_words(whole)}{guessed}"
