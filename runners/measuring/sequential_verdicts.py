"""The verdicts on what a session has measured so far: which steps still need rounds."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from math import log

from history.comparison.verdict import TRAITS, Verdict, judge
from history.stats.repeated_intervals import Design, Noise, pooled_noise, sequential_interval
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
    ) -> None:
        """`threshold` is a fraction; `calibrated` is the noise of each step by the last calibration."""
        self._base = base
        self._contenders = contenders
        self._design = design
        self._threshold = threshold
        self._calibrated = calibrated
        self._logs: dict[str, defaultdict[str, list[float]]] = {
            contender: defaultdict(list) for contender in contenders
        }

    def add(self, step: str, values: Mapping[str, float]) -> None:
        """Add one round: the primary metric by version, of the versions that finished it."""
        base = values.get(self._base, 0.0)
        for contender in self._contenders:
            if base > 0 and values.get(contender, 0.0) > 0:
                self._logs[contender][step].append(log(values[contender] / base))

    def drop(self, version: str, step: str) -> None:
        """Wait for no verdict that needs a version which cannot run the step."""
        for contender in self._contenders:
            if version in (self._base, contender):
                self._logs[contender].pop(step, None)

    def open_steps(self, steps: Sequence[str]) -> list[str]:
        """Return those of `steps` on which a contender that has finished rounds has no verdict yet."""
        undecided = set()
        for contender in self._contenders:
            verdicts = self.verdicts(contender)
            undecided |= {step for step, verdict in verdicts.items() if TRAITS[verdict].is_open}
        return [step for step in steps if step in undecided]

    def verdicts(self, contender: str) -> dict[str, Verdict]:
        """Return the verdict on every step that has rounds; INCONCLUSIVE also stands for too few rounds."""
        logs = self._logs[contender]
        priors = pooled_noise(list(logs.values()), [self._calibrated.get(step) for step in logs])
        verdicts = {}
        for (step, rounds), prior in zip(logs.items(), priors, strict=True):
            interval = sequential_interval(rounds, self._design, prior)
            verdicts[step] = (
                Verdict.INCONCLUSIVE
                if interval is None
                else judge(interval, METRICS[PRIMARY].better, self._threshold)
            )
        return verdicts
