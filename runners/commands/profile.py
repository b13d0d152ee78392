"""`./tidemark profile`: the CPU profile of a step, in tables and flame graphs."""

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from build.errors import shell_line
from build.files import make_folder
from build.home import locate_for_writing
from build.sources.source import as_recorded
from build.version import Version
from history.comparison.beside.remedies import remedy
from history.comparison.profile_diff import Differential, Rounds, costs, differential, total
from history.errors import ComparisonError
from history.escaping.json_strings import json_text
from history.open import existing_history, open_reader
from history.rendering.commands import COUNTED, SAMPLED, run_again
from history.rendering.next_step.closing import command, for_recording, located
from history.rendering.plain_table import standard_output
from history.rendering.profiles import (
    conclusion,
    differential_json,
    folded,
    render_costs,
    render_differential,
)
from history.stats.sample_counts import MIN_ROUNDS
from history.store.reader import Reader
from history.store.records import Session
from history.store.session_lookup import SessionFilter, resolve_name
from report.addresses import file_name
from report.charts.flame_graph import difference_graph, flame_graph
from suites.profiling.stacks import StepProfile, merged, of_role

FLAME_GRAPHS = "flamegraphs"
"""The folder in the output folder with flame graphs (SVG), in a folder for each session."""

LONGEST_NAME = 60
"""Characters of a step or version in the name of a file, which has at most 255 bytes."""


def main(arguments: argparse.Namespace) -> int:
    """Show the profile of one version, or the difference of two; return 0."""
    home = locate_for_writing()
    asked = [arguments.version] if arguments.what == "show" else [arguments.base, arguments.contender]
    named = [as_recorded(version, home, arguments.git) for version in asked]
    with open_reader(existing_history(arguments.history)) as store:
        session, versions = _session(store, named, arguments)
        read = _source(store, session, versions, arguments)
        rounds = [_rounds(read, store, session, version, arguments) for version in versions]
    folder = Path(arguments.output) if arguments.output else home.path / FLAME_GRAPHS / file_name(session.uid)
    if arguments.what == "show":
        _show(arguments, versions[0], merged(rounds[0].values()), folder)
    else:
        _diff(arguments, session, versions, differential(*rounds), folder)
    return 0


def _show(arguments: argparse.Namespace, version: Version, profile: StepProfile, folder: Path) -> None:
    if arguments.format == "json":
        largest = sorted(costs(profile).items(), key=lambda item: -item[1].own)[: arguments.limit]
        functions = [{"function": name, **vars(cost)} for name, cost in largest]
        summary = {"us_per_query": total(profile), "quality": vars(profile.quality)}
        graph, stacks = _written(version, profile, arguments, folder)
        files = {"flame_graphs": [str(graph)], "folded_stacks": [str(stacks)]}
        print(json_text({**summary, "functions": functions, **files}, indent=1))
        return
    render_costs(profile, arguments.limit, standard_output())
    sys.stdout.flush()
    print(*_written(version, profile, arguments, folder), sep="\n")


def _diff(
    arguments: argparse.Namespace,
    session: Session,
    versions: Sequence[Version],
    both: Differential,
    folder: Path,
) -> None:
    """Print the table at once, then the files that are written, then one sentence and one command."""
    is_table, screen = arguments.format != "json", standard_output()
    if is_table:
        render_differential(both, arguments.limit, screen)
        sys.stdout.flush()
    graphs, stacks = zip(
        *(
            _written(version, profile, arguments, folder)
            for version, profile in zip(versions, (both.base, both.contender), strict=True)
        ),
        strict=True,
    )
    title = f"{arguments.step}: {versions[1]} against {versions[0]}"
    name = f"{_plain(arguments.step)}-{_plain(str(versions[0]))}-{_plain(str(versions[1]))}"
    graphs += (_file(folder / f"{name}.svg", difference_graph(both, title)),)
    if not is_table:
        print(differential_json(both, arguments.limit, list(map(str, graphs)), list(map(str, stacks))))
        return
    print(*graphs, *stacks, sep="\n")
    screen.line(conclusion(both, *map(str, versions)))
    screen.lines(_next(arguments, session, versions, both))


