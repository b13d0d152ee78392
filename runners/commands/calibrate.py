"""`./tidemark calibrate`: how much identical builds differ on this machine, step by step."""

import argparse
from dataclasses import replace
from pathlib import Path

from build.home import locate
from history.calibration import noise_of
from history.comparison import THRESHOLD
from history.records import StepNoise
from history.sequential import Design, Noise, smallest_visible
from history.store import Store, open_store
from runners.console import progress
from runners.request import Request
from runners.session import run_session
from suites.definition import Suite, load_suite

TWIN = "twin"
"""The variant that the second server of the same build is called by."""


def main(arguments: argparse.Namespace) -> int:
    """Measure a version against itself and store the noise; 0 when every step has been measured, else 2."""
    suite = load_suite(arguments.suite)
    version = arguments.version
    request = Request(
        versions=(version, replace(version, variant=TWIN)),
        suite=suite,
        profile_name=arguments.profile,
        steps=suite.select(tuple(arguments.step)),
        repetitions=arguments.rounds,
        patches={},
    )
    home = locate()
    history = Path(arguments.history) if arguments.history else home.history
    history.parent.mkdir(parents=True, exist_ok=True)
    with open_store(history) as store, progress() as shown:
        outcome = run_session(request, home, store, shown)
        noise = _stored(store, request, outcome.uid)
    print(table(noise, suite, request))
    for failure in outcome.failures:
        print(f"failed: {failure}")
    print(f"history: {history}")
    return 0 if outcome.whole and len(noise) == len(request.steps) else 2


def _stored(store: Store, request: Request, uid: str) -> list[StepNoise]:
    """The noise of the judged metric by step; that of all metrics goes into the history."""
    session = store.latest_session(request.versions, uid=uid)
    assert session is not None  # it has just been run
    base, twin = map(str, request.versions)
    noise = noise_of(store.runs(session.id), base, twin)
    store.record_noise(session.id, noise)
    return [each for each in noise if each.metric == "qps"]


def table(noise: list[StepNoise], suite: Suite, request: Request) -> str:
    """Noise, and what can be seen with it, for people."""
    most = request.profile.most_rounds
    few = max(3, request.profile.repetitions)
    lines = [
        f"{'step':<18} {'rounds':>6} {'noise':>8}  smallest slow-down flagged in {few} and {most} rounds"
    ]
    # A step alone knows its noise only from its own rounds; a night has the other steps and this calibration.
    design = Design(steps=len(request.steps), least=3, cap=max(most, few))
    for each in noise:
        known = Noise(each.sd, each.degrees_of_freedom)
        seen = [f"{smallest_visible(design, known, rounds, THRESHOLD / 100):7.1%}" for rounds in (few, most)]
        lines.append(f"{each.step:<18} {each.rounds:>6} {each.sd:8.2%}  {' '.join(seen)}")
    lines.append(f"suite {suite.name}, profile {request.profile_name}; noise is of the ratio of one round")
    return "\n".join(lines)
