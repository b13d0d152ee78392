"""`./tidemark run`: measure versions with a suite, and store the session."""

import argparse
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from statistics import fmean

from build.addresses import redacted, without_secrets
from build.errors import TidemarkError, shell_line
from build.finished_build import Build
from build.home import Home, locate_for_writing
from build.progress import Progress
from build.provide import require_known
from build.sources.repository import variable
from build.sources.source import resolved
from build.version import Engine, Version
from history.comparison.compare import compare
from history.comparison.options import CompareOptions
from history.counts import counted
from history.numbers import amount
from history.rendering.next_step.closing import closing, command, decided_words, with_budget
from history.series.round_seconds import session_seconds
from history.spool.opening import open_recorded
from history.store.writer import Store
from runners.bisect.run.builds import provider
from runners.console import progress, say_problems
from runners.measuring.durations.expected import expected, recorded_of
from runners.measuring.layouts import require_layouts
from runners.measuring.request import PASSES, Exact, Request, Sampled, counted_once
from runners.measuring.session import SessionOutcome, run_session
from runners.measuring.variants import definition_of, require_defined, variants_of
from runners.occupancy.busy import note_if_busy
from runners.occupancy.waiting import machine_awaited
from runners.own_workload.suite_folder import suite_of
from runners.values import history_of
from suites.additions.registry import COMPANIONS
from suites.definition import load_suite
from suites.generators.registry import build_programs_of
from suites.keys.durability import Durability
from suites.keys.profile import Mode, Profile
from suites.metrics import INSTRUCTIONS, METRICS


class RequestError(TidemarkError):
    """The arguments of a command contradict each other, or cannot be carried out."""


def main(arguments: argparse.Namespace) -> int:
    """Carry out a session; return 0 when everything that was asked for was measured, else 2."""
    began = time.monotonic()
    request_of(arguments)  # what is refused, is before anything is fetched
    home = locate_for_writing()
    with progress() as shown:
        if not (arguments.exact_only or arguments.keep_disturbed):
            note_if_busy(home, shown, "count instructions (--exact-only), or accept it (--keep-disturbed)")
        arguments.versions = [resolved(version, home, shown, arguments.git) for version in arguments.versions]
        for version in arguments.versions:
            require_known(version, home, arguments.git)
    request = request_of(arguments)
    history = history_of(arguments.history, home)
    with (
        progress() as shown,
        machine_awaited(home, arguments.wait * 60, shown) as waited,
        open_recorded(history, home, shown.note) as store,
    ):
        given: dict[Version, Build] = {}
        slim = build_programs_of(request.suite) if request.has_deadline else None
        alone = request.exact in (Exact.FIRST, Exact.ONLY)
        record = recorded_of(request, home, store, slim=slim)
        shown.note(expected(request, record, counts=alone, rounds=request.exact is not Exact.ONLY))
        if request.has_deadline:
            given = slim_builds(request, home, shown)
            spent = time.monotonic() - began - waited
            request = replace(request, budget_seconds=max(0.0, request.limit_seconds - spent))
        outcome = run_session(request, home, store, shown, given)
        figures = own_figures(store, request, outcome) if arguments.alone else ()
        last = last_lines(store, request, outcome, arguments)
        say_problems(store)
    print(summary(request, outcome))
    if arguments.script:
        name = request.suite.name
        print(f"suite: {name}; to keep it: {shell_line('./tidemark', 'suite', 'save', name)} NAME")
    print(*figures, sep="\n", end="\n" if figures else "")
    print(f"history: {without_secrets(str(history))}")
    print(*last, sep="\n", end="\n" if last else "")
    return 0 if outcome.whole else 2


def slim_builds(request: Request, home: Home, shown: Progress) -> dict[Version, Build]:
    """Return builds of the versions, slim ones where they have to be compiled, which takes less of a budget.

    One that is not to be had is left to the session, which says why. So are all where any has an extension,
    which needs a whole one.
    """
    found: dict[Version, Build] = {}
    if any(definition_of(version, request.variants).extensions for version in request.versions):
        return found
    for version in request.versions:
        variant = definition_of(version, request.variants)
        programs = build_programs_of(request.suite)
        for companion in variant.companions:
            programs = (*programs, *COMPANIONS[companion].build_programs)
        provided = provider(home, shown, programs, variant, relinks=bool(request.layouts))
        with suppress(TidemarkError):
            build = provided(version.plain, request.git.get(version.engine))
            found[version] = replace(build, version=version)
    return found


