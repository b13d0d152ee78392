"""What a night did on a box: everything that was to be measured, and what became of it."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from history.counts import counted
from history.escaping.characters import one_line
from history.series.task_states import TaskOutcome
from history.store.records import FailureCause, VersionFailure
from runners.measuring.request import Request
from runners.measuring.session import SessionOutcome
from runners.nightly.confirm import ExaminedSuspicion, Suspicion
from runners.nightly.past.backfill import BackfillResult
from runners.nightly.work import PlannedSession, Target
from runners.occupancy.pause import Pause
from runners.retention.pruning import Pruned

EXHAUSTED = "time budget exhausted"
"""Why a session or a suspicion was skipped."""

MAX_NAMED = 5
"""The most versions without a result that the first line names."""

LONGEST_WHY = 120
"""The most characters of a reason in the first line."""

WORDS = {
    TaskOutcome.PENDING: "not reached",
    TaskOutcome.DISTURBED: "every round was disturbed",
    TaskOutcome.UNREACHABLE: "the branch could not be fetched",
    TaskOutcome.UNAVAILABLE: "could not be fetched or built",
    TaskOutcome.UNUSABLE: "cannot be measured",
    TaskOutcome.FAILED: "fails while it is measured",
    TaskOutcome.STOPPED: "its measurement was cut short",
    TaskOutcome.BUDGET: EXHAUSTED,
    TaskOutcome.BUSY: "another measurement held the machine",
    TaskOutcome.PAUSED: "the box is paused",
}
"""Why a version has no result, or a doubtful one."""

_HEADINGS = {
    TaskOutcome.BUDGET: "left for the next night",
    TaskOutcome.PAUSED: "left for the next night",
    TaskOutcome.DISTURBED: "doubtful",
}
"""How the first line introduces the versions with an outcome; those without an entry are not measured."""

_MEASURED = (TaskOutcome.MEASURED, TaskOutcome.DISTURBED)

HARMLESS = (TaskOutcome.MEASURED, TaskOutcome.CURRENT, TaskOutcome.BUDGET, TaskOutcome.PAUSED)
"""The outcomes that are no failure of a night."""


@dataclass
class NightResult:
    """What a night did on a box."""

    box: str
    targets: list[Target] = field(default_factory=list)
    """Everything that the plan tracks on the box, with what became of it."""

    carried_out: list[tuple[PlannedSession, SessionOutcome]] = field(default_factory=list)
    """The sessions that are in the history."""

    examined: list[ExaminedSuspicion] = field(default_factory=list)
    """Suspicions that were measured again."""

    postponed: list[Suspicion] = field(default_factory=list)
    """Skipped, because the time budget was exhausted: the next night looks again, unless commits are new."""

    past: BackfillResult | None = None
    """What was done about past commits; None without a backfill."""

    pause: Pause | None = None
    """The pause that began during the night, after which nothing more was measured."""

    pruned: Pruned | None = None
    """What was deleted from the disk of the box; None where nobody knew what is needed."""

    releases: list[str] = field(default_factory=list)
    """Releases that are out and not in the plan, for people."""

    problems: list[str] = field(default_factory=list)
    """What else went wrong without ending the night."""

    @property
    def why_skipped(self) -> str:
        """Why suspicions were skipped."""
        return EXHAUSTED if self.pause is None else str(self.pause)

    @property
    def due(self) -> list[Target]:
        """What was to be measured."""
        return [target for target in self.targets if target.outcome is not TaskOutcome.CURRENT]

    @property
    def missing(self) -> list[Target]:
        """What was to be measured and has no result, or one in which every round was disturbed."""
        return [target for target in self.due if target.outcome is not TaskOutcome.MEASURED]

    @property
    def has_failed(self) -> bool:
        """Whether anything went wrong, other than that the budget was too small."""
        return bool(
            self.problems
            or any(target.outcome not in HARMLESS for target in self.targets)
            or any(not outcome.whole for _, outcome in self.carried_out)
            or any(examination.outcome.was_hindered for examination in self.examined)
            or (self.past is not None and self.past.left_open)
        )

    @property
    def outcome(self) -> str:
        """One line for people: what was to be measured, what was, what was not and why."""
        return "; ".join(self._parts()) or "nothing is new"

    def _parts(self) -> Iterator[str]:
        counts = list(self._counts())
        if counts:
            yield ", ".join(counts)
        by_heading: defaultdict[str, list[Target]] = defaultdict(list)
        for target in self.missing:
            by_heading[_HEADINGS.get(target.outcome, "not measured")].append(target)
        for heading, several in by_heading.items():
            groups: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
            for target in several[:MAX_NAMED]:
                groups[target.place, short_reason(target)].append(target.name)
            named = [f"{', '.join(names)}, {place}: {why}" for (place, why), names in groups.items()]
            more = len(several) - MAX_NAMED
            yield f"{heading}: {'; '.join([*named, *([f'and {more} more'] if more > 0 else [])])}"

    def _counts(self) -> Iterator[str]:
        past = self.past or BackfillResult()
        if self.due:
            done = sum(target.outcome in _MEASURED for target in self.due)
            yield f"{done} of {counted(len(self.due), 'version')} measured"
        if past.carried_out:
            yield counted(len(past.carried_out), "past commit")
        if past.examined:
            yield f"{counted(len(past.examined), 'pair')} of commits compared"
        if past.in_vain or past.left_open:
            yield f"{counted(len(past.in_vain) + len(past.left_open), 'commit')} left out"
        if self.examined:
            yield f"{counted(len(self.examined), 'suspicion')} looked into"
        if self.postponed:
            yield f"{counted(len(self.postponed), 'suspicion')} skipped: {self.why_skipped}"
        if self.problems:
            yield counted(len(self.problems), "problem")


def short_reason(target: Target) -> str:
    """Return in a few words why a target has no result."""
    is_said = target.outcome is TaskOutcome.UNUSABLE
    words = explained(target.outcome, target.reason, LONGEST_WHY) if is_said else WORDS[target.outcome]
    return f"{words} since {target.since:%Y-%m-%d}" if target.since is not None else words


def explained(outcome: TaskOutcome, reason: str, longest: int) -> str:
    """Return in one line why there is no result: what became of it, and the reason, if there is one.

    The reason of a version that cannot be measured says so by itself, in its first line.
    """
    if outcome is TaskOutcome.UNUSABLE and reason:
        return one_line(reason.partition("\n")[0], longest)
    return f"{WORDS[outcome]}: {one_line(reason, longest)}" if reason else WORDS[outcome]


def concluded(target: Target, request: Request, outcome: SessionOutcome) -> Target:
    """Return a target with what became of it in a session."""
    result, reason = _result(target, request, outcome)
    return replace(target, outcome=result, reason=reason)


def _result(target: Target, request: Request, outcome: SessionOutcome) -> tuple[TaskOutcome, str]:
    base, version = request.versions[0], target.version
    assert version is not None
    for side in (version, base):
        beside = "" if side == version else f"its base {base}: "
        not_built = outcome.not_built.get(side)
        if not_built is not None:
            is_own = not_built.cause is FailureCause.VERSION
            return (TaskOutcome.UNUSABLE if is_own else TaskOutcome.UNAVAILABLE), f"{beside}{not_built}"
        failure = outcome.failed.get(str(side))
        if failure is not None and str(side) in outcome.without_result:
            return _failed(failure), f"{beside}{failure}"
    if str(version) in outcome.without_result:
        return TaskOutcome.STOPPED, "no round was finished"
    partly = outcome.failed.get(str(version))
    if partly is not None and partly.cause is FailureCause.MACHINE:
        return TaskOutcome.STOPPED, f"not all of its steps were measured: {partly}"
    if outcome.disturbed and not request.keep_disturbed:
        return TaskOutcome.DISTURBED, outcome.disturbed
    return TaskOutcome.MEASURED, ""


def _failed(failure: VersionFailure) -> TaskOutcome:
    return TaskOutcome.FAILED if failure.cause is FailureCause.VERSION else TaskOutcome.STOPPED
