"""Steps that were ended at the limit of a query: they have no ratio, and means without them are bounds."""

from collections.abc import Iterator
from dataclasses import dataclass

from history.comparison.result import ContenderComparison

MARGIN = 2.0
"""How many times the seconds of one version the limit must be before the other one is slower for certain: the
query was executed once."""


@dataclass(frozen=True)
class CensoredSteps:
    """The censored steps of a comparison."""

    steps: tuple[str, ...]
    bound: str
    """What a mean of throughput over the other steps is of the mean over all: `at most`, `at least`, or empty
    where it is neither."""


def censored_steps(contender: ContenderComparison) -> CensoredSteps | None:
    """Return the steps that were over their limit on base or contender; None without one.

    A contender that took longer than the limit where the base did not can only lower the mean, and the other
    way round, as long as the ratio of such a step is not better than the mean of the others. Where both took
    longer, nothing is known.
    """
    found = {failure.step: failure.over_limit for failure in contender.failures if failure.over_limit}
    if not found:
        return None
    base, other = str(contender.base), str(contender.contender)
    slow_base, slow_other = ({name in over for over in found.values()} for name in (base, other))
    bound = ""
    if slow_other == {True} and slow_base == {False}:
        bound = "at most"
    elif slow_base == {True} and slow_other == {False}:
        bound = "at least"
    return CensoredSteps(tuple(found), bound)


def beyond_limit(contender: ContenderComparison) -> Iterator[tuple[str, bool, str]]:
    """Yield the steps that one version alone could not end within the limit, and the other one easily.

    Each has whether the contender is the slower one, and a sentence.
    """
    base, other = str(contender.base), str(contender.contender)
    for failure in contender.failures:
        took, limit = failure.took_seconds, failure.limit_seconds
        if took is None or took * MARGIN > limit:
            continue
        if failure.version == base and other in failure.over_limit:
            yield failure.step, True, f"took longer than {limit:g} s, base {took:.3g} s"
        elif failure.version == other and base in failure.over_limit:
            yield failure.step, False, f"took {took:.3g} s, base longer than {limit:g} s"