def request_of(arguments: argparse.Namespace) -> Request:
    """Return the request of a command line. Raises SuiteError, LayoutError or RequestError."""
    suite = load_suite(suite_of(arguments, {version.engine for version in arguments.versions}))
    suite = suite.with_declared(arguments.memory, arguments.disk)
    profile = suite.profile(arguments.profile)
    versions = tuple(dict.fromkeys(arguments.versions))
    variants = variants_of(arguments)
    require_defined(versions, variants)
    decides = _decides(arguments, profile)
    exact = _exact(arguments, profile, decides=decides)
    steps = suite.select(tuple(arguments.step), arguments.profile, arguments.clients)
    request = Request(
        versions=versions,
        suite=suite,
        profile_name=arguments.profile,
        steps=counted_once(steps) if exact is Exact.ONLY else steps,
        repetitions=arguments.repetitions or _repetitions(profile, exact, arguments.layouts),
        blocks=arguments.repetitions,
        until_decided=decides,
        budget_seconds=None if arguments.budget is None else arguments.budget * 60,
        has_deadline=decides and arguments.budget is not None,
        mode=None if arguments.mode is None else Mode(arguments.mode),
        keep_disturbed=arguments.keep_disturbed,
        perf=_sampled(arguments),
        resume=arguments.resume,
        explains_resume=arguments.resume,
        resumed_by="" if arguments.resume else resuming_command(arguments.words),
        variants=variants,
        git=sources_of(versions, arguments.git),
        durability=Durability(arguments.durability),
        seconds=arguments.seconds,
        exact=exact,
        layouts=arguments.layouts,
    )
    require_layouts(request)
    _require_consistent(request)
    _require_base(request, is_alone=arguments.alone)
    return request


def sources_of(versions: Sequence[Version], git: str | None) -> dict[Engine, str]:
    """Return the git source by engine that `--git` names. Raises RequestError for commits of two engines."""
    engines = {version.engine for version in versions if not (version.is_release or version.is_install)}
    if git is not None and len(engines) > 1:
        raise RequestError(
            "--git names one repository, and branches or commits of two engines are asked for",
            where=", ".join(map(str, versions)),
            hint=f"name each engine's repository: {' and '.join(sorted(map(variable, engines)))}",
        )
    return {} if git is None else {version.engine: git for version in versions}


def resuming_command(words: Sequence[str]) -> str:
    """Return the command line that resumes the session of `words`, without the passwords of addresses."""
    return shell_line("./tidemark", *map(redacted, words), "--resume") if words else ""


def _require_consistent(request: Request) -> None:
    """Raise RequestError for options that exclude each other."""
    if request.exact is Exact.ONLY and (request.until_decided or request.perf is not None):
        raise RequestError(
            "counted passes have neither verdicts to wait for nor samples",
            where="--exact-only",
            hint="omit --until-decided and --perf",
        )
    if request.exact is Exact.ONLY and request.profile.mode is Mode.LONG:
        raise RequestError(
            "a counted pass starts from the loaded data, which long mode does not keep",
            where="--exact-only",
            hint="add --mode rounds, or use --profile smoke or short",
        )


def _require_base(request: Request, *, is_alone: bool) -> None:
    """Raise RequestError unless versions can be compared, or a single one is meant to be measured alone.

    Whoever names one version would wait for a verdict in vain, or wants its own figures, and can say so.
    """
    first, *others = request.versions
    if is_alone and others:
        raise RequestError("--alone is for one version", where="--alone", hint="omit it to compare several")
    if is_alone and request.until_decided:
        raise RequestError(
            "a version alone has no verdict to wait for", where="--alone", hint="omit --until-decided"
        )
    if not (others or is_alone):
        name = shell_line(first)
        raise RequestError(
            f"{first} has no base to be compared with, so that no step would get a verdict",
            where="run",
            hint=f"name the base first: ./tidemark run BASE {name}; or add --alone, to measure the version "
            f"for its own figures; ./tidemark calibrate {name} measures it against itself",
        )


