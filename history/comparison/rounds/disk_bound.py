"""Steps in which the declared disk was at its limit, so that their ratio does not show what versions cost."""

from collections.abc import Iterator, Mapping, Sequence

from history.comparison.finding import Bearing, Finding
from history.comparison.rounds.onset import Seconds
from history.comparison.rounds.stalls import Runs
from suites.accounting.activity import DISK_LIMIT, Activity

SOURCE = "disk limit"

MIN_SHARE = 0.5
"""The share of a version's seconds from which on it counts as bound by its disk."""


def bound_by_disk(
    found: Mapping[int, Sequence[Activity]],
    runs: Runs,
    versions: tuple[str, str],
    seconds: Seconds,
    declared: str,
) -> Iterator[Finding]:
    """Yield the steps in which the disk of base or contender, the `versions`, was mostly at its limit.

    `found` is what went on in runs, by id; `declared` is the disk in words. The finding is only told.
    """
    for step in dict.fromkeys(step for step, _, _ in runs):
        of_step = {run: version for (name, version, _), run in runs.items() if name == step}
        at_limit = dict.fromkeys(versions, 0)
        for run, version in of_step.items():
            if version in at_limit:
                ranges = (activity for activity in found.get(run, ()) if activity.name == DISK_LIMIT)
                at_limit[version] += sum(activity.last - activity.first + 1 for activity in ranges)
        if not any(at_limit.values()):
            continue
        known = seconds(step)
        base, contender = (
            at_limit[version] / max(1, sum(len(pair[place]) for pair in known))
            for place, version in enumerate(versions)
        )
        bound = [share >= MIN_SHARE for share in (base, contender)]
        if any(bound):
            said = f"at the limit of the declared disk, {declared}, in {_percent(contender)} of the seconds"
            meaning = (
                "the ratio is that of what they ask of the disk, and does not show their CPU"
                if all(bound)
                else f"the disk bounds {versions[bound.index(True)]} only"
            )
            yield Finding(SOURCE, step, "", Bearing.TOLD, f"{said}, base {_percent(base)}: {meaning}")


def _percent(share: float) -> str:
    return f"{100 * min(1.0, share):.0f} %"
