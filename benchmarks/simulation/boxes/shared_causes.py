"""What moves many series of a team: a box, a base or a commit; and what a history of it leaves open."""

import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from benchmarks.output.figures import Figure
from benchmarks.simulation.boxes.teams import (
    BOXES,
    FIRST_NIGHT,
    LOOKS,
    NIGHTS_AFTER,
    STEPS,
    VERSIONS,
    Team,
    judged,
    quiet_team,
)
from benchmarks.simulation.detection_series import SIGMA
from history.changes.repository import Change
from history.stats.change_points.parameters import SEEDS

Array = NDArray[np.float64]

WEEKS = 14
"""Nights that bad weeks last."""

TEAMS = 40

NEAR = (60, 60)
"""Nights before and after a cause of which a change is counted: the team has false ones of its own, too."""

MAX_LEFT = 3.0
"""Percent of causes that may leave a change open."""

MIN_FOUND = 97.0

Cause = Callable[[Team], None]


def kernel(least: float = 0.02, largest: float = 0.03, marked: bool = True) -> Cause:
    """The ratios of a box move by so much each, up or down, with a new kernel."""

    def cause(team: Team) -> None:
        team.logs[0, 1:, :, team.at :] += _up_or_down(team, least, largest)
        team.logs[0, :, :, team.at :] += 0.01
        team.marked = (0,) if marked else ()

    return cause


def _up_or_down(team: Team, least: float, largest: float) -> Array:
    shape = (team.logs.shape[1] - 1, STEPS, 1)
    return np.asarray(team.rng.uniform(least, largest, shape) * team.rng.choice([-1.0, 1.0], shape))


def drawn_kernel(draw: Callable[[np.random.Generator, tuple[int, ...]], Array]) -> Cause:
    """The ratios of a box move with a new kernel by what is drawn, in standard deviations of 2 %."""

    def cause(team: Team) -> None:
        team.logs[0, 1:, :, team.at :] += 0.02 * draw(team.rng, (team.logs.shape[1] - 1, STEPS, 1))
        team.marked = (0,)

    return cause


def wandering(deviation: float, nights: float) -> Cause:
    """A box wanders, as AR(1) that forgets in so many nights, and each ratio follows by its own amount."""

    def cause(team: Team) -> None:
        kept = math.exp(-1 / nights)
        way = team.rng.normal(0, deviation, (team.logs.shape[-1],))
        for night in range(1, len(way)):
            way[night] = kept * way[night - 1] + math.sqrt(1 - kept**2) * way[night]
        team.logs[0, 1:] += way * team.rng.standard_normal((team.logs.shape[1] - 1, STEPS, 1))

    return cause


def harmless_marker(team: Team) -> None:
    """One step of a branch regresses by 4 % on a box in the night of a marker that moved nothing."""
    team.logs[0, 1, 3, team.at :] -= 0.04
    team.marked = (0,)


def kernels(team: Team) -> None:
    """The ratios of both boxes move by 2 to 3 % each, up or down, and the boxes differently."""
    for box in range(BOXES):
        team.logs[box, 1:, :, team.at :] += _up_or_down(team, 0.02, 0.03)


def moves(boxes: slice, versions: slice, by: float, nights: int = NIGHTS_AFTER) -> Cause:
    """All steps of some versions on some boxes move by as much, for so many nights."""

    def cause(team: Team) -> None:
        team.logs[boxes, versions, :, team.at : team.at + nights] += by

    return cause


def replaced_box(team: Team) -> None:
    """Another machine: every ratio moves by up to 6 %, as its CPU likes it, and all values by 20 %."""
    team.logs[0, 1:, :, team.at :] += team.rng.uniform(-0.06, 0.06, (len(VERSIONS) - 1, STEPS, 1))
    team.logs[0, :, :, team.at :] += 0.2
    team.marked = (0,)


def noisy(factor: float, count: int) -> Cause:
    """So many times the noise on a box, for so many nights."""

    def cause(team: Team) -> None:
        more = SIGMA * np.sqrt((factor**2 - 1) / 2)
        team.logs[0, ..., team.at : team.at + count] += more * team.rng.standard_normal(
            (len(VERSIONS), STEPS, count)
        )

    return cause


def shifted_weeks(team: Team) -> None:
    """Two weeks in which the ratios of a box are off by 2 to 3 %, up or down."""
    team.logs[0, 1:, :, team.at : team.at + WEEKS] += _up_or_down(team, 0.02, 0.03)


def season(by: float, days: float) -> Cause:
    """The ratios of a box rise and fall by so much in so many nights."""

    def cause(team: Team) -> None:
        nights = np.arange(team.logs.shape[-1])
        phase = team.rng.uniform(0, 2 * np.pi)
        team.logs[0, 1:] += by / 2 * np.sin(2 * np.pi * nights / days + phase)

    return cause


def one_branch(cause: Cause) -> Cause:
    """The team measures one branch beside its base."""

    def alone(team: Team) -> None:
        team.logs = team.logs[:, :2]
        cause(team)

    return alone


def beside(cause: Cause) -> Cause:
    """A step of a branch regresses by 10 % on both boxes in the night of another cause."""

    def both(team: Team) -> None:
        cause(team)
        team.logs[:, 1, 3, team.at :] -= 0.1

    return both


