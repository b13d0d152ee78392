"""Folded stacks: what a profile of one step is, and how far it can be believed."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

SHALLOW = 3
"""Stacks of fewer frames than this were hardly walked: a caller had no frame pointer."""

MOST_SHALLOW = 0.1
"""Share of shallow stacks above which a profile is doubted."""

MOST_UNKNOWN = 0.05
"""Share of frames without a name above which a profile is doubted."""

LEAST_SAMPLES = 200
"""Below this a share of one percent is two samples."""

OTHER = "other"
"""The role of threads that came and went within a profile."""


@dataclass(frozen=True)
class Quality:
    """How far the stacks of a profile can be believed. Shares are fractions."""

    samples: int
    shallow: float
    """Share of samples with fewer than SHALLOW frames."""
    unknown: float
    """Share of frames whose function has no name, and a neighbour that has none either."""
    lost: float
    """Share of samples that the kernel could not hand over."""

    def doubts(self) -> list[str]:
        """What a reader has to know, in words; empty for a good profile."""
        found = []
        if self.samples < LEAST_SAMPLES:
            found.append(f"only {self.samples} samples")
        if self.shallow > MOST_SHALLOW:
            found.append(f"{self.shallow:.0%} of the stacks have fewer than {SHALLOW} frames")
        if self.unknown > MOST_UNKNOWN:
            found.append(f"{self.unknown:.0%} of the frames have no name")
        if self.lost > 0.01:
            found.append(f"{self.lost:.0%} of the samples were lost")
        return found


@dataclass(frozen=True)
class StepProfile:
    """Where the CPU time of one version went on one step in one round."""

    event: str
    """What was sampled by, such as `cpu-clock`."""
    frequency: float
    """Samples in a second of CPU time."""
    queries: float
    """Finished while it was sampled."""
    lost: int
    """Samples that were lost."""
    stacks: Mapping[str, int]
    """Samples by folded stack: `role;outermost;...;innermost`."""

    @cached_property
    def samples(self) -> int:
        """All of them."""
        return sum(self.stacks.values())

    @property
    def microseconds_per_sample(self) -> float:
        """CPU time per query, in µs, that one sample stands for."""
        return 1e6 / self.frequency / self.queries

    @property
    def quality(self) -> Quality:
        """How far it can be believed."""
        frames = unknown = shallow = 0
        for stack, count in self.stacks.items():
            names = stack.split(";")[1:]
            frames += len(names) * count
            unknown += nameless(names) * count
            shallow += count * (len(names) < SHALLOW)
        return Quality(
            samples=self.samples,
            shallow=shallow / max(1, self.samples),
            unknown=unknown / max(1, frames),
            lost=self.lost / max(1, self.samples + self.lost),
        )


def nameless(frames: Sequence[str]) -> int:
    """How many frames have no name, without those that are alone between two with names.

    Behind a call that never returns, such as Postgres' of PostgresMain, the return address lies in no
    function. The walk went on all the same, and both neighbours are known.
    """
    known = [False, *(not is_unknown(each) for each in frames), False]
    return sum(not known[at] and not (known[at - 1] and known[at + 1]) for at in range(1, len(known) - 1))


def is_unknown(frame: str) -> bool:
    """Whether a frame has no name: inferno writes `[unknown]`, or the file's name in brackets."""
    return frame.startswith("[")


def merged(profiles: Iterable[StepProfile]) -> StepProfile:
    """The rounds of one version on one step as one profile. Raises ValueError when there are none."""
    rounds = list(profiles)
    if not rounds:
        raise ValueError("no profile to merge")
    stacks: Counter[str] = Counter()
    for each in rounds:
        stacks.update(each.stacks)
    return StepProfile(
        event=rounds[0].event,
        frequency=rounds[0].frequency,
        queries=sum(each.queries for each in rounds),
        lost=sum(each.lost for each in rounds),
        stacks=stacks,
    )


def of_role(profile: StepProfile, role: str) -> StepProfile:
    """The stacks of one role only."""
    stacks = {stack: count for stack, count in profile.stacks.items() if stack.split(";", 1)[0] == role}
    return StepProfile(profile.event, profile.frequency, profile.queries, profile.lost, stacks)
