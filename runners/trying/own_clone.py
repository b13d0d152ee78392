"""What a developer has in a clone: HEAD, what is uncommitted, and the commit where it left its upstream."""

import re
from dataclasses import dataclass
from pathlib import Path

from build.engines import ENGINES
from build.errors import TidemarkError
from build.home import Home
from build.sources.commits import merge_base
from build.sources.git import HEAD, Clone, Mirror, clone_at
from build.sources.repository import clone_around, engine_of
from build.version import Engine
from history.counts import counted
from runners.trying.series import write_patch

_MAX_NAMED = 3
"""The files that a note names."""

_LINE = re.compile(r"(?:.*/)?(?:master|main|trunk|REL_?[0-9_]+_STABLE|[0-9]+(?:\.[0-9]+)+)")
"""The branches of upstream on which versions are developed."""

# As any clone would write it, whatever its owner has configured.
_DIFF = ("diff", "--no-ext-diff", "--no-textconv", "--no-renames", "--no-relative", "--ignore-submodules=all")
_CHANGED = (*_DIFF, "--raw", "-z")
_PATCH = (*_DIFF, "--binary", "--full-index", "--no-color", "--src-prefix=a/", "--dst-prefix=b/")
_STAGED = ("ls-files", "-z", "--stage")
_UNTRACKED = ("ls-files", "-z", "--others", "--directory", "--no-empty-directory", "--exclude-standard")

_SUBMODULE = "160000"
"""The mode of a submodule in the index."""


class CloneError(TidemarkError):
    """A clone has nothing to try, or not in a state in which it can be tried."""


@dataclass(frozen=True)
class OwnWork:
    """What there is to try in a clone."""

    head: str
    base: str
    """Both 40 hex digits."""

    patch: Path | None
    """What is uncommitted, as a patch on HEAD; None where nothing is."""

    described: str
    notes: tuple[str, ...]
    """What is left out."""


@dataclass(frozen=True)
class _Changes:
    """What a work tree has beside HEAD."""

    files: list[str]
    untracked: list[str]
    submodules: list[str]
    """All of them, changed or not: their settings could run programs, so that git does not look into them."""


def clone_of(git: str | None) -> Clone | None:
    """Return the clone that `--git` names, or the one around the current folder; None without one."""
    if git is None:
        return clone_around()
    return None if "://" in git else clone_at(Path(git))


def engine_here(git: str | None) -> Engine | None:
    """Return the engine of that clone, by the files at the top of its tree; None without one."""
    clone = clone_of(git)
    return None if clone is None else engine_of(clone)


def own_work(clone: Clone, mirror: Mirror, engine: Engine | None, against: str | None, home: Home) -> OwnWork:
    """Return what there is to try in a clone against its merge base with `against`, or its upstream branch.

    `engine` is None for a clone of an extension.

    Raises CloneError if there is nothing, and GitError as `merge_base` does.
    """
    head = clone.commit(HEAD)
    if head is None:
        raise CloneError("nothing is committed in the clone", where=str(clone.root))
    name = against or _upstream(clone, engine)
    _, base = merge_base(mirror, engine, head, name)
    changes = _changes(clone, mirror, head)
    patch = _uncommitted(clone, mirror, head, home) if changes.files else None
    if head == base and patch is None:
        raise CloneError(
            f"{name} contains HEAD, and no change of a tracked file is uncommitted: there is nothing to try",
            where=str(clone.root),
            hint="name what HEAD is to be compared with: --against REF",
        )
    commits = int(mirror.query("rev-list", "--count", f"{base}..{head}"))
    parts = [f"{counted(commits, 'commit')} up to {head[:12]}"] if commits else []
    parts += [f"what is uncommitted in {counted(len(changes.files), 'file')}"] if patch else []
    where = f"where it leaves {name}" if commits else f"the HEAD of {_branch(clone) or 'no branch'}"
    return OwnWork(head, base, patch, f"{' and '.join(parts)} against {base[:12]}, {where}", _notes(changes))


def _upstream(clone: Clone, engine: Engine | None) -> str:
    """Return the branch that the work is to be merged into.

    It is the branch that the current one tracks, unless that is only its own copy in a remote; else what
    `origin` has as its HEAD; else the main branch of that name. Raises CloneError without any.
    """
    branch = _branch(clone)
    tracked = ""
    if branch:
        asked = ("for-each-ref", "--format=%(upstream:short)", f"refs/heads/{branch}")
        tracked = clone.read(*asked).strip()
    if tracked and (not tracked.endswith(f"/{branch}") or _LINE.fullmatch(tracked)):
        return tracked
    if clone.commit("refs/remotes/origin/HEAD") is not None:
        return clone.read("for-each-ref", "--format=%(symref:short)", "refs/remotes/origin/HEAD").strip()
    for name in (*([ENGINES[engine].upstream.branch] if engine else []), "main", "master"):
        if clone.branch(name) is not None:
            return name
    raise CloneError(
        "which branch the work is to be merged into is not known: HEAD tracks none, and origin has no HEAD",
        where=str(clone.root),
        hint="name it: --against REF",
    )


def _branch(clone: Clone) -> str:
    """Return the name of the current branch; empty if HEAD is detached."""
    name = clone.read("rev-parse", "--symbolic-full-name", HEAD).strip()
    return name.removeprefix("refs/heads/") if name.startswith("refs/heads/") else ""


def _changes(clone: Clone, mirror: Mirror, head: str) -> _Changes:
    """Return what differs from HEAD in the work tree. Raises CloneError for a merge with conflicts."""
    if not clone.has_tree:
        return _Changes([], [], [])

    def read(*words: str) -> list[str]:
        return clone.read_tree(mirror.path, *words).split("\0")[:-1]

    submodules = []
    for entry in read(*_STAGED):
        about, _, path = entry.partition("\t")
        mode, _, stage = about.split(" ")
        if stage != "0":
            raise CloneError(
                "a merge, rebase or cherry-pick has left conflicts",
                where=f"{clone.root}: {path}",
                hint="resolve and commit them, or undo it",
            )
        submodules += [path] if mode == _SUBMODULE else []
    own = clone.read("rev-parse", "--path-format=absolute", "--git-path", "info/exclude").removesuffix("\n")
    excluded = [f"--exclude-from={own}"] if Path(own).is_file() else []
    return _Changes(read(*_CHANGED, head)[1::2], read(*_UNTRACKED, *excluded), submodules)


def _uncommitted(clone: Clone, mirror: Mirror, head: str, home: Home) -> Path:
    def write(path: Path) -> None:
        clone.read_tree(mirror.path, *_PATCH, f"--output={path.absolute()}", head)

    return write_patch("uncommitted.patch", home, write)


def _notes(changes: _Changes) -> tuple[str, ...]:
    notes = []
    if changes.untracked:
        several = counted(len(changes.untracked), "untracked file")
        notes.append(f"left out: {several} ({_named(changes.untracked)}); git add takes a file in")
    if changes.submodules:
        notes.append(f"left out: submodules ({_named(changes.submodules)}), which no build has")
    return tuple(notes)


def _named(paths: list[str]) -> str:
    more = len(paths) - _MAX_NAMED
    return ", ".join(paths[:_MAX_NAMED]) + (f" and {more} more" if more > 0 else "")
