"""The blocks of long mode: which step is measured how long, until verdicts stand or time is up."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from build.progress import Progress, ProgressTask
from runners.measuring.durations.deadline import Deadline
from runners.measuring.failures.policy import FailurePolicy
from runners.measuring.request import Request
from runners.measuring.round_measurement import MeasuredRound, RoundMeasurement
from runners.measuring.session_versions import MeasuredVersion
from suites.generators.load import Share
from suites.keys.step import Step
from suites.measurement import Measurement
from suites.sizing import max_transactions
from suites.slices import Schedule, balanced_block
from suites.turns.failures import ServerDiedError

WARMING_IDS = 200_000
"""The number of the first round in which servers warm up, so that their ids are drawn in no other one."""


@dataclass(frozen=True)
class ShownRounds:
    """The task that is shown, with the rounds before some steps and the least of those after them.

    Rounds are also blocks of long mode.
    """

    task: ProgressTask
    before: int
    after: int

    def count(self, done: int, left: int) -> None:
        """Show a new round of the steps, of which so many more are certain to come.

        What was recorded before a session was resumed is not shown alone: it took no time now, by which the
        time left would be estimated.
        """
        done += self.before
        self.task.update(done, done + left + self.after)


@dataclass(frozen=True)
class Blocks:
    """The blocks of a session, step by step; each is recorded as one round."""

    request: Request
    measurement: RoundMeasurement
    policy: FailurePolicy
    progress: Progress

    @property
    def most(self) -> int:
        """The most blocks of a step."""
        return self.request.most_rounds

    @property
    def least(self) -> int:
        """The blocks that every step gets, if the budget allows."""
        return self.request.least_rounds

    def run(self, versions: Sequence[MeasuredVersion], began: float, task: ProgressTask) -> bool:
        """Measure all steps; return whether there was time for it.

        `began` is when the session began, by time.monotonic. Each step may take its share of what is left of
        the budget, so that the first ones leave some to the others.
        """
        steps, deadline, had_time = self.request.steps, Deadline(self.request, began, time.monotonic), True
        done = 0
        for place, step in enumerate(steps):
            deadline.share_among(len(steps) - place)
            later = (len(steps) - place - 1) * self.least
            done += self._measure_step(step, versions, deadline, ShownRounds(task, done, later))
            had_time = had_time and not deadline.passed
        if not had_time:
            self.progress.note("the time budget is used up; steps without a verdict stay open")
        return had_time

    def _measure_step(
        self, step: Step, versions: Sequence[MeasuredVersion], deadline: Deadline, shown: "ShownRounds"
    ) -> int:
        """Measure the blocks of a step that are not recorded yet, until it ends; return how many it has."""
        part, is_running = self._part(step), False
        for block in range(1, self.most + 1):
            is_new = not self.policy.recorder.recorded_versions(step, block)
            if not is_running:
                if not deadline.allows(block):
                    return block - 1
                if is_new and self._warms:
                    shown.task.rename(f"{step.name}: warming up")
                    self._warm_up(step, versions, deadline, part)
                is_running = is_new
            if is_new:
                shown.task.rename(f"{step.name}, block {block} of {self._most_in_words}")
            ends = self._measure_block(block, step, versions, part, deadline, shown.task)
            if is_new:
                shown.count(block, 0 if ends else max(1, self.least - block))
            if ends:
                return block
        return self.most

    @property
    def _warms(self) -> bool:
        return self.request.profile.warm_limit_seconds > 0

    def _part(self, step: Step) -> int | None:
        """Return the transactions of a block, and of warming up; None if the step does not use rows up."""
        transactions = max_transactions(step, self.measurement.sizes)
        return None if transactions is None else max(1, transactions // (self.most + self._warms))

    def _warm_up(
        self, step: Step, versions: Sequence[MeasuredVersion], deadline: Deadline, part: int | None
    ) -> None:
        """Let servers work on a step until they are warm; say what they have not reached.

        It takes half of what is left of the budget at most.
        """
        limit = self.request.profile.warm_limit_seconds
        while active := [version for version in versions if version.exclusion_reason(step.name) is None]:
            most = min(limit, deadline.left_seconds / 2 / len(active))
            try:
                shares = self._warming(len(active), most, part)
                warmth = self.measurement.warm_up(active, step, shares, most)
            except ServerDiedError as error:
                failed = active if error.place is None else [active[error.place]]
                self.policy.exclude(failed, step, 1, error)
                continue
            self.policy.recorder.record_warmth(step, warmth)
            return

    def _warming(self, servers: int, seconds: float, part: int | None) -> Iterator[Share]:
        """Yield slices of all servers, for so many seconds each, with ids that no block has."""
        profile = self.request.profile
        slices = max(1, int(seconds / profile.slice_seconds))
        schedule = Schedule(profile.slice_seconds, tuple(range(servers)))
        of_slice = None if part is None else max(1, part // slices)
        for number in range(slices):
            done = number * (of_slice or 0)
            yield Share(schedule, WARMING_IDS + number, of_slice, done, profile.limit_seconds)

    @property
    def _most_in_words(self) -> str:
        return f"at most {self.most}" if self.least < self.most else f"{self.most}"

    def _measure_block(
        self,
        block: int,
        step: Step,
        versions: Sequence[MeasuredVersion],
        part: int | None,
        deadline: Deadline,
        task: ProgressTask,
    ) -> bool:
        """Measure slices in mirrored orders, such as A B B A or B A A B, which are drawn by the suite's seed.

        Return whether the step ends with this block: after its slices, and before it is recorded, so that the
        reset is recorded with it.
        """
        profile, began = self.request.profile, time.monotonic()
        ended: list[bool] = []

        def measure(active: Sequence[MeasuredVersion]) -> MeasuredRound:
            def ends(measurements: Sequence[Measurement]) -> bool:
                deadline.take(time.monotonic() - began)
                ended.append(self._is_last(block, step, active, measurements, deadline))
                if ended[-1] and not step.reads_only:
                    task.rename(f"{step.name}: reset")
                return ended[-1]

            schedule = balanced_block(
                block,
                len(active),
                profile.turns_per_block,
                profile.slice_seconds,
                (self.request.suite.seed, step.name),
            )
            done = (block - 1 + self._warms) * (part or 0)
            share = Share(schedule, block, part, done, profile.limit_seconds)
            return self.measurement.on_running_servers(
                active, step, share, ends=ends, profiles=block == self.least
            )

        self.policy.carry_out(block, step, versions, measure, servers_stay_up=True)
        if ended:
            return ended[-1]
        # It is recorded already, or there is no server left.
        return self._decides(block) and not self.policy.verdicts.open_steps([step.name], block)

    def _decides(self, block: int) -> bool:
        """Return whether a step may be decided by a block."""
        return self.request.until_decided and block >= self.least

    def _is_last(
        self,
        block: int,
        step: Step,
        active: Sequence[MeasuredVersion],
        measurements: Sequence[Measurement],
        deadline: Deadline,
    ) -> bool:
        """Return whether a step ends with a block of which everything but the reset is known."""
        if block == self.most:
            return True
        if self._decides(block) and self.policy.is_decided_by(block, step, active, measurements):
            return True
        return not deadline.allows(block + 1)
