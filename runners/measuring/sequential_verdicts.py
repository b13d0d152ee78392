"""The verdicts on what a session has measured so far: which steps still need rounds."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from math import log

from history.comparison.priors import priors_of
from history.comparison.verdict import TRAITS, Verdict, judge
from history.stats.bursts import are_alike, blocks_with_bursts
from history.stats.layouts import layout_interval, layout_of
from history.stats.noise_model import Noise
from history.stats.repeated_intervals import Design, sequential_interval
from suites.metrics import METRICS, PRIMARY


class SequentialVerdicts:
    """The log ratios of every step and contender, round by round, and the verdicts that they allow."""

    def __init__(
        self,
        base: str,
        contenders: Sequence[str],
        design: Design,
        threshold: float,
        calibrated: Mapping[str, Noise],
        metric: str = PRIMARY,
        layouts: int = 0,
    ) -> None:
        """`threshold` is a fraction; `calibrated` is the noise of each step by the last calibration.

        `metric` is what the verdicts are about. `layouts` are those on each side, which rounds take in turns;
        0 where all rounds have the same build.
        """
        self.metric = metric
        self._base = base
        self._contenders = contenders
        self._design = design
        self._threshold = threshold
        self._calibrated = calibrated
        self._layouts = layouts
        self._logs: dict[str, defaultdict[str, dict[int, float | None]]] = {
            contender: defaultdict(dict) for contender in contenders
        }
        self._dropped: set[tuple[str, str]] = set()
        self._bursts: defaultdict[tuple[str, str], set[int]] = defaultdict(set)

    def add(self, step: str, number: int, values: Mapping[str, float], bursts: Collection[str] = ()) -> None:
        """Take in round `number`: the metric by version, of those that finished it.

        `bursts` are the versions that had background work in it which comes in bursts. The rounds of a step
        come in order. One that is taken in again replaces what it was before.
        """
        base = values.get(self._base)
        for contender in self._contenders:
            value = values.get(contender)
            if base is not None and value is not None:
                logarithm = log(value / base) if min(base, value) > 0 else None
                self._logs[contender][step][number] = logarithm
            both = {self._base, contender}
            if not both.isdisjoint(bursts) and are_alike(both):
                self._bursts[contender, step].add(number)

    def _left_out(self, contender: str, step: str, last: int) -> frozenset[int]:
        """Return the rounds of a step up to `last` that bursts reached, and that do not count."""
        numbers = [number for number in self._logs[contender][step] if number <= last]
        return blocks_with_bursts(numbers, self._bursts[contender, step])

    def drop(self, version: str, step: str) -> None:
        """Wait for no verdict that needs a version which cannot run the step."""
        for contender in self._contenders:
            if version in (self._base, contender):
                self._dropped.add((contender, step))

    def open_steps(self, steps: Sequence[str], number: int) -> list[str]:
        """Those of `steps` on which some contender has rounds but no verdict after round `number`."""
        undecided = set()
        for contender in self._contenders:
            verdicts = self.verdicts(contender, number)
            undecided |= {
                step
                for step, verdict in verdicts.items()
                if TRAITS[verdict].is_open and (contender, step) not in self._dropped
            }
        return [step for step in steps if step in undecided]

    def verdicts(self, contender: str, number: int) -> dict[str, Verdict]:
        """The verdict after round `number` on every step that has rounds; INCONCLUSIVE also means too few.

        A step is judged by its own rounds, and by what others showed of its noise up to its last one, as
        `history.comparison.intervals` does when the session is compared: what has been decided stays so.
        """
        return {step: self._verdict(contender, step, number) for step in self._logs[contender]}

    def _verdict(self, contender: str, step: str, number: int) -> Verdict:
        taken = self._logs[contender][step]
        last = max((place for place in taken if place <= number), default=0)
        even = {
            name: usable
            for name, logs in self._logs[contender].items()
            if (usable := _usable(logs, last, self._left_out(contender, name, last)))
        }
        logs = _usable(taken, last)
        if step not in even or not logs:
            return Verdict.INCONCLUSIVE
        prior = priors_of(even, self._calibrated)[step]
        if self._layouts:
            layouts = [layout_of(at, self._layouts) for at in taken if at <= last]
            interval = layout_interval(logs, layouts, self._design, prior)
        else:
            numbers = [at for at in taken if at <= last]
            left_out = self._left_out(contender, step, last)
            places = [place for place, at in enumerate(numbers) if at in left_out]
            interval = sequential_interval(logs, self._design, prior, places)
        if interval is None:
            return Verdict.INCONCLUSIVE
        return judge(interval, METRICS[self.metric].better, self._threshold)


def _usable(logs: Mapping[int, float | None], last: int, left_out: Collection[int] = ()) -> list[float]:
    """The logarithms up to round `last` without those left out; none at all where a round has none."""
    known = {at: value for at, value in logs.items() if at <= last}
    if None in known.values():
        return []
    return [value for at, value in known.items() if value is not None and at not in left_out]
