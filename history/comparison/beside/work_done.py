"""Whether a contender did the work that the base did: its own failures, and the rows that both hold alike."""

from collections.abc import Collection, Iterable, Mapping

from build.version import Version
from history.comparison.pairs import Failure
from history.comparison.result import ContenderComparison
from history.series.results import failures_in
from history.store.records import FailureCause, Run, RunStatus
from suites.metrics import PROVED_ROWS


def own_failures(contender: ContenderComparison) -> tuple[Failure, ...]:
    """Return the failures of the contender that are its own: its server failed, and the base's did not.

    Empty over nights, and for a version that was not built.
    """
    options, name = contender.session.options, str(contender.contender)
    why, not_built = failures_in(options).get(name), options.get("not_built")
    is_built = not isinstance(not_built, dict) or name not in not_built
    if contender.nights is not None or why is None or why.cause is not FailureCause.VERSION or not is_built:
        return ()
    of_base = {failure.step for failure in contender.failures if failure.version == str(contender.base)}
    return tuple(
        failure
        for failure in contender.failures
        if failure.version == name
        and failure.status is RunStatus.FAILED
        and not failure.over_limit
        and failure.step not in of_base
    )


def same_rows(runs: Iterable[Run], versions: Collection[Version]) -> Mapping[str, int]:
    """Return, by step, the rows that all versions hold alike after the same transactions and a crash."""
    recorded: dict[str, dict[str, int]] = {}
    for run in runs:
        if PROVED_ROWS in run.values:
            recorded.setdefault(run.step, {})[run.version] = int(run.values[PROVED_ROWS])
    return {step: min(rows.values()) for step, rows in recorded.items() if len(rows) == len(versions)}
