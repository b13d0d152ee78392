"""The CPU profile of one step as folded stacks, and its quality."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

SHALLOW = 3
"""A stack with fewer frames is shallow: it was not unwound completely, for lack of frame pointers."""

MAX_SHALLOW = 0.1
"""Share of shallow stacks above which there is a warning."""

MAX_UNKNOWN = 0.05
"""Share of frames without a name above which there is a warning."""

MIN_SAMPLES = 200
"""Number of samples below which there is a warning: one percent would be less than two samples."""

COUNTED_EVENT = "instructions"
"""The event of a profile whose instructions were all counted. Its frequency is 1e6, so that what is µs per
query in other profiles is instructions per query."""

COUNTED_FREQUENCY = 1e6
"""Instructions in what stands for a second."""

CLIENT_STATES = "client states"
"""The event of a profile whose samples are clients, and what their queries do (WaitObserver)."""

OTHER = "other"
"""The role of threads that started and ended during the profile."""


@dataclass(frozen=True)
class Quality:
    """The quality of a profile's stacks. Shares are between 0 and 1."""

    samples: int
    shallow: float
    """Share of samples with fewer than SHALLOW frames."""
    unknown: float
    """Share of frames without a name that have a neighbour without a name."""
    lost: float
    """Share of samples that the kernel lost."""

    def warnings(self) -> list[str]:
        """Return the problems of the profile in words; empty for a good profile."""
        problems = []
        if self.samples < MIN_SAMPLES:
            problems.append(f"only {self.samples} samples")
        if self.shallow > MAX_SHALLOW:
            problems.append(f"{100 * self.shallow:.0f} % of the stacks have fewer than {SHALLOW} frames")
        if self.unknown > MAX_UNKNOWN:
            problems.append(f"{100 * self.unknown:.0f} % of the frames have no name")
        if self.lost > 0.01:
            problems.append(f"{100 * self.lost:.0f} % of the samples were lost")
        return problems


@dataclass(frozen=True)
class StepProfile:
    """The CPU profile of one version on one step in one round."""

    event: str
    """The sampled event, such as `cpu-clock`."""
    frequency: float
    """Samples per second of CPU time."""
    queries: float
    """Number of queries finished during the profile."""
    lost: int
    """Number of lost samples."""
    stacks: Mapping[str, int]
    """Folded stack (`role;outermost;...;innermost`) -> number of samples."""
    calls: Mapping[str, int] = field(default_factory=dict)
    """Function -> number of its calls; empty unless they were counted."""

    @property
    def is_exact(self) -> bool:
        """Whether a sample is one counted instruction (suites/counting), and not a sample in time."""
        return self.event == COUNTED_EVENT

    @cached_property
    def samples(self) -> int:
        """The total number of samples."""
        return sum(self.stacks.values())

    @property
    def microseconds_per_sample(self) -> float:
        """The CPU time per query, in µs, that one sample represents."""
        return 1e6 / self.frequency / self.queries

    @property
    def quality(self) -> Quality:
        """The quality of the stacks."""
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
    """Return the number of frames without a name, except those between two frames with names.

    The return address of a call that never returns, such as the call of PostgresMain, is in no function. The
    stack is unwound correctly nevertheless, and both neighbours have names.
    """
    known = [False, *(not is_unknown(frame) for frame in frames), False]
    return sum(not known[at] and not (known[at - 1] and known[at + 1]) for at in range(1, len(known) - 1))


def is_unknown(frame: str) -> bool:
    """Return whether a frame has no name: it is `[unknown]`, or the file's name in brackets."""
    return frame.startswith("[")


def merged(profiles: Iterable[StepProfile]) -> StepProfile:
    """Return the sum of the profiles of one version on one step. Raises ValueError if there are none."""
    rounds = list(profiles)
    if not rounds:
        raise ValueError("no profile to merge")
    stacks: Counter[str] = Counter()
    calls: Counter[str] = Counter()
    for profile in rounds:
        stacks.update(profile.stacks)
        calls.update(profile.calls)
    return StepProfile(
        event=rounds[0].event,
        frequency=rounds[0].frequency,
        queries=sum(profile.queries for profile in rounds),
        lost=sum(profile.lost for profile in rounds),
        stacks=stacks,
        calls=calls,
    )


def of_role(profile: StepProfile, role: str) -> StepProfile:
    """Return the profile with only the stacks of one role."""
    stacks = {stack: count for stack, count in profile.stacks.items() if stack.split(";", 1)[0] == role}
    return replace(profile, stacks=stacks)
