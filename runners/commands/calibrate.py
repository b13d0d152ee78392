"""`./tidemark calibrate`: measure how much identical builds differ on this machine, step by step."""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from build.addresses import redacted, without_secrets
from build.home import locate_for_writing
from build.provide import require_known
from build.sources.source import resolved
from history.comparison.compare import compare
from history.comparison.options import CONFIDENCE, THRESHOLD, CompareOptions
from history.comparison.pairs import noise_of
from history.comparison.result import Comparison
from history.comparison.verdict import Verdict
from history.rendering.next_step.closing import command
from history.series.variants import TWIN
from history.spool.opening import open_recorded
from history.stats.estimators import MINIMUM_REPETITIONS
from history.stats.repeated_intervals import VISIBLE_PROBABILITY, Design, smallest_visible
from history.store.records import StepNoise
from history.store.writer import Store
from runners.commands.run import RequestError, sources_of
from runners.console import progress, say_problems
from runners.measuring.request import Request
from runners.measuring.session import SessionOutcome, run_session
from runners.measuring.variants import require_defined, variants_of
from runners.occupancy.busy import note_if_busy
from runners.occupancy.waiting import machine_awaited
from runners.values import history_of
from suites.definition import load_suite


def main(arguments: argparse.Namespace) -> int:
    """Measure a version against itself and store the noise.

    Returns 0 when the noise of every step is known, 1 when the identical builds measured as different, so
    that this machine is unfit, and 2 when a step could not be measured often enough.
    """
    request_of(arguments)  # what is refused, is before anything is fetched
    home = locate_for_writing()
    with progress() as shown:
        note_if_busy(home, shown, "the noise is that of a busy machine")
        arguments.version = resolved(arguments.version, home, shown, arguments.git)
        require_known(arguments.version, home, arguments.git)
    request = request_of(arguments)
    history = history_of(arguments.history, home)
    with (
        progress() as shown,
        machine_awaited(home, arguments.wait * 60, shown),
        open_recorded(history, home, shown.note) as store,
    ):
        outcome = run_session(request, home, store, shown)
        noise, comparison = recorded(store, request, outcome.uid)
        say_problems(store)
    print(report(request, outcome, noise, comparison))
    print(f"history: {without_secrets(str(history))}")
    result = exit_code(request, outcome, noise, comparison)
    print(last_line(result, arguments.words))
    return result


def last_line(result: int, words: Sequence[str]) -> str:
    """Return how a calibration with this exit code stands, and the command that comes next."""
    if result == 1:
        return f"this machine is unfit; why: {command(['./tidemark', 'check'])}"
    if result and words:
        return f"noise is missing; once more: {command(['./tidemark', *map(redacted, words)])}"
    shown = command(["./tidemark", "history", "show"])
    return f"compare uses this noise from now on; what was measured here: {shown}"


def request_of(arguments: argparse.Namespace) -> Request:
    """Return the request of a command line. Raises SuiteError or RequestError."""
    suite, version = load_suite(arguments.suite), arguments.version
    suite = suite.with_declared(arguments.memory, arguments.disk)
    suite.profile(arguments.profile)
    variants = dict(variants_of(arguments))
    require_defined((version,), variants)
    if version.variant == TWIN:
        raise RequestError(
            f"{version} is the second server of a calibration",
            where="calibrate",
            hint=f"name {version.plain}, which is measured against itself",
        )
    twin = replace(version, variant=f"{version.variant}-{TWIN}" if version.variant else TWIN)
    if version.variant:
        variants[twin.variant] = variants[version.variant]
    if arguments.rounds < MINIMUM_REPETITIONS:
        raise RequestError(
            f"{arguments.rounds} rounds are too few to estimate noise",
            where="--rounds",
            hint=f"use at least {MINIMUM_REPETITIONS}, better 10 or more",
        )
    selected = suite.select(tuple(arguments.step), arguments.profile, arguments.clients)
    return Request(
        versions=(version, twin),
        variants=variants,
        git=sources_of((version,), arguments.git),
        suite=suite,
        profile_name=arguments.profile,
        # At a rate there is no noise of throughput, and the rate may be a share of what is calibrated here.
        steps=tuple(step for step in selected if not step.is_open),
        repetitions=arguments.rounds,
        blocks=arguments.rounds,
    )


