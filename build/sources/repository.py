"""Which git source is meant: one that was named, the clone around the current folder, or upstream's."""

import os
import shlex
from pathlib import Path

from build.engines import ENGINES
from build.sources.git import Clone, GitError, clone_at
from build.version import Engine

GIT_HELP = (
    "URL or path of the git repository with branches, tags and commits, such as your clone; default: "
    "TIDEMARK_GIT_POSTGRES (_MYSQL, _MARIADB), else your clone of the engine around the current folder, else "
    "upstream's"
)
"""The help of `--git`, of every command that has it."""


def variable(engine: Engine) -> str:
    """Return the name of the environment variable that names a git source of an engine."""
    return f"TIDEMARK_GIT_{engine.upper()}"


def git_address(engine: Engine, given: str | None) -> str | None:
    """Return the URL or path of the git source: `given`, else the engine's variable, else None.

    The variable is called `$TIDEMARK_GIT_POSTGRES` for Postgres.
    """
    return given or os.environ.get(variable(engine)) or None


def known_address(engine: Engine, given: str | None) -> str | None:
    """Return the git source that was named, else the clone of the engine around the current folder, or None.

    Releases are not taken from a clone that was not named: their tarballs have pinned digests. Raises
    GitError as `clone_around` does.
    """
    named = git_address(engine, given)
    if named is not None:
        return named
    clone = clone_around()
    return str(clone.root) if clone is not None and engine_of(clone) is engine else None


def repository_address(engine: Engine, given: str | None) -> str:
    """Return `known_address`, or upstream's repository where there is none. Raises GitError as that does."""
    return known_address(engine, given) or ENGINES[engine].upstream.git


def clone_around() -> Clone | None:
    """Return the repository in which the current folder lies, if git accepts its owner; None outside of one.

    Anybody may have put it there, above a folder of the caller's: its commits are compiled and run. Raises
    GitError for one that git does not accept and that looks like the source of an engine.
    """
    try:
        here = Path.cwd()
        top = next((place for place in (here, *here.parents) if (place / ".git").exists()), None)
        clone = None if top is None else clone_at(top, is_named=False)
        # Without a .git, files in a shared folder such as /tmp would be taken for a bare repository.
        if top is None or (clone is not None and clone.has_tree):
            return clone
        names = {path.name for path in top.iterdir()}
        owner = (top / ".git").lstat().st_uid
    except OSError:  # the folder was deleted, or may not be read
        return None
    if not any(names >= set(ENGINES[engine].tree_files) for engine in Engine):
        return None
    raise GitError(
        "the repository around the current folder is not yours, or is damaged: nothing is compiled from it",
        where=f"{top / '.git'}, of user id {owner}",
        hint=f"to take it, name it: --git {shlex.quote(str(top))}; otherwise name another one, or start the "
        "command in another folder",
    )


def engine_of(clone: Clone) -> Engine | None:
    """Return the engine whose source a repository has, by the files at the top of what is checked out.

    Return None for any other repository.
    """
    names = clone.names_in("HEAD")
    return next((engine for engine in Engine if names >= set(ENGINES[engine].tree_files)), None)
