"""Which functions a try changes, and whether it changes anything outside of functions."""

import os
import subprocess
import tarfile
import tempfile
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from build.environment import NO_GIT_SETTINGS, NO_HOME
from build.errors import TidemarkError
from build.home import Home
from build.sources import git
from build.sources.commits import immaterial, is_immaterial
from build.sources.git import LOCAL_SECONDS, Commit, GitError
from build.sources.patching import APPLY, PatchError, paths_in
from build.sources.source import known_sources
from build.version import Version
from runners.measuring.variants import definition_of
from runners.trying.c_source import CSource, parsed
from runners.trying.sides import Sides, TryError
from suites.counting.executed_functions import WatchedFunction

HEADERS = (".h", ".hh", ".hpp", ".ic", ".inl")
"""The names of files whose functions the compiler puts into those of any other file."""

_SOURCES = (".c", ".cc", ".cpp", ".cxx", *HEADERS)


@dataclass(frozen=True)
class ChangedCode:
    """The code that differs between the two sides of a try."""

    functions: tuple[WatchedFunction, ...] = ()
    """The functions of the new side that are changed or new."""

    outside: tuple[str, ...] = ()
    """The files that differ elsewhere: in macros, data, declarations of types, or in another language."""

    unknown: str = ""
    """Why neither is known; empty if it is."""

    paths: tuple[str, ...] = ()
    """The files that differ, without those that cannot change the server."""

    @property
    def is_nothing(self) -> bool:
        """Whether nothing differs that a server is made of, such as in a patch of documentation."""
        return not self.unknown and not self.paths


def changed_code(sides: Sides, home: Home) -> ChangedCode:
    """Return what differs between the sides; paths that cannot change the server are left out."""
    if sides.base.is_install or sides.tip.is_install:
        return ChangedCode(unknown="install prefixes have no source")
    is_extension = bool(definition_of(sides.tip, sides.variants).extensions)
    patterns = immaterial(None if is_extension else sides.tip.engine)
    try:
        old, new = _both(sides, home)
    except (TidemarkError, OSError, tarfile.TarError) as error:
        return ChangedCode(unknown=str(error))
    functions: list[WatchedFunction] = []
    outside = []
    differ = (path for path in sorted({*old, *new}) if old.get(path) != new.get(path))
    paths = tuple(path for path in differ if not is_immaterial(path, patterns))
    for path in paths:
        changed, is_outside = changed_in(path, old.get(path, ""), new.get(path, ""))
        functions += changed
        outside += [path] * is_outside
    return ChangedCode(tuple(functions), tuple(outside), paths=paths)


def changed_in(path: str, old: str, new: str) -> tuple[list[WatchedFunction], bool]:
    """Return the functions of a file that are changed or new, and whether anything else in it is.

    A function that is gone is not looked for: what called it has changed as well. The lines of a function
    are its own, and those in other functions of the file that name it, as the compiler may have nothing of
    it left but there.
    """
    before, after = (parsed(text) if path.endswith(_SOURCES) else None for text in (old, new))
    if before is None or after is None:
        return [], True
    known = defaultdict(list)
    for function in before.functions:
        known[function.name].append(before.lines[function.first - 1 : function.last])
    changed = [
        WatchedFunction(
            function.name,
            path,
            frozenset((*range(function.first, function.last + 1), *after.uses(function.name))),
        )
        for function in after.functions
        if after.lines[function.first - 1 : function.last] not in known[function.name]
    ]
    return changed, _outside(before) != _outside(after)


def _outside(source: CSource) -> list[str]:
    """Return the code that is in no function, and what functions define for the preprocessor."""
    inside = {line for found in source.functions for line in range(found.first, found.last + 1)}
    lines = enumerate(source.lines, start=1)
    return [
        text
        for number, text in lines
        if text and number not in source.inert and (number not in inside or _defines(source, number))
    ]


def _defines(source: CSource, line: int) -> bool:
    branches = ("#if", "#el", "#end")
    return line in source.directives and not source.lines[line - 1].replace(" ", "").startswith(branches)


def _both(sides: Sides, home: Home) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """Return the texts of the files that may differ, by path, of both sides."""
    old, new = (_origin(version, sides, home) for version in (sides.base, sides.tip))
    patches = definition_of(sides.tip, sides.variants).patches
    paths = set().union(*map(paths_in, patches))
    if isinstance(old, Commit) and isinstance(new, Commit) and old != new:
        words = ("diff-tree", "-r", "--no-renames", "--name-only", "-z", old.commit, new.commit)
        paths |= set(filter(None, git.run(*words, git_dir=old.mirror).split("\0")))
    elif old != new:
        raise TryError(f"{sides.base} and {sides.tip} are of different sources")
    before = _texts(old, paths)
    after = before if old == new else _texts(new, paths)
    return before, _patched(after, patches, paths) if patches else after


def _origin(version: Version, sides: Sides, home: Home) -> Commit | Path:
    """Return the commit or the tarball that a side is made of, before it is patched."""
    extensions = definition_of(version, sides.variants).extensions
    if extensions:
        found = extensions[-1].mirror(home).find(extensions[-1].commit)
        if found is not None:
            return found
    for source in () if extensions else known_sources(version.plain, home, sides.git):
        if source.tarball is not None and source.tarball.is_file():
            return source.tarball
        if source.commit is not None:
            return source.commit
    raise TryError(f"the source of {version} is not on this machine")


def _texts(origin: Commit | Path, paths: Collection[str]) -> Mapping[str, str]:
    """Return the texts of those files that are there."""
    found: dict[str, str] = {}
    if isinstance(origin, Commit):
        for path in paths:
            try:
                blob = ("cat-file", "blob", f"{origin.commit}:{path}")
                found[path] = git.run(*blob, git_dir=origin.mirror)
            except GitError:
                continue
        return found
    with tarfile.open(origin) as archive:
        for member in archive:
            path = member.name.removeprefix("./").partition("/")[2]
            if path in paths and member.isfile() and (file := archive.extractfile(member)) is not None:
                found[path] = file.read().decode(errors="replace")
                if len(found) == len(paths):
                    break  # the rest of it takes seconds
    return found


def _patched(before: Mapping[str, str], patches: Sequence[Path], paths: Collection[str]) -> Mapping[str, str]:
    """Return the texts after the patches. Raises PatchError for one that does not apply."""
    with tempfile.TemporaryDirectory() as folder:
        for path, text in before.items():
            file = Path(folder, path)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8", newline="")
        environment = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", **NO_GIT_SETTINGS}
        for patch in patches:
            # In no repository: one around the folder could be anybody's, and its filters would run.
            command = [*git.BASE, "--git-dir", NO_HOME, *APPLY, "--", str(patch.resolve())]
            done = subprocess.run(
                command, cwd=folder, env=environment, capture_output=True, check=False, timeout=LOCAL_SECONDS
            )
            if done.returncode != 0:
                raise PatchError(f"the patch {patch.name} does not apply", where=str(patch))
        files = ((path, Path(folder, path)) for path in paths)
        return {
            path: file.read_text(encoding="utf-8", errors="replace")
            for path, file in files
            if file.is_file() and not file.is_symlink()
        }