def _exact(arguments: argparse.Namespace, profile: Profile, *, decides: bool) -> Exact:
    if arguments.exact_only:
        return Exact.ONLY
    if arguments.no_exact or Mode(arguments.mode or profile.mode) is Mode.LONG:
        return Exact.NO
    return Exact.FIRST if decides and arguments.budget is not None else Exact.BESIDE


def _decides(arguments: argparse.Namespace, profile: Profile) -> bool:
    """Return whether rounds go on until verdicts stand, which a budget is for."""
    has_rounds = not (arguments.exact_only or arguments.alone)
    return arguments.until_decided or (has_rounds and (arguments.budget is not None or profile.until_decided))


def _repetitions(profile: Profile, exact: Exact, layouts: int) -> int:
    return PASSES if exact is Exact.ONLY else max(profile.repetitions, layouts)


def _sampled(arguments: argparse.Namespace) -> Sampled | None:
    if arguments.perf_during:
        return Sampled.DURING
    return Sampled.AFTER if arguments.perf else None


def own_figures(store: Store, request: Request, outcome: SessionOutcome) -> Sequence[str]:
    """Return a line for each step with the mean of what it measures in the finished rounds of a session."""
    held = store.holder(outcome.uid)
    metric = METRICS[INSTRUCTIONS if request.exact is Exact.ONLY else request.suite.primary]
    session = held.latest_session((), uid=outcome.uid)
    values: dict[str, list[float]] = {}
    what = request.round_name
    for run in held.runs(session.id) if session is not None else ():
        if metric.name in run.values:
            values.setdefault(run.step, []).append(run.values[metric.name])
    return [
        f"{step}: {amount(fmean(rounds))} {metric.unit}, the mean of {counted(len(rounds), what)}"
        for step, rounds in values.items()
    ]


def summary(request: Request, outcome: SessionOutcome) -> str:
    """Render the result of a session."""
    described = [request.suite.name, request.profile_name, str(request.profile.declared)]
    lines = [f"session {outcome.uid}: {', '.join(filter(None, described))}"]
    lines += [f"not measured: {version}: {reason}" for version, reason in outcome.not_built.items()]
    lines += [f"failed: {failure}" for failure in outcome.failures]
    return "\n".join(lines)


def last_lines(
    store: Store, request: Request, outcome: SessionOutcome, arguments: argparse.Namespace
) -> list[str]:
    """Return the command that shows the table and, while steps are open, what they still need."""
    base, *others = request.versions
    if not (others and outcome.uid):
        return []
    given = {"--history": arguments.history and without_secrets(arguments.history), "--git": arguments.git}
    chosen = [word for option, value in given.items() if value for word in (option, redacted(value))]
    words = ["./compare.py", *map(str, request.versions), "--session", outcome.uid, *chosen]
    shown = f"next: {command(words)}"
    held = store.holder(outcome.uid)
    metric = INSTRUCTIONS if request.exact is Exact.ONLY else request.suite.primary
    try:
        comparison = compare(held, base, others, CompareOptions(session=outcome.uid, metric=metric))
    except TidemarkError:
        return [shown]  # what could not be measured is said above
    undecided = [
        contender for contender in comparison.contenders if any(step.is_open for step in contender.steps)
    ]
    if not undecided:
        least = max(
            comparison.contenders, key=lambda contender: sum(bool(s.unknown) for s in contender.steps)
        )
        return [f"{decided_words(least)}; {shown}"]
    session = undecided[0].session
    with held.database.reading() as connection:
        took = session_seconds(connection, session.id, session.options)

    def again(minutes: int) -> str:
        words = [redacted(word) for word in arguments.words if word != "--resume"]
        return shell_line("./tidemark", *with_budget([*words, "--resume"], minutes))

    seconds = took.counted if request.exact is Exact.ONLY else took.timed
    goes_on = again if arguments.words and not outcome.had_time else None
    return [shown, closing(undecided[0], seconds, chosen, goes_on)]
