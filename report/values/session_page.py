"""What the pages of a session show: its comparisons, its steps second by second, its settings and builds."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sqlalchemy import select

from history.comparison.profile_diff import Differential, Rounds, differential
from history.comparison.result import Comparison
from history.errors import ComparisonError, stored_object, stored_version
from history.rendering.notes import basis
from history.series.series import commit_in
from history.store.reader import Reader
from history.store.records import DroppedRound, Run, Session, SessionStatus
from history.store.schema import builds, configurations, gaps, points, runs, series
from history.store.session_reads import activities_of, runs_of, samples_of, session_of
from report.values.catalog import Catalog, SessionEntry
from report.values.comparisons import Comparisons, base_of
from suites.accounting.activity import Activity
from suites.metrics import METRICS, Metric
from suites.profiling.stacks import StepProfile, merged

MAX_CONTENDERS = 40
"""The contenders that a session's page compares; further ones are named."""


@dataclass(frozen=True)
class StepRuns:
    """A step of a session: its runs by version and round."""

    step: str
    position: int
    runs: Mapping[str, Mapping[int, Run]]
    samples: Mapping[int, Sequence[float]]
    """Queries per second, second by second, by the id of a run."""

    dropped: tuple[DroppedRound, ...]
    profiles: Mapping[str, StepProfile] = field(default_factory=dict)
    """The CPU profiles by version, with the rounds of each merged."""

    differentials: Mapping[str, Differential] = field(default_factory=dict)
    """The contender's CPU profile against the base's, by contender, where both were profiled."""

    activities: Mapping[int, Sequence[Activity]] = field(default_factory=dict)
    """What went on beside queries, by the id of a run."""

    round_name: str = "round"
    """What its rounds are called: in long mode they are blocks."""


@dataclass(frozen=True)
class VersionSetup:
    """The settings and the build of one version."""

    version: str
    settings: Mapping[str, str]
    manifest: Mapping[str, str]
    """The entries of the build's manifest; nested keys have dots between them."""


@dataclass(frozen=True)
class SessionPage:
    """Everything that is shown of a session."""

    entry: SessionEntry
    session: Session
    comparison: Comparison | None
    """The base against every contender; None for a single version, and without runs."""

    why_none: str
    """Why there is no comparison."""

    notes: Mapping[str, tuple[str, ...]]
    """The notes below the table of each contender, as `compare` prints them."""

    steps: tuple[StepRuns, ...]
    setups: tuple[VersionSetup, ...]
    night_values: Mapping[str, Mapping[str, float]]
    """The values by step and branch as its night kept them, which stay when rounds are pruned."""

    night_gaps: tuple[tuple[str, str, str], ...]
    """Branch, step (empty for all) and reason of what its night lacks."""

    @property
    def metric(self) -> Metric:
        """The metric that its verdicts are about."""
        return METRICS[self.entry.judged_by]


def read_session(comparisons: Comparisons, catalog: Catalog, entry: SessionEntry) -> SessionPage:
    """Return what the pages of a session show."""
    history = comparisons.history
    with history.database.reading() as connection:
        session = session_of(connection, entry.id)
        found = runs_of(connection, entry.id, ()) if entry.runs else ()
        per_second = samples_of(connection, entry.id)
        beside = activities_of(connection, entry.id)
        setups = _setups(connection.execute(_setups_of(entry.id)).all()) if entry.runs else ()
        values, lacking = _night(connection, entry)
    comparison, why = _compared(comparisons, entry, found, session.round_name)
    steps = tuple(
        replace(
            step,
            activities={run_id: beside[run_id] for run_id in step.samples if run_id in beside},
            round_name=session.round_name,
        )
        for step in _steps(history, entry, found, per_second, catalog)
    )
    lines = {}
    if comparison is not None:
        lines = {
            str(contender.contender): tuple(basis(comparison, contender))
            for contender in comparison.contenders
        }
    return SessionPage(entry, session, comparison, why, lines, steps, setups, values, lacking)


def _compared(
    comparisons: Comparisons, entry: SessionEntry, found: Sequence[Run], round_name: str
) -> tuple[Comparison | None, str]:
    measured = dict.fromkeys(run.version for run in found)
    if not found:
        return (
            None,
            f"its {round_name}s were pruned"
            if entry.status is not SessionStatus.RUNNING
            else "nothing was measured yet",
        )
    ordered = [name for name in entry.versions if name in measured] or list(measured)
    if len(ordered) < 2:
        return None, f"it measured one version, {ordered[0]}"
    try:
        return comparisons.of_session(entry, [*map(stored_version, ordered)], MAX_CONTENDERS), ""
    except ComparisonError as error:
        return None, error.what


