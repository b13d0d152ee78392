"""`./tidemark calibrate`: how much identical builds differ on this machine, step by step."""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from build.home import locate
from history.comparison.compare import CONFIDENCE, THRESHOLD, CompareOptions, Comparison, compare
from history.comparison.pairs import noise_of
from history.comparison.verdict import Verdict
from history.open import open_store
from history.stats.estimators import MINIMUM_REPETITIONS
from history.stats.repeated_intervals import Design, smallest_visible
from history.store.records import StepNoise
from history.store.writer import Store
from runners.commands.run import RequestError, history_of
from runners.console import progress
from runners.measuring.request import Request
from runners.measuring.session import SessionOutcome, run_session
from runners.measuring.undecided import METRIC
from suites.definition import load_suite

TWIN = "twin"
"""The variant that the second server of the same build is called by."""


def main(arguments: argparse.Namespace) -> int:
    """Measure a version against itself and store the noise.

    0: the noise of every step is known; 1: the two builds, which are one, were told apart, so that this
    machine is not fit; 2: a step could not be measured often enough.
    """
    request = request_of(arguments)
    home = locate()
    history = history_of(arguments.history, home)
    with open_store(history) as store, progress() as shown:
        outcome = run_session(request, home, store, shown)
        noise, comparison = recorded(store, request, outcome.uid)
    print(report(request, outcome, noise, comparison))
    print(f"history: {history}")
    return exit_code(request, outcome, noise, comparison)


def request_of(arguments: argparse.Namespace) -> Request:
    """Check the command line against the suite. Raises SuiteError or RequestError."""
    suite, version = load_suite(arguments.suite), arguments.version
    suite.profile(arguments.profile)
    if version.variant:
        raise RequestError(
            f"{version} is a variant", where="calibrate", hint=f"it measures {version.plain} against itself"
        )
    if arguments.rounds < MINIMUM_REPETITIONS:
        raise RequestError(
            f"{arguments.rounds} rounds say next to nothing about how much they scatter",
            where="--rounds",
            hint=f"at least {MINIMUM_REPETITIONS}; 10 or more are worth their time",
        )
    return Request(
        versions=(version, replace(version, variant=TWIN)),
        suite=suite,
        profile_name=arguments.profile,
        steps=suite.select(tuple(arguments.step)),
        repetitions=arguments.rounds,
    )


def recorded(store: Store, request: Request, uid: str) -> tuple[Mapping[str, StepNoise], Comparison]:
    """Store the noise of every metric; return that of METRIC by step, and the twins compared."""
    base, twin = request.versions
    comparison = compare(store, base, (twin,), CompareOptions(session=uid, metric=METRIC))
    session = comparison.contenders[0].session
    noise = noise_of(store.runs(session.id), str(base), str(twin))
    store.record_noise(session.id, noise)
    return {each.step: each for each in noise if each.metric == METRIC}, comparison


def exit_code(
    request: Request, outcome: SessionOutcome, noise: Mapping[str, StepNoise], comparison: Comparison
) -> int:
    """As `main` says; builds that were told apart come before steps that are missing."""
    if _told_apart(comparison):
        return 1
    return 0 if outcome.whole and len(noise) == len(request.steps) else 2


def report(
    request: Request, outcome: SessionOutcome, noise: Mapping[str, StepNoise], comparison: Comparison
) -> str:
    """The table, and what went wrong, for people."""
    missing = [step.name for step in request.steps if step.name not in noise]
    lines = [*table(request, noise)]
    if missing:
        lines.append(f"no noise is known of {', '.join(missing)}: fewer than {MINIMUM_REPETITIONS} rounds")
    lines += [
        f"the two identical builds differ by {change:+.1%} on {step}: this machine is not fit, "
        "see ./tidemark check"
        for step, change in _told_apart(comparison)
    ]
    lines += [f"failed: {failure}" for failure in outcome.failures]
    return "\n".join(lines)


def table(request: Request, noise: Mapping[str, StepNoise]) -> Iterator[str]:
    """Noise of each step, and what can be seen with it in few rounds and in the most."""
    few = max(MINIMUM_REPETITIONS, request.profile.repetitions)
    most = max(request.profile.most_rounds, few)
    design = Design(
        steps=len(request.steps), least=MINIMUM_REPETITIONS, cap=most, confidence=CONFIDENCE / 100
    )
    heads = ("step", "rounds", "noise", f"sees in {few}", f"in {most}")
    yield _row(heads)
    for step, each in noise.items():
        seen = (smallest_visible(design, each.noise, rounds, THRESHOLD / 100) for rounds in (few, most))
        yield _row((step, str(each.rounds), f"{each.sd:.2%}", *(f"{share:.1%}" for share in seen)))
    yield (
        f"suite {request.suite.name}, profile {request.profile_name}; noise: standard deviation of a round's "
        f"ratio of {METRIC};\nsees: the smallest slow-down that is likely to be flagged in so many rounds"
    )


def _row(cells: Sequence[str]) -> str:
    first, *others = cells
    return f"{first:<18}" + "".join(f" {cell:>9}" for cell in others)


def _told_apart(comparison: Comparison) -> list[tuple[str, float]]:
    """Steps on which the twins differ by the rules of a verdict, and by how much, as a fraction."""
    (twins,) = comparison.contenders
    return [
        (step.step, (step.judged.value or 1) - 1)
        for step in twins.steps
        if step.judgement.verdict in (Verdict.REGRESSION, Verdict.IMPROVEMENT)
    ]
