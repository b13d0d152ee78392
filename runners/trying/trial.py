"""The sessions of a try: instructions are counted first, then rounds are measured until decided."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from build.errors import TidemarkError
from build.finished_build import Build
from build.home import Home
from build.progress import Progress, in_words
from build.version import Version
from history.comparison.compare import compare
from history.comparison.options import CompareOptions
from history.comparison.result import ContenderComparison
from history.comparison.verdict import Verdict
from history.store.writer import Store
from runners.bisect.run.builds import Unusable, build_of, provider
from runners.measuring.durations.expected import expected, recorded_of
from runners.measuring.machine_lock import measuring_alone
from runners.measuring.preparation import callgrind_of
from runners.measuring.request import Request, counted_alone
from runners.measuring.session import SessionOutcome, run_session
from runners.measuring.variants import compiled_for_layers, definition_of
from runners.trying.changed_code import ChangedCode, changed_code
from runners.trying.sides import Sides, TryError
from suites.additions.registry import COMPANIONS
from suites.counting.engines import COUNTED
from suites.counting.executed_functions import WatchedFunction
from suites.definition import Suite
from suites.generators.registry import build_programs_of
from suites.keys.durability import Durability
from suites.keys.levels import plain_name
from suites.keys.profile import Mode
from suites.keys.step import Step
from suites.metrics import INSTRUCTIONS

HISTORY = "tries.db"
"""The history of all tries, in the home: none of them is in the history of the nights."""


@dataclass(frozen=True)
class TrialRequest:
    """What is tried, and with what."""

    sides: Sides
    suite: Suite
    profile_name: str
    steps: tuple[Step, ...]
    budget_seconds: float
    """All the time there is, compiling included. Instructions are counted even when it is used up."""

    keep_disturbed: bool = False
    layouts: int = 0
    """The layouts on each side, which rounds take in turns; 0 for the builds themselves."""

    counts: bool = True
    """Whether instructions are counted, where they can be."""

    durability: Durability = Durability.RELAXED


@dataclass(frozen=True)
class TrialOutcome:
    """The sessions of a try."""

    counted: SessionOutcome | None
    """None when instructions could not be counted."""

    timed: SessionOutcome | None
    """None when the budget was used up before the first round."""

    seconds: float
    changed: ChangedCode = field(default_factory=ChangedCode)
    """What differs between the sources of both sides."""

    @property
    def failures(self) -> list[str]:
        """What failed in either session, one entry for each."""
        done = [outcome for outcome in (self.counted, self.timed) if outcome is not None]
        not_built = (f"{version}: {why}" for outcome in done for version, why in outcome.not_built.items())
        return [*not_built, *(failure for outcome in done for failure in outcome.failures)]


def counted_request(asked: TrialRequest, watched: tuple[WatchedFunction, ...] = ()) -> Request:
    """Return the request of the session that only counts, and looks for the functions that are `watched`."""
    alone = counted_alone(timed_request(asked, 0.0))
    return replace(alone, layouts=0, budget_seconds=None, has_deadline=False, watched=watched)


def timed_request(
    asked: TrialRequest,
    seconds: float,
    first_steps: tuple[str, ...] = (),
    proved_steps: frozenset[str] = frozenset(),
) -> Request:
    """Return the request of the session with rounds, which end after so many seconds at the latest.

    The `first_steps` are decided before the others get a round. In the `proved_steps` the counted session has
    compared what both sides hold after the same work.
    """
    sides = asked.sides
    return Request(
        versions=(sides.base, sides.tip),
        suite=asked.suite,
        profile_name=asked.profile_name,
        steps=asked.steps,
        repetitions=max(asked.suite.profile(asked.profile_name).repetitions, asked.layouts),
        until_decided=True,
        budget_seconds=seconds,
        has_deadline=True,
        first_steps=first_steps,
        keep_disturbed=asked.keep_disturbed,
        durability=asked.durability,
        resume=True,
        needs_contender=True,
        variants=sides.variants,
        git={} if sides.git is None else {sides.base.engine: sides.git},
        layouts=asked.layouts,
        is_try=True,
        proved_steps=proved_steps,
    )


def run_trial(
    asked: TrialRequest,
    home: Home,
    store: Store,
    progress: Progress,
    clock: Callable[[], float] = time.monotonic,
) -> TrialOutcome:
    """Carry out a try, unless nothing differs that a server is made of.

    Raises TryError when a side does not build, and TidemarkError when nothing can be measured. A session of
    the same try that was interrupted, at most a day ago, is resumed.
    """
    changed = changed_code(asked.sides, home)
    if changed.is_nothing:
        return TrialOutcome(None, None, 0.0, changed)
    with measuring_alone(home):
        began = clock()
        whole, programs = timed_request(asked, asked.budget_seconds), _programs(asked)
        record = recorded_of(whole, home, store, slim=programs)
        is_long = whole.profile.mode is Mode.LONG
        progress.note(expected(whole, record, counts=asked.counts and not is_long))
        given = _builds(asked, home, progress)
        compiled = clock() - began
        if compiled > asked.budget_seconds:
            progress.note(f"compiling took {in_words(compiled)}, all of the budget: counts only, no rounds")
        counted = None
        if asked.counts and _can_count(asked, progress):
            counted = run_session(counted_request(asked, changed.functions), home, store, progress, given)
        left = asked.budget_seconds - (clock() - began)
        timed = None
        if left > 0:
            compared = compared_counts(store, asked.sides, counted)
            request = timed_request(asked, left, steps_in_doubt(compared), proved_steps(compared))
            timed = run_session(request, home, store, progress, given)
        else:
            progress.note("the budget is used up: no rounds")
    return TrialOutcome(counted, timed, clock() - began, changed)


def compared_counts(store: Store, sides: Sides, counted: SessionOutcome | None) -> ContenderComparison | None:
    """Return what the counted session shows of both sides; None if nothing can be compared."""
    if counted is None:
        return None
    options = CompareOptions(session=counted.uid, metric=INSTRUCTIONS)
    try:
        (contender,) = compare(store, sides.base, (sides.tip,), options).contenders
    except TidemarkError:
        return None  # whoever asks for the answer is told
    return contender


def steps_in_doubt(counted: ContenderComparison | None) -> tuple[str, ...]:
    """Return the steps of which counts do not show that both sides execute as much."""
    steps = () if counted is None else counted.steps
    return tuple(step.step for step in steps if step.judged.verdict is not Verdict.UNCHANGED)


def proved_steps(counted: ContenderComparison | None) -> frozenset[str]:
    """Return the plain names of the steps in which both sides held the same rows after the same work.

    Where they did not, or it is not known, rounds compare them.
    """
    return frozenset(map(plain_name, () if counted is None else counted.same_rows))


def _can_count(asked: TrialRequest, progress: Progress) -> bool:
    """Return whether the steps can be counted; if not, the reason is reported."""
    if asked.suite.profile(asked.profile_name).mode is Mode.LONG:
        progress.note("no exact counts: a pass starts from the loaded data, which long mode does not keep")
        return False
    try:
        callgrind_of(counted_request(asked), progress)
    except TidemarkError as error:
        progress.note(f"no exact counts: {error}")
        return False
    return True


def _builds(asked: TrialRequest, home: Home, progress: Progress) -> dict[Version, Build]:
    """Return the builds of both sides, compiled alike. Raises TryError for one that does not compile."""
    sides, programs = asked.sides, _programs(asked)
    found = {}
    for version in (sides.base, sides.tip):
        variant, relinks = definition_of(version, sides.variants), bool(asked.layouts)
        if not version.is_install:
            variant = compiled_for_layers(variant, version.engine, asked.suite.layers)
        provided = provider(home, progress, programs, variant, relinks=relinks)
        build = build_of(version.plain, sides.git, home, provided)
        if isinstance(build, Unusable):
            raise TryError(
                f"{version} cannot be built", where=build.reason, hint="see the log of the compile"
            )
        found[version] = replace(build, version=version)
    return found


def _programs(asked: TrialRequest) -> tuple[str, ...]:
    """Return the programs that the builds need, besides the server's."""
    sides = asked.sides
    programs = [*build_programs_of(asked.suite), *COUNTED[sides.base.engine].programs]
    for companion in definition_of(sides.tip, sides.variants).companions:
        programs += COMPANIONS[companion].build_programs
    return tuple(dict.fromkeys(programs))


def history_of_tries(home: Home) -> Path:
    """Return the path of the history of all tries."""
    return home.path / HISTORY
