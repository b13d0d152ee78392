"""Running one step on servers that take turns: the load, its costs, and the reset afterwards."""

import contextlib
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

from suites.accounting.counters import instructions_of
from suites.accounting.sampling import ServerSampler
from suites.checking.data_checks import DataChecks
from suites.generators.load import Generator, LoadError, OverLimitError, Share
from suites.keys.step import Step
from suites.measurement import Measurement
from suites.profiling.profiler import ObserverPair, Profiled, Profiling, profile_after, profilers
from suites.server import Server
from suites.turns.failures import CensoredError, blame
from suites.turns.turn import Turn

EndsStep = Callable[[Sequence[Measurement]], bool]
"""Says of the measurements of a round, one for each server and before its reset, whether it ends a step."""


def run_slices(
    servers: Sequence[Server],
    generator: Generator,
    step: Step,
    share: Share,
    settle_seconds: float,
    *,
    resets: bool = True,
    ends: EndsStep | None = None,
    profiling: Profiling | None = None,
    checks: DataChecks | None = None,
    committed: Sequence[Counter[str]] = (),
    waits: bool = True,
) -> list[Measurement]:
    """Run the load of `step` on servers that take turns, profile it, then reset one server after the other.

    `profiling` says how profiles are taken, or is None. With `resets=False` no server is reset or checked.
    Where `ends` says that a round does not end the step, no server is reset, checked or left to settle.
    `committed` has, for each server, the transactions by kind since its data were loaded; those of the step
    are added. `waits` says whether it is sampled what the clients wait for. Return one measurement per
    server. Raises ServerDiedError if a server or its load generator failed, or if its data are not as
    `checks` say, and CensoredError if a query was over its limit.
    """
    turns = [
        Turn(place, server, step, committed[place] if committed else None)
        for place, server in enumerate(servers)
    ]
    with contextlib.ExitStack() as beside, instructions_of([server.pid for server in servers]) as counters:
        for turn in turns:
            turn.hold_transaction(beside)
        # Its connections are closed before the debt is read, which waits until all clients have disconnected.
        with contextlib.ExitStack() as meanwhile:
            schedule = share.schedule
            totals = [
                turn.watch(counter, schedule, meanwhile)
                for turn, counter in zip(turns, counters, strict=True)
            ]
            clients = [turn.watch_waits(meanwhile).question for turn in turns if waits]
            beside_queries = [turn.watch_activities(schedule, meanwhile) for turn in turns]
            # Threads of their own, as one that waits for an answer asks nothing else.
            samplers = [ServerSampler(asked, schedule) for asked in (totals, clients, beside_queries)]
            for sampler in samplers:
                meanwhile.enter_context(sampler)
            _load(turns, generator, step, _told(share, samplers), profiling)
        # All are read before any reset, because work during the reset of another server is no query's, and
        # before a held transaction ends, after which what it held back is removed.
        for turn in turns:
            turn.end(may_reset=resets)
    if profiling is not None and not profiling.during:
        _profile_after(turns, generator, step, share, profiling)
    for turn in turns:
        turn.count_committed()
    if ends is None or ends([turn.measurement() for turn in turns]):
        if resets:
            _reset_and_check(turns, share.round, checks)
        time.sleep(settle_seconds)
    return [turn.measurement() for turn in turns]


def _told(share: Share, samplers: Sequence[ServerSampler]) -> Share:
    """Return the share, of which the samplers are told whose slice it is."""

    def begins(moment: float) -> None:
        for sampler in samplers:
            sampler.slices_begin(moment)

    def works(place: int) -> None:
        for sampler in samplers:
            sampler.slice_of(place)

    return replace(share, begins=begins, works=works)


def _load(
    turns: Sequence[Turn], generator: Generator, step: Step, share: Share, profiling: Profiling | None
) -> None:
    """Run the measured slices; the turns get their loads, and their profiles if `profiling.during`."""
    servers = [turn.server for turn in turns]
    addresses, watchers = [server.address for server in servers], [turn.observer for turn in turns]
    try:
        if profiling is None or not profiling.during:
            loads = generator.alternate(addresses, step, share, watchers)
            profiles = [Profiled()] * len(turns)
        else:
            with profilers(servers, profiling, share.schedule.seconds) as watching:
                observers = [*map(ObserverPair, watchers, watching)]
                loads = generator.alternate(addresses, step, share, observers)
                profiles = [profiler.result(load) for profiler, load in zip(watching, loads, strict=True)]
    except OverLimitError as error:
        raise CensoredError(str(error), error.limit, error.seconds) from error
    except LoadError as error:
        raise blame(servers, step, error) from error
    for turn, load, profile in zip(turns, loads, profiles, strict=True):
        turn.load, turn.profiled = load, profile


def _profile_after(
    turns: Sequence[Turn], generator: Generator, step: Step, share: Share, profiling: Profiling
) -> None:
    """Profile further slices. If their load fails, only the profiles are lost, not the measurement."""
    servers = [turn.server for turn in turns]
    try:
        profiles = profile_after(servers, generator, step, share, profiling)
    except LoadError as error:
        blamed = blame(servers, step, error)
        if any(server.death() is not None for server in servers):
            raise blamed from error
        profiles = [Profiled(None, f"no profile: {error}")] * len(servers)
    for turn, profile in zip(turns, profiles, strict=True):
        turn.profiled = profile


def _reset_and_check(turns: Sequence[Turn], round_: int, checks: DataChecks | None) -> None:
    """Reset one server after the other, then ask the checks of their data.

    The order is reversed in every other round, because servers that wait already clean up in the background:
    otherwise, the last one would always have the least work left.
    """
    for turn in turns if round_ % 2 else reversed(turns):
        turn.reset()
    if checks is not None:
        for turn in turns:
            turn.check(checks)
