"""Whether versions did the same work: their rows after the same transactions and a crash are compared.

One client runs fixed transactions, so that servers of one engine must hold the same rows afterwards. A
version that holds others is only accused when the base holds the same ones after doing it again, and when
both were loaded with the same rows: a workload may draw random numbers in SQL. A version whose server or
load fails where the base's does not has failed in the step, as in a round.

What servers wrote into their logs for the work is recorded as well. Where that differs, the second round has
the work again.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from statistics import mean

from build.errors import TidemarkError
from history.comparison.exact import exact_rule
from history.comparison.verdict import needs_more_passes
from history.store.resume import Recorded
from runners.measuring.passes.base_work import BaseWork
from runners.measuring.request import Exact, Request
from runners.measuring.session_versions import MeasuredVersion
from suites.checking.queries import Digests, digests
from suites.counting.fixed_work import Recovered, WorkTerms, proof_values, work, work_and_crash
from suites.generators.load import Generator
from suites.generators.registry import GENERATORS
from suites.keys.durability import Durability
from suites.keys.profile import Mode
from suites.keys.step import Step
from suites.measurement import Measurement
from suites.metrics import FIXED_WORK, LOG_SYNCS, METRICS
from suites.server import Server, ServerError
from suites.sizing import Sizes, fit_together, max_transactions, this_machine

MIN_SYNCS = 0.9
"""Flushes of the log per commit below which commits are not durable: one client needs one for each."""

LARGEST_DATA = 1_000_000_000
"""Bytes of loaded data from which on rows are not read again, which would take longer than a round."""


@dataclass
class WorkDone:
    """What versions held after the same transactions and a crash, by their names."""

    refuted: dict[str, str] = field(default_factory=dict)
    """What a contender did not do that the base did, in words."""
    recovered: dict[str, Recovered] = field(default_factory=dict)
    """What each version held."""
    same: set[str] = field(default_factory=set)
    """The versions with the same rows: the base, which is among them, and others."""


@dataclass
class WorkProofs:
    """Compares what the versions of a session hold after the same work, once for each step."""

    request: Request
    base: str
    """The version that all others are compared with."""
    sizes: Sizes
    generator: Generator
    earlier: BaseWork = field(default_factory=BaseWork)
    """What the base need not do again; what it does in this session is added."""
    refuted: dict[tuple[str, str], str] = field(default_factory=dict)
    """By version and step: what it did not do that the base did."""

    _transactions: dict[tuple[str, str], int] = field(default_factory=dict)
    """By step and part of the work, as the first version that asked could afford."""
    _values: defaultdict[tuple[str, str], dict[int, Mapping[str, float]]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    """What was recorded so far, by version and step, then by round."""
    _loaded: dict[str, Digests] = field(default_factory=dict)
    _bytes: dict[str, int] = field(default_factory=dict)

    def add_to(
        self,
        number: int,
        step: Step,
        versions: Sequence[MeasuredVersion],
        measurements: Sequence[Measurement],
    ) -> list[Measurement]:
        """Return the measurements of a round with what was found; a version that is refuted has no values.

        Only the first round of a step has a comparison, and none where an earlier session has it. Where
        versions wrote unlike amounts, the next one does the work again. Both end servers that are still up.
        """
        is_due = number == 1 or self._need_more(step, versions)
        is_due = is_due and step.plain_name not in self.request.proved_steps
        if step.reads_only or not is_due or not self._are_comparable(versions):
            return list(measurements)
        try:
            if number > 1:
                found = self._of_all(number, step, versions, self._again)
                work = WorkDone({}, dict(zip((version.name for version in versions), found, strict=True)))
            else:
                work = self._compare(step, versions)
        except TidemarkError as error:
            note = f"not known whether all versions do the same work: {error}"
            return [
                replace(measurement, warnings=[*measurement.warnings, note]) for measurement in measurements
            ]
        self.refuted |= {(name, step.name): reason for name, reason in work.refuted.items()}
        for name, recovered in work.recovered.items():
            self.note(name, step.name, number, recovered.done.values)
        return [
            _with(work, version.name, measurement)
            for version, measurement in zip(versions, measurements, strict=True)
        ]

    def note(self, version: str, step: str, number: int, values: Mapping[str, float]) -> None:
        """Take in what a round recorded of a version: it decides whether the next one does the work again."""
        self._values[version, step][number] = {name: values[name] for name in FIXED_WORK if name in values}

    def _need_more(self, step: Step, versions: Sequence[MeasuredVersion]) -> bool:
        """Whether doing the work again may decide whether versions write as much as the base."""
        base = next((version for version in versions if version.name == self.base), None)
        return base is not None and any(
            self._pair_needs_more(step, metric, base, version)
            for version in versions
            for metric in FIXED_WORK
            if version is not base and METRICS[metric].is_counted
        )

    def _pair_needs_more(
        self, step: Step, metric: str, base: MeasuredVersion, contender: MeasuredVersion
    ) -> bool:
        old, new = (
            {
                number: values[metric]
                for number, values in self._values[version.name, step.name].items()
                if metric in values
            }
            for version in (base, contender)
        )
        rounds = sorted(old.keys() & new.keys())
        rule = exact_rule(metric, {version.build.version.engine for version in (base, contender)})
        pairs = [old[number] for number in rounds], [new[number] for number in rounds]
        threshold = METRICS[metric].threshold(timed=0.0)
        if pairs[0]:
            threshold = METRICS[metric].threshold_at(mean(pairs[0]), threshold)
        return needs_more_passes(*pairs, rule, threshold)

    def _are_comparable(self, versions: Sequence[MeasuredVersion]) -> bool:
        """Whether one client can do fixed work on fresh, small data of several versions.

        A bisect leaves it out, as it compares builds of almost the same source, and so do companions and
        layouts, which are of no concern to rows.
        """
        request = self.request
        is_plain = not (request.has_companions or request.layouts or request.bisect)
        is_plain = is_plain and request.exact is not Exact.DRIVEN and request.profile.mode is Mode.ROUNDS
        can_count = GENERATORS[request.suite.generator].counts
        return is_plain and can_count and len(versions) > 1 and all(map(self._is_small, versions))

    def _compare(self, step: Step, versions: Sequence[MeasuredVersion]) -> WorkDone:
        """Let versions do the same work, and compare those of the base's engine with it.

        Raises TidemarkError if it is not known, as the base did not do it.
        """
        recovered = self._of_all(1, step, versions, self._after_work)
        found = dict(zip((version.name for version in versions), recovered, strict=True))
        work = WorkDone(recovered=found)
        base = next((version for version in versions if version.name == self.base), None)
        if base is None:
            return work
        held = found[self.base].digests
        if held is None:
            raise ServerError(f"{self.base}: {found[self.base].problem}")
        for version in versions:
            rows = found[version.name].digests
            if rows is None:
                work.refuted[version.name] = found[version.name].problem
            elif version is base or version.build.version.engine is not base.build.version.engine:
                continue
            elif _is_flushed(found[self.base]) and not _is_flushed(found[version.name]):
                work.refuted[version.name] = f"{_unflushed(found[version.name])}, {self.base} flushes them"
            elif not (apart := rows.differs_from(held)):
                work.same |= {version.name, self.base}
            elif self._is_steady(step, base, held) and self._were_loaded_alike(version, base):
                work.refuted[version.name] = f"after the same transactions as {self.base}, {'; '.join(apart)}"
        return work

    def _of_all(
        self,
        number: int,
        step: Step,
        versions: Sequence[MeasuredVersion],
        work: Callable[[Step, MeasuredVersion], Recovered],
    ) -> list[Recovered]:
        """Let versions work, as many at once as there are cores and memory: nothing is timed."""

        def found(version: MeasuredVersion) -> Recovered:
            return self._known(number, step, version) or self._kept(
                number, step, version, work(step, version)
            )

        machine = this_machine()
        at_once = min(machine.cores, len(versions))
        with ThreadPoolExecutor(at_once if fit_together(at_once, self.sizes, machine) else 1) as pool:
            try:
                return list(pool.map(found, versions))
            except BaseException:
                # A thread ends only when its load generator does, and that ends when its server is gone.
                for version in versions:
                    version.server.abandon()
                raise

    def _known(self, number: int, step: Step, version: MeasuredVersion) -> Recovered | None:
        """Return what an earlier session found of the base after as many transactions."""
        known = self.earlier.find_work(version.build, step, number) if version.name == self.base else None
        if known is None:
            return None
        recovered, transactions = known
        agreed = [
            self._transactions.setdefault((step.name, part), count) == count
            for part, count in transactions.items()
        ]
        return recovered if all(agreed) else None

    def _kept(self, number: int, step: Step, version: MeasuredVersion, found: Recovered) -> Recovered:
        if version.name == self.base and not found.problem:
            parts = {part: count for (name, part), count in self._transactions.items() if name == step.name}
            self.earlier.keep_work(version.build, step, number, found, parts)
        return found

    def _after_work(self, step: Step, version: MeasuredVersion) -> Recovered:
        return work_and_crash(version.server, self.generator, step, self._terms(step, version))

    def _again(self, step: Step, version: MeasuredVersion) -> Recovered:
        try:
            done = work(version.server, self.generator, step, self._terms(step, version))
        finally:
            version.server.abandon()
        return Recovered(None, None, done=done)

    def _terms(self, step: Step, version: MeasuredVersion) -> WorkTerms:
        """Return the terms of the work. Relaxed durability has one step in which flushes are counted."""

        def agree(part: str, affordable: int) -> int:
            # The first one to ask decides for all: setdefault is atomic.
            return self._transactions.setdefault((step.name, part), affordable)

        durability = self.request.durability
        steps = [
            known
            for (name, known), values in self._values.items()
            if name == version.name and any(LOG_SYNCS in found for found in values.values())
        ]
        is_counted = durability is Durability.FULL or all(known == step.name for known in steps)
        return WorkTerms(durability, agree, max_transactions(step, self.sizes), is_counted)

    def _is_steady(self, step: Step, base: MeasuredVersion, held: Digests) -> bool:
        """Whether the base holds the same rows when it does the work again."""
        again = self._after_work(step, base).digests
        return again is not None and not again.differs_from(held)

    def _were_loaded_alike(self, version: MeasuredVersion, base: MeasuredVersion) -> bool:
        return not self._loaded_with(version).differs_from(self._loaded_with(base))

    def _loaded_with(self, version: MeasuredVersion) -> Digests:
        if version.name not in self._loaded:
            self._loaded[version.name] = loaded_rows(version.server)
        return self._loaded[version.name]

    def _is_small(self, version: MeasuredVersion) -> bool:
        """Whether the rows of all tables can be read within seconds."""
        if version.name not in self._bytes:
            files = (path for path in version.server.loaded.rglob("*") if path.is_file())
            self._bytes[version.name] = sum(path.stat().st_size for path in files)
        return self._bytes[version.name] <= LARGEST_DATA


def session_proofs(
    request: Request,
    base: str,
    sizes: Sizes,
    generator: Generator,
    recorded: Recorded,
    earlier: BaseWork | None = None,
) -> WorkProofs:
    """Return what compares the work of a session, with what it had `recorded` before it was interrupted.

    `base` is the version that all others are compared with; what it did `earlier` is not done again.
    """
    proofs = WorkProofs(request, base, sizes, generator, earlier or BaseWork())
    for (step, number), runs in recorded.items():
        for version, run in runs.items():
            proofs.note(version, step, number, run.values)
    return proofs


def loaded_rows(server: Server) -> Digests:
    """Return what a server was loaded with; it is down before and after. Raises TidemarkError."""
    server.restore(is_timed=False)
    try:
        server.start()
        return digests(server.address)
    finally:
        server.abandon()


def _with(work: WorkDone, name: str, measurement: Measurement) -> Measurement:
    if name in work.refuted:
        return Measurement({}, (), [work.refuted[name]])
    recovered = work.recovered[name]
    found = proof_values(recovered, are_same=name in work.same)
    notes = [note for note in recovered.done.notes if note not in measurement.warnings]
    warnings = [*measurement.warnings, *notes]
    warnings += [] if _is_flushed(recovered) else [_unflushed(recovered)]
    return replace(measurement, values={**measurement.values, **found}, warnings=warnings)


def _is_flushed(recovered: Recovered) -> bool:
    """Whether commits with full durability are flushed, as far as it was counted."""
    return recovered.done.values.get(LOG_SYNCS, MIN_SYNCS) >= MIN_SYNCS


def _unflushed(recovered: Recovered) -> str:
    syncs = recovered.done.values[LOG_SYNCS]
    return f"commits are not flushed: {syncs:.2f} flushes of the log per commit with full durability"
