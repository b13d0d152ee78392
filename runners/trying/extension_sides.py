"""What a try of an extension compares: a ref of its repository with its merge base, on one server."""

from dataclasses import replace

from build.extension import parse_extension, require_extensible
from build.home import Home
from build.progress import Progress
from build.sources.commits import merge_base
from build.sources.git import HEAD, Mirror, NoSuchRefError
from build.sources.patching import committed
from build.version import parse_version
from runners.trying.own_clone import own_work
from runners.trying.sides import DIGITS, Sides, TryError
from suites.additions.variant import Variant

MAIN_BRANCHES = ("main", "master")
"""What a ref is compared with by default: the first of these branches that the repository has."""


def extension_sides(
    what: str | None,
    against: str | None,
    server: str,
    text: str,
    git: str | None,
    home: Home,
    progress: Progress | None = None,
) -> Sides:
    """Return the two sides of a try of an extension, `NAME=REPO`; `what` and `against` are refs of it.

    Without `what` it is, in a clone, HEAD and what is uncommitted; else the HEAD of the repository.
    `git` is the git source of the `server`, a version without a variant. Raises TryError, ExtensionError,
    VersionError or GitError.
    """
    version, extension = parse_version(server), parse_extension(text, has_ref=False)
    require_extensible(version, (extension,))
    if version.variant:
        raise TryError("a try compares plain versions", where=server, hint="omit what follows the #")
    source = extension.mirror(home, progress)
    base, new, described, notes = (
        _own(source, against, home)
        if what is None and source.clone is not None
        else _of_ref(extension.name, source, what or HEAD, against)
    )
    sides = [replace(version, variant=commit[:DIGITS]) for commit in (base, new)]
    variants = {
        commit[:DIGITS]: Variant(extensions=(replace(extension, ref=commit[:DIGITS], commit=commit),))
        for commit in (base, new)
    }
    return Sides(sides[0], sides[1], f"{extension.name} {described}, on {version}", variants, git, notes)


_Pair = tuple[str, str, str, tuple[str, ...]]
"""Base and what is tried, 40 hex digits each, a description of both, and notes."""


def _of_ref(name: str, source: Mirror, what: str, against: str | None) -> _Pair:
    other = against or _main(name, source)
    new, base = merge_base(source, None, what, other)
    if new == base:
        raise TryError(
            f"{other} contains {what}: there is nothing to try",
            where=f"{what} is {new[:DIGITS]} in {source.shown}",
            hint="commit what is to be tried, and name what it is compared with: --against REF",
        )
    return base, new, f"{what} ({new[:DIGITS]}) against {base[:DIGITS]}, where it leaves {other}", ()


def _own(source: Mirror, against: str | None, home: Home) -> _Pair:
    """Return what is in a clone as `own_work` finds it, what is uncommitted as a commit of the mirror."""
    assert source.clone is not None
    work = own_work(source.clone, source, None, against, home)
    head = source.fetch(work.head)
    new = work.head if work.patch is None else committed(source, head, work.patch)
    return work.base, new, work.described, work.notes


def _main(name: str, source: Mirror) -> str:
    for branch in MAIN_BRANCHES:
        try:
            source.fetch(branch)
        except NoSuchRefError:
            continue
        return branch
    raise TryError(
        f"the repository of {name} has no branch {' or '.join(MAIN_BRANCHES)}",
        where=source.shown,
        hint="name what the ref is to be merged into: --against REF",
    )
