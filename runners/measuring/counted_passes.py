"""Counted passes of a session: which rounds have one, and what their servers executed for fixed work."""

from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from build.errors import TidemarkError
from history.comparison.exact import agree
from history.store.resume import Recorded
from runners.measuring.request import Exact, Request
from runners.measuring.session_versions import MeasuredVersion
from suites.counting.counted_pass import CountedPass, count
from suites.counting.engines import COUNTED
from suites.counting.tool import Callgrind
from suites.generators.load import Generator
from suites.keys.step import Step
from suites.measurement import Measurement
from suites.metrics import INSTRUCTIONS
from suites.sizing import Sizes, fit_together, this_machine


@dataclass
class CountedPasses:
    """Counts the instructions of steps, beside the rounds of a session or instead of them.

    A pass belongs to a round, whose runs record its values; a pass that fails is a warning of its run.
    """

    request: Request
    sizes: Sizes
    generator: Generator
    callgrind: Callgrind
    _values: defaultdict[tuple[str, str], list[float]] = field(default_factory=lambda: defaultdict(list))
    """The instructions per query of the passes so far, by version and step."""

    chosen: set[int] = field(default_factory=set)
    """The numbers of the rounds that a driver chose to be counted."""

    def are_due(self, number: int, step: Step, versions: Sequence[MeasuredVersion]) -> bool:
        """Whether a round has a pass: the first ones, and one more when those of a version disagree."""
        if self.request.exact is Exact.DRIVEN:
            return number in self.chosen
        passes = self.request.passes
        return number <= passes or (number == passes + 1 and self.disagree(step, versions))

    def disagree(self, step: Step, versions: Sequence[MeasuredVersion]) -> bool:
        """Whether passes of a version differ by more than its engine's counts do."""
        for version in versions:
            values = self._values[version.name, step.name]
            if values and not agree(values, COUNTED[version.build.version.engine].agreement):
                return True
        return False

    def add_to(
        self,
        number: int,
        step: Step,
        versions: Sequence[MeasuredVersion],
        measurements: Sequence[Measurement],
    ) -> list[Measurement]:
        """Return the measurements of a round with those of its pass, which ends servers that are still up.

        In a session of nothing but passes every round has one.
        """
        if self.request.exact is not Exact.ONLY and not self.are_due(number, step, versions):
            return list(measurements)
        passes = self._count(number, step, versions)
        return [
            _with(measurement, counted) for measurement, counted in zip(measurements, passes, strict=True)
        ]

    def _count(
        self, number: int, step: Step, versions: Sequence[MeasuredVersion]
    ) -> list[CountedPass | TidemarkError]:
        """Count all versions, as many at once as there are cores and memory: counts do not depend on load."""
        machine = this_machine()
        at_once = min(machine.cores, len(versions))
        with ThreadPoolExecutor(at_once if fit_together(at_once, self.sizes, machine) else 1) as pool:
            try:
                return list(pool.map(lambda version: self._count_one(number, step, version), versions))
            except BaseException:
                # A thread ends only when its load generator does, and that ends when its server is gone.
                for version in versions:
                    version.server.abandon()
                raise

    def _count_one(self, number: int, step: Step, version: MeasuredVersion) -> CountedPass | TidemarkError:
        # One profile is enough, and a pass without one is faster.
        stacks = number == 1 and not self.request.bisect
        server, generator = version.server, self.generator
        try:
            result = count(server, generator, step, self.sizes, self.callgrind, stacks=stacks)
        except TidemarkError as error:
            return error
        self.note(version.name, step.name, result.values[INSTRUCTIONS])
        return result

    def note(self, version: str, step: str, instructions: float) -> None:
        """Take in the instructions per query of a pass, which later ones are compared with."""
        self._values[version, step].append(instructions)


def session_passes(
    request: Request, sizes: Sizes, generator: Generator, callgrind: Callgrind | None, recorded: Recorded
) -> CountedPasses | None:
    """Return what counts a session, with the passes that it had `recorded` before it was interrupted.

    None without callgrind.
    """
    if callgrind is None:
        return None
    passes = CountedPasses(request, sizes, generator, callgrind)
    for (step, _), runs in recorded.items():
        for version, run in runs.items():
            if INSTRUCTIONS in run.values:
                passes.note(version, step, run.values[INSTRUCTIONS])
    return passes


def _with(measurement: Measurement, counted: CountedPass | TidemarkError) -> Measurement:
    if isinstance(counted, TidemarkError):
        return replace(measurement, warnings=[*measurement.warnings, f"no exact count: {counted}"])
    values = {**measurement.values, **counted.values}
    warnings = [*measurement.warnings, *counted.notes]
    return replace(measurement, values=values, warnings=warnings, counted=counted.profile)
