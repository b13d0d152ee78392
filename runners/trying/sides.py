"""What a try compares: a branch with its merge base, a patch with what it applies to, an install prefix."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from build.engines import ENGINES, git_ref
from build.errors import TidemarkError
from build.home import Home
from build.installs import recorded_install
from build.progress import Progress
from build.sources.commits import merge_base
from build.sources.git import HEAD, mirror
from build.sources.patching import require_applies
from build.sources.repository import engine_of, git_address, repository_address
from build.version import Engine, Version, parse_revision
from runners.measuring.variants import EVERY, Variants
from runners.trying.own_clone import clone_of, own_work
from runners.trying.series import PatchSeries, is_series, read_series
from suites.additions.registry import require_companions
from suites.additions.variant import Variant, described

TRIED = "try"
"""The variant that a patched version is called."""

DIGITS = 12
"""The hex digits of a commit in the name of a version."""


class TryError(TidemarkError):
    """There is nothing that could be tried."""


@dataclass(frozen=True)
class Sides:
    """The two versions of a try."""

    base: Version
    tip: Version
    described: str
    """What is tried, in one line for people."""

    variants: Variants = field(default_factory=dict)
    git: str | None = None
    """The git source of both; None for a release from its tarball."""

    notes: tuple[str, ...] = ()
    """What is left out of what was named."""


def sides_of(
    words: Sequence[str],
    against: str | None,
    engine: Engine,
    git: str | None,
    home: Home,
    progress: Progress | None = None,
    *,
    is_published: bool = False,
    pull: int | None = None,
) -> Sides:
    """Return what a command line compares; `words` are a ref, with or without its engine, or patches.

    Without words they are HEAD and what is uncommitted in a clone, and its merge base with `against`, by
    default its upstream branch. Patches apply to `against`, by default the commit that one of them names,
    else upstream's main branch; a ref is compared with its merge base with `against`, and an install prefix,
    or a ref with one, with what `against` names itself. With `is_published` a branch or tag of the git source
    has to lead to both; with `pull`, its number, a pull request to the ref. `progress` shows what is fetched
    of a ref.

    Raises TryError, CloneError, PatchSeriesError, PatchError, VersionError, PrefixError or GitError.
    """
    if not words:
        return _of_clone(against, engine, git, home)
    if is_series(words):
        return _of_series(read_series(words, home), against, engine, git, home)
    for word in words if len(words) > 1 else ():
        if not is_series([word]):
            raise TryError(
                f"{word} is no patch", where=" ".join(words), hint="name one ref, or nothing but patches"
            )
    (what,) = words
    path = Path(what)
    if "/" in what and path.suffix in (".patch", ".diff"):
        raise TryError(f"there is no patch {what}", hint="name a file, or a branch, tag or commit")
    if any("=" in name for name in (what, against or "")):
        return _of_install(what, against, engine, git, home, is_published)
    return _of_ref(what, against, engine, git, home, progress, is_published, pull)


def with_servers(sides: Sides, every: Variant) -> Sides:
    """Return the sides with what the servers of both get, as a note says. Raises CompanionError."""
    require_companions(every.companions, sides.tip.engine)
    given = described(every.to_json())
    if not given:
        return sides
    notes = (*sides.notes, f"both servers: {given}")
    return replace(sides, variants={**sides.variants, EVERY: every}, notes=notes)


def read_version(text: str, engine: Engine) -> Version:
    """Return the version of a ref, which may name its engine. Raises VersionError."""
    named = text.partition("@")[0] in set(Engine)
    return parse_revision(text if named else f"{engine}@{text}")


def _of_clone(against: str | None, engine: Engine, git: str | None, home: Home) -> Sides:
    clone = clone_of(git)
    if clone is None or engine_of(clone) is not engine:
        titles = ", ".join(ENGINES[known].title for known in Engine)
        raise TryError(
            "no ref and no patch is named, and there is no clone to look into",
            where=git or str(Path.cwd()),
            hint=f"name a branch or a patch, or start the command in a clone of one of {titles}",
        )
    if ENGINES[engine].needs_submodules and ".gitmodules" in clone.names_in(HEAD):
        raise TryError(
            f"commits of {ENGINES[engine].title} have submodules, which a build from git lacks",
            where=str(clone.root),
            hint="install both sides, and name their prefixes: "
            f"./tidemark try {engine}@new=/PATH --against {engine}@old=/PATH",
        )
    address = str(clone.root)
    work = own_work(clone, mirror(address, engine, home), engine, against, home)
    base, tip = (Version(engine, f"git:{commit[:DIGITS]}") for commit in (work.base, work.head))
    if work.patch is None:
        return Sides(base, tip, work.described, git=address, notes=work.notes)
    variants = {TRIED: Variant(patches=(work.patch,))}
    return Sides(base, replace(tip, variant=TRIED), work.described, variants, address, work.notes)


def _of_series(
    series: PatchSeries, against: str | None, engine: Engine, git: str | None, home: Home
) -> Sides:
    named = series.base_commit
    base = read_version(against or (f"git:{named}" if named else _main(engine)), engine)
    if base.is_install:
        raise TryError(
            f"{base} is installed, and has no source that a patch applies to",
            hint="name the release, branch or commit that it was compiled from",
        )
    base, address = _as_it_is(base, git, home)
    commit = None if address is None else mirror(address, base.engine, home).find(git_ref(base))
    if commit is not None:
        name = (against or str(base)).removeprefix(f"{base.engine}@").removeprefix("git:")
        short = commit.commit[:DIGITS]
        shown = name if name.startswith(short) else f"{name} ({short})"
        require_applies(commit, series.files, shown)
    tip = Version(base.engine, base.ref, TRIED)
    variants = {TRIED: Variant(patches=series.files)}
    return Sides(base, tip, f"{series.shown} on {base}", variants, address, series.notes)


def _of_install(
    what: str, against: str | None, engine: Engine, git: str | None, home: Home, is_published: bool
) -> Sides:
    if is_published:
        raise TryError("a workflow tries no install prefix", where=what, hint="name a branch, tag or commit")
    if against is None:
        raise TryError(
            f"{what} is installed, and has no merge base",
            hint="name what it is compared with: --against VERSION",
        )
    tip, base = read_version(what, engine), read_version(against, engine)
    _require_comparable(tip, base)
    tip, ours = _as_it_is(tip, git, home)
    base, theirs = _as_it_is(base, git, home)
    if tip.installed and tip.installed == base.installed:
        raise TryError(
            f"{base} and {tip} have the same programs: there is nothing to try",
            where=f"{against}, {what}",
            hint="check that both prefixes are what you mean, and installed",
        )
    return Sides(base, tip, f"{tip} against {base}", git=ours or theirs)


def _as_it_is(version: Version, git: str | None, home: Home) -> tuple[Version, str | None]:
    """Return a version as it is recorded, and its git source: a branch is its commit, a path its digest.

    Raises GitError or PrefixError.
    """
    if version.is_install:
        return recorded_install(version, home).version, None
    if version.is_release:
        return version, git_address(version.engine, git)
    address = repository_address(version.engine, git)
    return _commit(version, mirror(address, version.engine, home).fetch(_ref(version)).commit), address


def _require_comparable(tip: Version, other: Version) -> None:
    if other.engine is not tip.engine:
        raise TryError(f"{tip} and {other} are of two engines", hint="compare versions of one engine")
    if tip.variant or other.variant:
        raise TryError(
            "a try compares plain versions", where=f"{tip}, {other}", hint="omit what follows the #"
        )


def _of_ref(
    what: str,
    against: str | None,
    engine: Engine,
    git: str | None,
    home: Home,
    progress: Progress | None,
    is_published: bool,
    pull: int | None,
) -> Sides:
    tip = read_version(what, engine)
    other = read_version(against or _main(tip.engine), tip.engine)
    _require_comparable(tip, other)
    address = repository_address(tip.engine, git)
    source = mirror(address, tip.engine, home, progress)
    new, base = merge_base(source, tip.engine, tip.ref, other.ref, is_published=is_published, pull=pull)
    if new == base:
        raise TryError(
            f"{other} contains {tip}: there is nothing to try",
            where=f"{tip} is {new[:DIGITS]}",
            hint="name what it is to be compared with: --against REF",
        )
    described = f"{tip} ({new[:DIGITS]}) against {base[:DIGITS]}, where it leaves {other.ref}"
    return Sides(_commit(tip, base), _commit(tip, new), described, git=address)


def _main(engine: Engine) -> str:
    return f"{engine}@{ENGINES[engine].upstream.branch}"


def _ref(version: Version) -> str:
    return version.ref.removeprefix("git:")


def _commit(version: Version, commit: str) -> Version:
    return Version(version.engine, f"git:{commit[:DIGITS]}")
