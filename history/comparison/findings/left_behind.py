"""What versions leave behind after a step of long mode, whose one reset is too few for an interval."""

from collections.abc import Iterator

from history.comparison.finding import Bearing, Finding
from history.comparison.findings.moved_metrics import is_faster
from history.comparison.pairs import StepPairs
from history.comparison.result import ContenderComparison
from history.metric_words import label_of
from history.numbers import percents
from suites.metrics import BEFORE, METRICS, TRANSACTIONS, Role, of_role

SOURCE = "left behind"

SMALLEST_CHANGE, SMALLEST_CHANGE_OF_SIZES = 0.5, 0.1
"""The change, as a fraction, of what a reset takes and of the sizes after it, beyond which it is told."""


def left_behind(contender: ContenderComparison) -> Iterator[Finding]:
    """Yield the steps after whose only reset base and contender differ by much, in all and per transaction.

    The finding is only told: how far two resets of equal builds are apart, one of each does not say.
    """
    if not contender.session.is_long or contender.nights is not None:
        return
    paired = {step.step: step for step in contender.paired}
    for step in contender.steps:
        if step.step not in paired:
            continue
        moved = list(_moved(paired[step.step]))
        for is_more, words in ((True, "more"), (False, "less")):
            texts = [text for grown, text in moved if grown is is_more]
            if texts:
                end = "; the step is faster" if is_more and is_faster(step) else ""
                text = f"leaves {words} behind, in its one reset: {', '.join(texts)}{end}"
                yield Finding(SOURCE, step.step, "", Bearing.TOLD, text)


def _moved(step: StepPairs) -> Iterator[tuple[bool, str]]:
    """Yield whether it is more, and how it moved, of each metric of the reset that moved by much."""
    done = [sum(values) for values in step.values(TRANSACTIONS)]
    work = done[1] / done[0] if all(done) else 1.0
    for row in (METRICS[name] for name in of_role(Role.RESET)):
        base, contender = step.values(row.name)
        if not row.judged or row.part_of or len(base) != 1 or min(*base, *contender) <= 0:
            continue
        ratio = contender[0] / base[0]
        smallest = SMALLEST_CHANGE_OF_SIZES if row.name in BEFORE else SMALLEST_CHANGE
        limit = 1 + row.threshold_at(base[0], smallest)
        apart = ratio, ratio / work
        if min(apart) > limit or max(apart) < 1 / limit:
            yield ratio > 1, f"{label_of(row.name)} {percents(ratio)} %"
