"""The plan of the simulated year, as it is on a day."""

import json
from collections.abc import Iterator
from pathlib import Path

from tests.service.measuring import BUILD_BYTES
from tests.service.planted import OWNED, OWNER, STEPS, PlantedYear, midnight
from tests.service.receivers import ROUTES
from tests.service.recorded_tracker import ADDRESS, REPOSITORY

BUILDS = 40
"""The builds for which the plan leaves room."""

BUILD_GB = 1.3 * BUILD_BYTES / 1e9
"""What a build takes, in whole blocks."""

LIMIT_GB = BUILDS * BUILD_GB
LOGS_DAYS = 90
COMMITS = 10
ROUNDS = 4


def plan_text(year: PlantedYear, day: int, source: Path, history: Path) -> str:
    """Return the plan of a day; `source` is the repository."""
    return "\n".join(_lines(year, day, source, history))


def _lines(year: PlantedYear, day: int, source: Path, history: Path) -> Iterator[str]:
    yield f"history = {json.dumps(str(history))}\nbackups = 0"
    for box in year.boxes(day):
        yield f'[boxes.{box}]\nlabel = "tidemark-{box}"'
    yield '[engines.postgres]\nbase = "postgres@17.11"\nbranches = ["master"]'
    yield f"git = {json.dumps(str(source))}"
    yield f'[[tasks]]\nsuite = "write-heavy"\nprofile = "smoke"\nsteps = {json.dumps(list(STEPS))}'
    yield f"rounds = {ROUNDS}\nperf = false\nexact = false"
    yield f'[alerts]\ntracker = "gitea"\nurl = "{ADDRESS}"\nrepository = "{REPOSITORY}"'
    yield f"[retention]\nbuilds_gb = {LIMIT_GB:.6f}\ncommits = {COMMITS}\nlogs_days = {LOGS_DAYS}"
    yield f'[[owners]]\npaths = ["{OWNED}"]\nassignee = "{OWNER}"'
    for mute in year.mutes:
        # A mute is written when it is needed: one that is more than a year ahead would be refused.
        yield f'[[mutes]]\nsteps = ["{mute.step}"]\nbelow_percent = {mute.below_percent}'
        yield f'until = {midnight(mute.last):%Y-%m-%d}\nreason = "checksums are on by default now"'
    for route in ROUTES:
        yield f'[[notify]]\nname = "{route.name}"\nkinds = {json.dumps([str(kind) for kind in route.kinds])}'
        yield f"boxes = {json.dumps(route.boxes)}\nbranches = {json.dumps(route.branches)}"
        yield f"min_percent = {route.min_percent}"
