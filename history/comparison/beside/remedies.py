"""What to do where the history lacks what is to be compared or shown: nothing that would be refused."""

from collections.abc import Collection, Sequence
from difflib import get_close_matches

from build.errors import TidemarkError, shell_line
from build.home import locate
from build.sources.releases import known_releases
from build.version import Version
from history.errors import ComparisonError
from history.store.reader import Reader
from history.store.session_lookup import Name, SessionFilter

LIKENESS = 0.75
"""From which likeness on a name is taken for a mistyped one, as difflib measures it."""

MAX_RUNS = 10
"""How many runs an error names: a history of some years has thousands."""


def no_session(history: Reader, base: Name, contender: Name, limits: SessionFilter) -> ComparisonError:
    """Return the error that no session within `limits` holds both, with runs that there are instead."""
    asked = {str(base.version.plain), str(contender.version.plain)}
    # Those of the versions in question first: what was meant may be a variant, or another suite.
    runs = sorted(history.latest_runs(), key=lambda run: run.version.partition("#")[0] not in asked)
    lines = [
        f"\n    {run.version}  {run.suite} {run.profile}  {run.started_at:%Y-%m-%d %H:%M} UTC"
        f"  session {run.session_uid}"
        for run in runs[:MAX_RUNS]
    ]
    if more := len(runs) - len(lines):
        lines.append(f"\n    and {more:,} more")
    return ComparisonError(
        f"no session holds both {base} and {contender}{limits}"
        f"\n  latest runs in the history:{''.join(lines) or ' none'}",
        where=history.where,
        hint=remedy(history, (base, contender), limits),
    )


def remedy(history: Reader, names: Sequence[Name], limits: SessionFilter, options: Sequence[str] = ()) -> str:
    """Return what to do where no session within `limits` has all `names`.

    `options` are those with which a session records what is wanted.
    """
    anywhere = history.latest_of(names, SessionFilter())
    if anywhere is not None:
        session = anywhere[0]
        wanted = {"--suite": limits.suite, "--profile": limits.profile, "--session": limits.uid}
        wanted["--machine"] = limits.box
        given = ", ".join(option for option, value in wanted.items() if value)
        where = f"{session.suite}, {session.profile}, on {session.machine.hostname}"
        return f"session {session.uid} has all of them ({where}): omit or correct {given}"
    runs = history.latest_runs()
    known = {run.version for run in runs}
    meant = [(name, like) for name in names if (like := near(name.version, known))]
    if meant:
        return "; ".join(f"did you mean {' or '.join(like)} instead of {name}?" for name, like in meant)
    suite = limits.suite or (runs[0].suite if runs else "write-heavy")
    profile = limits.profile or (runs[0].profile if runs else "short")
    versions = [name.version for name in names]
    command = run_command(versions, suite, profile, options=options, measured=known)
    return command or "./tidemark history show lists what was measured"


def near(version: Version, measured: Collection[str]) -> list[str]:
    """Return versions, measured ones and known releases, for which one that is neither may be a mistake."""
    start = f"{version.engine}@"
    refs = {name.removeprefix(start) for name in measured if name.startswith(start)}
    if version.is_release:
        refs |= {*known_releases(version.engine, locate())}
    if str(version).removeprefix(start) in refs:
        return []
    return [start + ref for ref in get_close_matches(version.ref, sorted(refs), cutoff=LIKENESS)]


def run_command(
    versions: Sequence[Version],
    suite: str,
    profile: str,
    *,
    options: Sequence[str] = (),
    measured: Collection[str] = (),
) -> str:
    """Return the command that measures the versions; empty if it would be refused.

    It would be for a suite or profile that there is not, and for a release that is neither `measured`
    nor known. Whether a git source has a branch or commit is not known here.
    """
    from suites.definition import load_suite  # loaded only where something is missing

    try:
        chosen = load_suite(suite)
        chosen.select((), profile)
    except TidemarkError:
        return ""
    for version in versions:
        is_known = str(version) in measured or version.ref in known_releases(version.engine, locate())
        if version.engine not in chosen.engines or (version.is_release and not is_known):
            return ""
    words = ["./tidemark", "run", *options, "--suite", suite, "--profile", profile]
    return shell_line(*words, *versions)
