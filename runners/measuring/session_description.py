"""What the history stores about a session when it starts: the request, the tools, the machine."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace

from build import environment, host
from build.addresses import redacted
from build.errors import shell_line
from build.version import Version
from history.comparison.beside.curves import LEVELS
from history.comparison.beside.domain import RECLAIM
from history.series.variants import VARIANTS
from history.store.records import (
    CLIENTS,
    CONFIRMS,
    EXACT,
    HELD,
    LEFT_OUT,
    LIMIT_SECONDS,
    PRIMARY_METRIC,
    RESTARTS,
    RUNNABLE,
    STANDS_AT,
    TRY,
    Machine,
    SessionStart,
    VersionFailure,
)
from history.timestamps import to_text
from runners.fitness.kernel import Kernel
from runners.measuring.declared_limits import reclaiming_data
from runners.measuring.layouts import layout_options
from runners.measuring.request import Request
from runners.measuring.variants import recorded
from runners.own_version import own_version
from suites.counting.tool import Callgrind
from suites.generators.placement import placement
from suites.metrics import PRIMARY
from suites.profiling.profiler import Profiling
from suites.sizing import Sizes


def describe_session(
    request: Request,
    uid: str,
    sizes: Sizes,
    generator: str,
    not_built: Mapping[Version, VersionFailure],
    machine: Machine,
    profiling: Profiling | None,
    callgrind: Callgrind | None,
) -> SessionStart:
    """Return the description of a session; `generator` is the version of the load generator."""
    return SessionStart(
        uid=uid,
        machine=machine,
        suite=request.suite.name,
        profile=request.profile_name,
        suite_digest=request.suite.work_digests(request.profile_name, request.steps),
        seed=request.suite.seed,
        durability=request.durability,
        repetitions=request.least_rounds,
        command=shown_command(),
        tools={
            "generator": generator,
            "tidemark": own_version(),
            "python": sys.version.split()[0],
        },
        options=_options(request, uid, sizes, not_built, profiling) | _counting(request, callgrind),
    )


def shown_command() -> str:
    """Return the command line of this process as a history may keep it: without passwords and tokens."""
    return shell_line(*map(redacted, sys.argv))


def with_machine_changes(start: SessionStart, changed: Sequence[str]) -> SessionStart:
    """Return the description with what has changed on the machine: series do not continue across a change."""
    return replace(start, options={**start.options, "machine_changed": list(changed)}) if changed else start


def _options(
    request: Request,
    uid: str,
    sizes: Sizes,
    not_built: Mapping[Version, VersionFailure],
    profiling: Profiling | None,
) -> dict[str, object]:
    stands_at = request.stands_at
    return {
        "versions": [str(version) for version in request.versions],
        "branches": dict(request.branches),
        "mode": request.profile.mode,
        "seconds": request.profile.seconds,
        "slice_seconds": request.profile.slice_seconds,
        "rounds": {
            "least": request.least_rounds,
            "cap": request.most_rounds,
            "until_decided": request.until_decided,
        },
        **request.profile.declared.options,
        "bound_to": sizes.bound_to,
        "threads": sizes.threads,
        **_clients(request, sizes),
        **sizes.data.facts,
        **reclaim_options(request, sizes, Kernel()),
        RUNNABLE: host.runnable(),
        "settings": dict(request.every.settings),
        **_variants(request),
        **_of_suite(request),
        **({} if request.prepares else {"prepares": False}),
        **_levels(request, sizes),
        "groups": {step.name: step.group for step in request.steps if step.group},
        **_rates(request),
        LEFT_OUT: environment.left_out(environment.MEASURED),
        "not_built": {str(version): str(why) for version, why in not_built.items()},
        **({LIMIT_SECONDS: limit} if (limit := request.profile.limit_seconds) is not None else {}),
        **({"bisect": request.bisect} if request.bisect else {}),
        **({TRY: True} if request.is_try else {}),
        **layout_options(request, uid),
        **({STANDS_AT: {name: to_text(at) for name, at in stands_at.items()}} if stands_at else {}),
        **({CONFIRMS: request.confirms.option()} if request.confirms else {}),
        **({"perf": {"event": profiling.perf.description, "when": request.perf}} if profiling else {}),
    }


def reclaim_options(request: Request, sizes: Sizes, kernel: Kernel) -> dict[str, object]:
    """Return what drops data from the page cache early; nothing where it makes no difference."""
    found = reclaiming_data(request, sizes, kernel)
    return {RECLAIM: "; ".join(found.values())} if found else {}


def _rates(request: Request) -> dict[str, object]:
    """Return the transactions/s that arrive in each step with a rate; nothing without such a step."""
    rates = {step.name: step.rate for step in request.steps if step.rate is not None}
    return {"rates": rates} if rates else {}


def _of_suite(request: Request) -> dict[str, object]:
    """Return the options that the suite decides for its servers; a suite that decides nothing has none."""
    engines = {version.engine for version in request.versions}
    server = {str(engine): dict(own) for engine, own in request.suite.server.items() if engine in engines}
    isolation, primary = request.suite.isolation, request.suite.primary
    layers = {**request.suite.layers, **request.every.layers}
    return {
        **({"layers": layers} if layers else {}),
        **({"isolation": isolation} if isolation else {}),
        **({"server": server} if server else {}),
        **({PRIMARY_METRIC: primary} if primary != PRIMARY else {}),
        **({RESTARTS: True} if request.suite.restarts else {}),
    }


def _clients(request: Request, sizes: Sizes) -> dict[str, object]:
    """Return the clients that work at once in each step; nothing where a step holds connections instead."""
    suite = request.suite
    if suite.holds_connections:
        return {}
    return {CLIENTS: {step.name: suite.clients_of(step) or sizes.clients_of(step) for step in request.steps}}


def _levels(request: Request, sizes: Sizes) -> dict[str, object]:
    """Return the options with the levels of clients: the cores of each level that is a step of its own."""
    levels: dict[str, object] = {}
    for step in request.steps:
        if step.level is not None:
            cores = placement(step, sizes)
            sides = {"server": cores.server, "client": cores.client}
            levels[step.name] = {"step": step.plain_name, "clients": step.level, **sides}
    held = {step.name: step.clients for step in request.steps if step.clients and step.level is None}
    return {**({LEVELS: levels} if levels else {}), **({HELD: held} if held else {})}


def _variants(request: Request) -> dict[str, object]:
    """Return the options that say what versions got; a session of plain versions has none."""
    names = (version.variant for version in request.versions)
    defined = recorded(request.variants, names)
    # Settings of every version are an option of their own in every history.
    every = {key: value for key, value in request.every.to_json().items() if key != "settings"}
    return {**({VARIANTS: defined} if defined else {}), **every}


def _counting(request: Request, callgrind: Callgrind | None) -> dict[str, object]:
    """Return the option of a session with counted passes; without them it has none."""
    if callgrind is None:
        return {}
    return {EXACT: {"tool": callgrind.version, "passes": request.passes, "when": request.exact}}