NO_COMMITS: Mapping[str, Cause] = {
    "nothing": lambda team: None,
    "kernel": kernel(),
    "kernel without a marker": kernel(marked=False),
    "kernel by N(0, 2 %)": drawn_kernel(np.random.Generator.standard_normal),
    "kernel, one branch": one_branch(kernel()),
    "kernels of both boxes, no marker": kernels,
    "replaced box": replaced_box,
    "box -3 %": moves(slice(0, 1), slice(1, None), -0.03),
    "base -3 %": moves(slice(0, 1), slice(0, 1), -0.03),
    "base of every box +3 %": moves(slice(None), slice(0, 1), 0.03),
    "two weeks shifted": shifted_weeks,
    "two weeks -3 %": moves(slice(0, 1), slice(1, None), -0.03, WEEKS),
    "two weeks of twice the noise": noisy(2.0, WEEKS),
    "season of 3 %": season(0.03, 365),
}
"""What is no commit."""

NOT_TUNED_ON: Mapping[str, Cause] = {
    "kernel of 1 to 5 %": kernel(0.01, 0.05),
    "kernel by Laplace, 2 %": drawn_kernel(lambda rng, shape: rng.laplace(size=shape) / np.sqrt(2)),
    "kernel by t3, 2 %": drawn_kernel(lambda rng, shape: rng.standard_t(3, shape) / np.sqrt(3)),
    "kernel by N(0, 2 %), one branch": one_branch(drawn_kernel(np.random.Generator.standard_normal)),
    "box wanders by 2 % in 10 nights": wandering(0.02, 10),
    "box wanders by 1.5 % in 30 nights": wandering(0.015, 30),
    "kernel of 4 %, no marker": kernel(0.035, 0.045, marked=False),
    "box +2 %": moves(slice(0, 1), slice(1, None), 0.02),
    "base +5 %": moves(slice(0, 1), slice(0, 1), 0.05),
    "three weeks of +2.5 %": moves(slice(0, 1), slice(1, None), 0.025, 21),
    "ten nights of 1.7 times the noise": noisy(1.7, 10),
    "season of 4 % in 200 nights": season(0.04, 200),
}
"""Others, first looked at when everything was chosen."""

COMMITS: Mapping[str, Cause] = {
    "a commit slows every step by 5 %": moves(slice(None), slice(2, 3), -0.05),
    "a commit to every branch slows every step by 5 %": moves(slice(None), slice(1, None), -0.05),
    "a step by 4 % beside a marker that moved nothing": harmless_marker,
    "a step by 10 % beside a kernel": beside(kernel()),
    "a step by 10 % beside box -3 %": beside(moves(slice(0, 1), slice(1, None), -0.03)),
}
"""What has to be found all the same."""

TWO_COMMITS = "two commits on neighbouring nights slow every step by 5 % each"


def cause_figures(wanted: str = "") -> Iterator[Figure]:
    """Yield how many causes leave a change open, and how many commits are found, of kinds that match."""
    if re.search(wanted, TWO_COMMITS):
        yield _ranges_with_both()
    for name, cause in {**NO_COMMITS, **NOT_TUNED_ON, **COMMITS}.items():
        if not re.search(wanted, name):
            continue
        found = [_open_changes(number, cause) for number in range(TEAMS)]
        ever = 100 * sum(max(changes) > 0 for changes in found) / TEAMS
        last = 100 * sum(changes[-1] > 0 for changes in found) / TEAMS
        note = f"{ever:.0f} % at any look; {sum(map(max, found)) / TEAMS:.2f} issues each"
        note += "; not tuned on" if name in NOT_TUNED_ON else ""
        if name in COMMITS:
            yield Figure(f"{name}: found", last, "%", at_least=MIN_FOUND, note=note)
        else:
            yield Figure(f"{name}: left open", last, "%", at_most=MAX_LEFT, note=note)


def _ranges_with_both() -> Figure:
    held: list[bool] = []
    for number in range(TEAMS):
        with TemporaryDirectory(prefix="tidemark-") as folder:
            held += ranges_of_two(Path(folder) / "history.db", (SEEDS["causes"], number))[-1]
    return Figure(
        f"{TWO_COMMITS}: ranges with both",
        100 * sum(held) / len(held),
        "%",
        at_least=MIN_FOUND,
        note=f"{len(held)} series of open changes",
    )


def ranges_of_two(
    path: Path, seed: tuple[int, ...], looks: Sequence[int] = LOOKS, by: float = 0.05
) -> list[list[bool]]:
    """Return, at each look, which series of open changes have a range of nights that holds two commits.

    They slow every step of a branch by so much each, on neighbouring nights; the history is at `path`.
    """
    team = quiet_team(seed)
    team.logs[:, 2, :, team.at :] -= by
    team.logs[:, 2, :, team.at + 1 :] -= by
    nights = [FIRST_NIGHT + timedelta(days=team.at + number) for number in (0, 1)]
    return [
        [
            member.last_before.started_at < nights[0] and nights[1] <= member.first_after.started_at
            for change in report.open
            if _is_near(change, team, {"box0", "box1"})
            for member in change.members
        ]
        for report in judged(path, team, looks)
    ]


def _open_changes(number: int, cause: Cause) -> list[int]:
    """Return the changes of a box that are open at each look, of those dated near a cause."""
    team = quiet_team((SEEDS["causes"], number))
    cause(team)
    with TemporaryDirectory(prefix="tidemark-") as folder:
        reports = judged(Path(folder) / "history.db", team)
    boxes = {"box0", "box1"} if cause in COMMITS.values() else {"box0"}
    return [sum(_is_near(change, team, boxes) for change in report.open) for report in reports]


def _is_near(change: Change, team: Team, boxes: Collection[str]) -> bool:
    near = FIRST_NIGHT + timedelta(days=team.at - NEAR[0]), FIRST_NIGHT + timedelta(days=team.at + NEAR[1])
    return any(
        member.key.environment.box in boxes
        and member.last_before.started_at < near[1]
        and near[0] < member.first_after.started_at
        for member in change.members
    )