def _next(
    arguments: argparse.Namespace, session: Session, versions: Sequence[Version], both: Differential
) -> Sequence[str]:
    """Return what to do next: more rounds where nothing is certain, otherwise the costs of the step."""
    where = ["--history", arguments.history] if arguments.history else []
    if not (both.base.is_exact or both.certain):
        more = [*SAMPLED, "--repetitions", str(max(MIN_ROUNDS, 2 * both.rounds))]
        *notes, line = run_again(session, list(map(str, versions)), [arguments.step], more)
        if line.startswith("#"):
            return [*notes, line]
        return [*notes, located(" ".join([line, shell_line(*for_recording(where))]).rstrip())]
    words = ["./compare.py", *map(str, versions), "--session", session.uid, "--step", arguments.step]
    return [command([*words, "--costs", *where])]


def _written(
    version: Version, profile: StepProfile, arguments: argparse.Namespace, folder: Path
) -> tuple[Path, Path]:
    """Write the flame graph of a version, and its stacks for other programs; return both files."""
    name = f"{_plain(arguments.step)}-{_plain(str(version))}"
    return (
        _file(folder / f"{name}.svg", flame_graph(profile, f"{arguments.step}: {version}")),
        _file(folder / f"{name}.folded", folded(profile)),
    )


def _file(path: Path, text: str) -> Path:
    make_folder(path.parent)
    path.write_text(text, encoding="utf-8")
    return path


def _session(
    store: Reader, versions: Sequence[Version], arguments: argparse.Namespace
) -> tuple[Session, Sequence[Version]]:
    """Return the latest session that holds the versions, or versions of the branches of these names.

    One with a profile of the step, if there is one. Raises ComparisonError.
    """
    asked = arguments.suite, arguments.profile, arguments.session
    limits = SessionFilter(*asked, steps=(arguments.step,), is_profiled=True)
    with store.database.reading() as connection:
        names = [resolve_name(connection, version) for version in versions]
    match = store.latest_of(names, limits)
    if match is None:
        raise ComparisonError(
            f"no session holds {' and '.join(map(str, versions))}{limits}",
            where=store.where,
            hint=remedy(store, names, limits, _how(arguments, len(versions))),
        )
    return match


def _source(
    store: Reader, session: Session, versions: Sequence[Version], arguments: argparse.Namespace
) -> Callable[[int, str, Version], Rounds]:
    """Return what reads profiles: counted ones if asked for, or if not all versions have sampled ones."""
    sampled = all(store.profiles(session.id, arguments.step, version) for version in versions)
    counted = all(store.counted_profiles(session.id, arguments.step, version) for version in versions)
    return store.counted_profiles if arguments.exact or (counted and not sampled) else store.profiles


def _rounds(
    read: Callable[[int, str, Version], Rounds],
    store: Reader,
    session: Session,
    version: Version,
    arguments: argparse.Namespace,
) -> Rounds:
    """Return the profiles of a version, of one role if that was asked for. Raises ComparisonError."""
    profiles = read(session.id, arguments.step, version)
    if not profiles:
        raise ComparisonError(
            f"session {session.uid} has no profile of {version} on {arguments.step}",
            where=store.where,
            hint=_with_profile(store, session, version, arguments),
        )
    if arguments.role is None:
        return profiles
    roles = sorted({stack.split(";", 1)[0] for profile in profiles.values() for stack in profile.stacks})
    if arguments.role not in roles:
        raise ComparisonError(
            f"{version} has no samples of the role '{arguments.role}' on {arguments.step}",
            hint=f"its roles: {', '.join(roles)}",
        )
    return {number: of_role(profile, arguments.role) for number, profile in profiles.items()}


def _with_profile(store: Reader, session: Session, version: Version, arguments: argparse.Namespace) -> str:
    """Return the command that records the profile; for a step that there is not, the steps that have one."""
    how = COUNTED if arguments.exact else SAMPLED
    command = run_again(session, [str(version)], [arguments.step], how)[-1]
    sampled, _, counted = store.profiled_steps(session.id)
    steps = ", ".join(sorted(sampled | counted)) or "none"
    return command if command.startswith("./") else f"steps of this session with CPU profiles: {steps}"


def _how(arguments: argparse.Namespace, versions: int) -> list[str]:
    """Return the options of `run` with which so many versions get the wanted kind of profile."""
    return ["--exact-only" if arguments.exact else "--perf", *(["--alone"] if versions == 1 else [])]


def _plain(text: str) -> str:
    """Return a text with only characters that are safe in file names, and no more than a name can have."""
    return "".join(letter if letter.isalnum() or letter in ".-" else "_" for letter in text)[:LONGEST_NAME]
