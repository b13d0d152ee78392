"""Scheduling: which step is measured when, until verdicts stand or the time budget is exhausted."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from build.files import make_folder
from build.finished_build import Build
from build.progress import Progress, ProgressTask, in_words
from history.comparison.exact import MAX_PASSES
from history.counts import counted, plural_of
from runners.measuring.durations.deadline import Deadline
from runners.measuring.failures.cause import run_failure
from runners.measuring.failures.policy import FailurePolicy
from runners.measuring.layouts import Layouts
from runners.measuring.long_mode.blocks import Blocks, ShownRounds
from runners.measuring.passes.counted_passes import CountedPasses
from runners.measuring.request import Exact, Request, counted_once, is_slowly_counted
from runners.measuring.round_measurement import MeasuredRound, RoundMeasurement
from runners.measuring.run_recorder import RunRecorder
from runners.measuring.sequential_verdicts import SequentialVerdicts
from runners.measuring.session_versions import MeasuredVersion, Serve
from suites.keys.profile import Mode
from suites.keys.step import Step
from suites.measurement import Measurement
from suites.server import ServerError, keep_log

SLOW_PASS_SECONDS = 120.0
"""A guess, before the first one: what a pass of servers that start slowly under callgrind takes."""


class NothingLoadedError(ServerError):
    """No version could be loaded, or none to compare: there is nothing to measure."""


@dataclass(frozen=True)
class Rounds:
    """The rounds of a running session, in the order in which they are measured."""

    request: Request
    serve: Serve
    measurement: RoundMeasurement
    recorder: RunRecorder
    policy: FailurePolicy
    verdicts: SequentialVerdicts
    progress: Progress
    layouts: Layouts = field(default_factory=dict)

    @property
    def passes(self) -> CountedPasses | None:
        """What counts the instructions of rounds; None when they are not counted."""
        return self.policy.passes

    def run(
        self,
        builds: Sequence[Build],
        folder: Path,
        logs: Path | None = None,
        session_began: float | None = None,
    ) -> bool:
        """Load every build below `folder`, then measure all rounds in the mode of the request.

        Return whether there was time for all of them; the budget of a deadline began at `session_began`, by
        time.monotonic, or begins now.

        Rounds that the recorder already holds are not measured again. All servers are destroyed at the end,
        however it ends; the log of one that failed is kept in `logs`. Raises NothingLoadedError when no build
        can be loaded, or none to compare.
        """
        versions = [
            MeasuredVersion(
                build, self.serve(build, folder / str(number)), self.layouts.get(str(build.version), ())
            )
            for number, build in enumerate(builds, start=1)
        ]
        self.policy.resume(versions)
        began = time.monotonic() if session_began is None else session_began
        try:
            least = self.request.least_rounds
            unit = f"{plural_of(self.request.round_name)} of steps"
            unit = unit if least == self.request.most_rounds else f"or more {unit}"
            with self.progress.task("measuring", least * len(self.request.steps), unit) as task:
                self.tell_passes_in(task)
                for version in versions:
                    loaded = self.measurement.sizes.data_loaded
                    task.rename(f"{version.name}: initdb, then loading {loaded}")
                    self._load(version)
                self._require_loaded(versions)
                if self.request.profile.mode is Mode.LONG:
                    blocks = Blocks(self.request, self.measurement, self.policy, self.progress)
                    return blocks.run(versions, began, task)
                deadline = Deadline(self.request, began, time.monotonic)
                self._count_first(versions, deadline, task)
                last: dict[str, int] = {}
                groups = self._by_doubt(versions)
                for place, steps in enumerate(groups, 1):
                    later = least * sum(map(len, groups[place:]))
                    shown = ShownRounds(task, sum(last.values()), later)
                    last |= self._measure_rounds(steps, versions, deadline, shown)
                if deadline.passed:
                    self.progress.note("the time budget is used up; steps without a verdict stay open")
                self._count_undecided(versions, last, task)
                return not deadline.passed
        finally:
            for number, version in enumerate(versions, start=1):
                if logs is not None and (version.failures or version.broken):
                    self._keep_log(version, folder / str(number), logs)
                version.server.destroy()

    def _keep_log(self, version: MeasuredVersion, folder: Path, logs: Path) -> None:
        name = f"server-{folder.parent.name}-{folder.name}-{version.build.version.engine}.log"
        kept = make_folder(logs) / name
        if keep_log(folder, kept):
            self.progress.note(f"{version.name}: the log of its server is kept: {kept}")

    def tell_passes_in(self, task: ProgressTask) -> None:
        """Let the label of a task say how far a counted pass is that takes long."""
        if self.passes is not None:
            self.passes.tell = task.detail

    # --- for a session whose rounds are chosen by a driver

    def add_version(self, build: Build, folder: Path) -> MeasuredVersion:
        """Load one more version, and return it; its `broken` says what failed, if anything did.

        The caller destroys its server.
        """
        version = MeasuredVersion(build, self.serve(build, folder))
        self._load(version)
        return version

    def measure_round(self, number: int, step: Step, versions: Sequence[MeasuredVersion]) -> None:
        """Measure one round of a step and record it; a disturbed one is repeated as the policy says."""

        def measure(active: Sequence[MeasuredVersion]) -> MeasuredRound:
            if self.request.exact is Exact.ONLY:
                return _nothing_but_a_pass(active)
            return self.measurement.from_loaded_data(number, step, active)

        self.policy.carry_out(number, step, versions, measure)

    def count_round(self, number: int, step: Step, versions: Sequence[MeasuredVersion]) -> None:
        """Carry out one round that is a counted pass and nothing else, and record it."""
        assert self.passes is not None
        self.passes.chosen.add(number)
        self.policy.carry_out(number, step, versions, _nothing_but_a_pass)

    # --- rounds mode: each round begins from the loaded data

    def _count_first(
        self, versions: Sequence[MeasuredVersion], deadline: Deadline, task: ProgressTask
    ) -> None:
        """Carry out the passes that come before all rounds, whatever they take of the budget.

        Where a pass takes minutes, those of a step come before those of the next one, and none begins that
        would leave less than half of the budget to rounds.
        """
        if self.passes is None or self.request.exact is not Exact.FIRST:
            return
        steps, first, least = counted_once(self.request.steps), self.request.first_pass, self.request.passes
        order = [(number, step) for number in range(first, first + MAX_PASSES) for step in steps]
        is_slow = any(map(is_slowly_counted, self.request.versions))
        if is_slow:
            order.sort(key=lambda counted_pass: steps.index(counted_pass[1]))
        took = SLOW_PASS_SECONDS
        for number, step in order:
            if number >= first + least and not self.passes.need_more(step, versions):
                continue
            if is_slow and not deadline.leaves_rounds(took * (least if number == first else 1)):
                self._tell_uncounted(steps[steps.index(step) + (number > first + 1) :], took)
                return
            task.rename(f"pass {number - first + 1}: {step.name} ({counted(len(steps), 'step')})")
            is_new, began = not self.recorder.recorded_versions(step, number), time.monotonic()
            self.count_round(number, step, versions)
            took = time.monotonic() - began if is_new else took

    def _tell_uncounted(self, steps: Sequence[Step], seconds: float) -> None:
        """Say which steps are left to rounds, as a pass takes so many seconds."""
        if steps:
            names = ", ".join(step.name for step in steps)
            self.progress.note(
                f"not counted: {names}: a pass takes about {in_words(seconds)}, and half of the budget is "
                "for rounds; --exact-only counts all"
            )

    def _by_doubt(self, versions: Sequence[MeasuredVersion]) -> list[Sequence[Step]]:
        """Return the steps in the groups that are decided one after the other."""
        first = set(self.request.first_steps)
        if self.passes is not None and self.request.exact is Exact.FIRST:
            first |= {step.name for step in self.request.steps if self.passes.leave_in_doubt(step, versions)}
        groups = (
            [step for step in self.request.steps if (step.name in first) is is_first]
            for is_first in (True, False)
        )
        return [group for group in groups if group]

    def _measure_rounds(
        self,
        steps: Sequence[Step],
        versions: Sequence[MeasuredVersion],
        deadline: Deadline,
        shown: ShownRounds,
    ) -> Mapping[str, int]:
        """Measure the rounds of some steps; return the number of the last one by step."""
        open_steps: Sequence[Step] = steps
        done, last = 0, dict[str, int]()
        for number in range(1, self.request.most_rounds + 1):
            later = max(0, self.request.least_rounds - number) * len(steps)
            for place, step in enumerate(open_steps, 1):
                if not deadline.allows(number):
                    return last
                is_new = not self.recorder.recorded_versions(step, number)
                if is_new:
                    which = f"{self.request.round_name} {number}"
                    shown.task.rename(f"{which}: {step.name} ({counted(len(open_steps), 'step')} open)")
                began = time.monotonic()
                self.measure_round(number, step, versions)
                done, last[step.name] = done + 1, number
                if is_new:  # those of an interrupted session took no time now
                    deadline.take(time.monotonic() - began)
                    shown.count(done, len(open_steps) - place + later)
            if self.request.until_decided and number >= self.request.least_rounds:
                names = self.verdicts.open_steps([step.name for step in open_steps], number)
                open_steps = [step for step in open_steps if step.name in names]
            if self.request.exact is Exact.ONLY and number >= self.request.least_rounds:
                open_steps = [step for step in open_steps if self._needs_passes(step, versions)]
            if not open_steps:
                break
        return last

    def _count_undecided(
        self, versions: Sequence[MeasuredVersion], last: Mapping[str, int], task: ProgressTask
    ) -> None:
        """Count steps, in rounds without slices after their last one, whose counts do not decide yet."""
        if self.passes is None or self.request.exact is not Exact.BESIDE:
            return
        for number in range(1, MAX_PASSES + 1):
            for step in self.request.steps:
                if number > last.get(step.name, number) and self.passes.are_due(number, step, versions):
                    task.rename(f"{step.name}: one more counted pass")
                    self.count_round(number, step, versions)

    def _needs_passes(self, step: Step, versions: Sequence[MeasuredVersion]) -> bool:
        return self.passes is not None and self.passes.need_more(step, versions)

    def _load(self, version: MeasuredVersion) -> None:
        self.measurement.load(version)
        if version.broken is not None:
            self.recorder.report_failure(f"{version.name}: all steps", version.broken)
            if version.load_error is not None:
                self.recorder.note_failure(version.name, run_failure(version.load_error, self.policy.folder))
            return
        self.recorder.record_data(version)
        if version.plans:
            self.recorder.record_plans(version)

    def _require_loaded(self, versions: Sequence[MeasuredVersion]) -> None:
        loaded = [version.name for version in versions if version.broken is None]
        if not loaded:
            raise NothingLoadedError("no version could be loaded", hint="see the messages above")
        base = str(self.request.versions[0])
        if self.request.needs_contender and (base not in loaded or len(loaded) == 1):
            raise NothingLoadedError(
                f"only {', '.join(loaded)} could be loaded, and nothing to compare with",
                hint="see the messages above",
            )


def _nothing_but_a_pass(active: Sequence[MeasuredVersion]) -> MeasuredRound:
    """Return the measurements of a round without slices, to which its counted pass is added."""
    return [Measurement({}, ()) for _ in active], ()