def _steps(
    history: Reader,
    entry: SessionEntry,
    found: Sequence[Run],
    per_second: Mapping[int, Sequence[float]],
    catalog: Catalog,
) -> tuple[StepRuns, ...]:
    by_step: defaultdict[tuple[int, str], dict[str, dict[int, Run]]] = defaultdict(dict)
    for run in found:
        by_step[run.step_position, run.step].setdefault(run.version, {})[run.repetition] = run
    dropped = history.dropped(entry.id) if found else ()
    steps = []
    for (position, step), versions in sorted(by_step.items()):
        own = [
            run.id for by_number in versions.values() for run in by_number.values() if run.id in per_second
        ]
        rounds = {
            version: history.profiles(entry.id, step, stored_version(version))
            for name, version in catalog.profiles.get(entry.id, ())
            if name == step
        }
        steps.append(
            StepRuns(
                step,
                position,
                versions,
                {run_id: per_second[run_id] for run_id in own},
                tuple(attempt for attempt in dropped if attempt.step == step),
                {version: merged(by_number.values()) for version, by_number in rounds.items()},
                _differentials(entry, rounds),
            )
        )
    return tuple(steps)


def _differentials(entry: SessionEntry, rounds: Mapping[str, Rounds]) -> Mapping[str, Differential]:
    """Return each contender's profile against its base's."""
    ordered = [name for name in entry.versions if name in rounds] or list(rounds)
    if not ordered or (entry.versions and ordered[0] != entry.versions[0]):
        return {}
    versions = [*map(stored_version, ordered)]
    return {
        contender: differential(rounds[str(base_of(version, versions))], rounds[contender])
        for contender, version in zip(ordered[1:], versions[1:], strict=True)
    }


def _setups_of(session_id: int) -> Any:
    return (
        select(runs.c.version, configurations.c.settings, builds.c.manifest, builds.c.source_digest)
        .join_from(runs, builds, runs.c.build_id == builds.c.id)
        .outerjoin(configurations, runs.c.configuration_id == configurations.c.id)
        .where(runs.c.session_id == session_id)
        .order_by(runs.c.position.desc())
    )


def _setups(rows: Sequence[Any]) -> tuple[VersionSetup, ...]:
    """Return one setup for each version, as of its last run with a configuration."""
    chosen: dict[str, VersionSetup] = {}
    for version, settings, manifest, source_digest in rows:
        if version in chosen and chosen[version].settings:
            continue
        kept = {name: str(value) for name, value in stored_object(settings).items()} if settings else {}
        build = dict(flattened(stored_object(manifest)))
        if commit := commit_in(source_digest):
            build["commit"] = commit
        chosen[version] = VersionSetup(version, kept, build)
    return tuple(chosen[version] for version in reversed(chosen))


def flattened(value: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """Return the entries of nested mappings, with dots between the keys; lists of texts are joined by spaces.

    The items of a list of mappings go by their names, such as the stages of a recipe, or by their numbers.
    """
    entries: list[tuple[str, str]] = []
    for name, inner in sorted(value.items()):
        if isinstance(inner, Mapping):
            entries += flattened(inner, f"{prefix}{name}.")
        elif isinstance(inner, list) and any(isinstance(item, Mapping) for item in inner):
            entries += flattened(_by_name(inner), f"{prefix}{name}.")
        elif isinstance(inner, list):
            entries.append((f"{prefix}{name}", " ".join(map(str, inner))))
        else:
            entries.append((f"{prefix}{name}", str(inner)))
    return entries


def _by_name(items: Sequence[Any]) -> dict[str, Any]:
    named = {}
    for number, item in enumerate(items, start=1):
        known = dict(item) if isinstance(item, Mapping) else {"": item}
        named[str(known.pop("name", number))] = known
    return named


def _night(
    connection: Any, entry: SessionEntry
) -> tuple[dict[str, dict[str, float]], tuple[tuple[str, str, str], ...]]:
    query = (
        select(series.c.step, series.c.branch, points.c.value)
        .join_from(points, series, points.c.series_id == series.c.id)
        .where(points.c.session_id == entry.id, series.c.metric == entry.judged_by)
        .order_by(series.c.step_position, series.c.step)
    )
    if entry.runs:  # its runs say more, and points are not indexed by session
        return {}, ()
    ids = _series_of(connection, entry)
    values: dict[str, dict[str, float]] = {}
    for step, branch, value in connection.execute(query.where(points.c.series_id.in_(ids))) if ids else ():
        values.setdefault(step, {})[branch] = value
    lacking = connection.execute(
        select(gaps.c.branch, gaps.c.step, gaps.c.reason).where(gaps.c.session_id == entry.id)
    ).all()
    return values, tuple((row.branch, row.step, row.reason) for row in lacking)


def _series_of(connection: Any, entry: SessionEntry) -> list[int]:
    """Return the ids of the series of a session's box and suite in the metric that it is judged by."""
    query = select(series.c.id).where(
        series.c.box == entry.box, series.c.suite == entry.suite, series.c.metric == entry.judged_by
    )
    return list(connection.execute(query).scalars())