def recorded(store: Store, request: Request, uid: str) -> tuple[Mapping[str, StepNoise], Comparison]:
    """Store the noise of every metric; return that of the primary metric by step, and the twins compared."""
    base, twin = request.versions
    primary = request.suite.primary
    held = store.holder(uid)
    comparison = compare(held, base, (twin,), CompareOptions(session=uid, metric=primary))
    session = comparison.contenders[0].session
    noise = noise_of(held.runs(session.id), str(base), str(twin), held.bursts(session))
    store.record_noise(store.recorded_id(uid), noise)
    return {calibrated.step: calibrated for calibrated in noise if calibrated.metric == primary}, comparison


def exit_code(
    request: Request, outcome: SessionOutcome, noise: Mapping[str, StepNoise], comparison: Comparison
) -> int:
    """Return the exit code that `main` describes; a detected difference comes before missing steps."""
    if _differing_steps(comparison):
        return 1
    return 0 if outcome.whole and len(noise) == len(request.steps) else 2


def report(
    request: Request, outcome: SessionOutcome, noise: Mapping[str, StepNoise], comparison: Comparison
) -> str:
    """Render the table of noise, and what went wrong."""
    missing = [step.name for step in request.steps if step.name not in noise]
    what = f"{request.round_name}s"
    lines = [*table(request, noise)]
    if missing:
        lines.append(f"the noise of {', '.join(missing)} is unknown: fewer than {MINIMUM_REPETITIONS} {what}")
    lines += [
        f"the two identical builds differ by {100 * change:+.1f} % on {step}: this machine is unfit, "
        "see ./tidemark check"
        for step, change in _differing_steps(comparison)
    ]
    lines += [f"failed: {failure}" for failure in outcome.failures]
    return "\n".join(lines)


def table(request: Request, noise: Mapping[str, StepNoise]) -> Iterator[str]:
    """Yield the noise of each step, and the smallest detectable changes in few and in the most rounds."""
    few = max(MINIMUM_REPETITIONS, request.profile.repetitions)
    most = max(replace(request, until_decided=True).most_rounds, few)
    steps, confidence, what = len(request.steps), CONFIDENCE / 100, request.round_name
    designs = {
        few: Design.fixed(few, steps, confidence),
        most: Design(steps=steps, least=MINIMUM_REPETITIONS, cap=most, confidence=confidence),
    }
    heads = ("step", f"{what}s", "noise", f"seen in {few}", f"in {most}")
    yield _row(heads)
    for step, measured in noise.items():
        visible = (
            smallest_visible(designs[rounds], measured.noise, rounds, THRESHOLD / 100)
            for rounds in (few, most)
        )
        yield _row(
            (
                step,
                str(measured.rounds),
                f"{100 * measured.sd:.2f} %",
                *(f"{100 * share:.1f} %" for share in visible),
            )
        )
    yield (
        f"suite {request.suite.name}, profile {request.profile_name}; noise: standard deviation of a "
        f"{what}'s ratio of {request.suite.primary};\n"
        f"seen: the smallest slowdown that a step flags with {100 * VISIBLE_PROBABILITY:.0f} % probability, "
        "as the column sees of a\n"
        f"comparison says: in {few} {what}s, or in {most} {what}s of --until-decided"
    )


def _row(cells: Sequence[str]) -> str:
    first, *others = cells
    return f"{first:<18}" + "".join(f" {cell:>9}" for cell in others)


def _differing_steps(comparison: Comparison) -> list[tuple[str, float]]:
    """Return the steps on which the twins differ by the rules of a verdict, with the change as a fraction."""
    (twins,) = comparison.contenders
    return [
        (step.step, (step.judged.value or 1) - 1)
        for step in twins.steps
        if step.judged.verdict in (Verdict.REGRESSION, Verdict.IMPROVEMENT)
    ]
