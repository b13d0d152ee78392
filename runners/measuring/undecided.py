"""Which steps still need rounds: the verdicts on what a session has measured so far."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from math import log

from history.comparison.verdict import Verdict, judge
from history.stats.repeated_intervals import Design, Noise, pooled_noise, sequential_interval
from suites.metrics import METRICS, PRIMARY


class Deciding:
    """The log ratios of every step and contender, round by round."""

    def __init__(
        self,
        base: str,
        contenders: Sequence[str],
        design: Design,
        threshold: float,
        calibrated: Mapping[str, Noise],
    ) -> None:
        """`threshold` is a fraction; `calibrated` is what a calibration says of each step's noise."""
        self._base = base
        self._contenders = contenders
        self._design = design
        self._threshold = threshold
        self._calibrated = calibrated
        self._logs: dict[str, defaultdict[str, list[float]]] = {
            contender: defaultdict(list) for contender in contenders
        }

    def add(self, step: str, values: Mapping[str, float]) -> None:
        """Take in one round: the primary metric by version, of those that finished it."""
        base = values.get(self._base, 0.0)
        for contender in self._contenders:
            if base > 0 and values.get(contender, 0.0) > 0:
                self._logs[contender][step].append(log(values[contender] / base))

    def drop(self, version: str, step: str) -> None:
        """Wait no more for verdicts that need a version which cannot run a step."""
        for contender in self._contenders:
            if version in (self._base, contender):
                self._logs[contender].pop(step, None)

    def open_steps(self, steps: Sequence[str]) -> list[str]:
        """Those of `steps` on which some contender that finished rounds has no verdict yet."""
        undecided = set()
        for contender in self._contenders:
            verdicts = self.verdicts(contender)
            undecided |= {step for step, verdict in verdicts.items() if verdict is Verdict.INCONCLUSIVE}
        return [step for step in steps if step in undecided]

    def verdicts(self, contender: str) -> dict[str, Verdict]:
        """The verdict on every step that has rounds; INCONCLUSIVE also means too few."""
        logs = self._logs[contender]
        priors = pooled_noise(list(logs.values()), [self._calibrated.get(step) for step in logs])
        found = {}
        for (step, rounds), prior in zip(logs.items(), priors, strict=True):
            interval = sequential_interval(rounds, self._design, prior)
            found[step] = (
                Verdict.INCONCLUSIVE
                if interval is None
                else judge(interval, METRICS[PRIMARY].better, self._threshold)
            )
        return found
