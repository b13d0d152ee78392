"""Patches on a commit: whether a series applies, which hunk does not, and the commit that one makes."""

import re
import tempfile
from collections.abc import Sequence
from pathlib import Path

from build.environment import NO_GIT_SETTINGS
from build.errors import TidemarkError
from build.sources.git import Commit, GitError, Mirror, run

APPLY = ("apply", "-p1", "--whitespace=nowarn")
"""How a patch is applied: as by `patch -p1`, but without fuzz."""

_FAILED = re.compile(r"patch failed: (.+):([0-9]+)")
_HUNK = re.compile(r"@@ -([0-9]+)(?:,[0-9]+)? \+[0-9]+(?:,[0-9]+)? @@.*")
_NEW_NAME = re.compile(r"\+\+\+ (?:b/)?([^\t\n]+)")
_OLD_NAME = re.compile(r"--- (?:a/)?([^\t\n]+)")
_NAME = re.compile(r"^(?:---|\+\+\+) [^/\t\n]*/([^\t\n]+)", re.MULTILINE)
"""The path of a file behind its first folder, which is no part of it."""

_SECONDS = 120.0

_WHO = "Tidemark"
"""Who makes the commits of what is uncommitted."""


class PatchError(TidemarkError):
    """A patch cannot be read or does not apply."""


def require_applies(commit: Commit, patches: Sequence[Path], version: str) -> None:
    """Raise PatchError for the first patch of a series that does not apply to a commit after those before it.

    Nothing is written to the repository: the patched files go to a folder that is deleted. `version` is what
    the commit is called in the message.
    """
    with tempfile.TemporaryDirectory() as folder:
        scratch = {
            "GIT_INDEX_FILE": f"{folder}/index",
            "GIT_OBJECT_DIRECTORY": f"{folder}/objects",
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(commit.mirror / "objects"),
            **NO_GIT_SETTINGS,
        }
        Path(folder, "objects").mkdir()

        def git(*words: str) -> str:
            try:
                run(*words, git_dir=commit.mirror, seconds=_SECONDS, variables=scratch)
            except GitError as error:
                return error.where or error.what
            return ""

        problem = git("read-tree", commit.commit)
        if problem:
            raise PatchError(f"the files of {version} cannot be read", where=problem.strip()[-500:])
        for number, patch in enumerate(patches, start=1):
            errors = git(*APPLY, "--cached", "--", str(patch.resolve()))
            if errors:
                is_there = not git(*APPLY, "--cached", "--check", "--reverse", "--", str(patch.resolve()))
                raise not_applying(patch, (number, len(patches)), version, errors, is_there=is_there)


def committed(mirror: Mirror, head: Commit, patch: Path) -> str:
    """Return the commit, 40 hex digits, that a patch on `head` makes; the clone it comes from stays as it is.

    The same patch on the same commit makes the same one. Raises GitError if it cannot be made.
    """
    date = f"@{mirror.query('show', '--no-patch', '--format=%ct', head.commit).strip()} +0000"
    with tempfile.TemporaryDirectory() as folder:
        variables = {"GIT_INDEX_FILE": f"{folder}/index", **NO_GIT_SETTINGS}
        for who in ("AUTHOR", "COMMITTER"):
            variables |= {f"GIT_{who}_WHO": _WHO, f"GIT_{who}_EMAIL": "", f"GIT_{who}_DATE": date}

        def git(*words: str) -> str:
            try:
                return run(*words, git_dir=head.mirror, variables=variables).strip()
            except GitError as error:
                raise GitError(
                    "what is uncommitted cannot be taken over", where=f"{mirror.shown}: {error.where[-500:]}"
                ) from error

        git("read-tree", head.commit)
        git(*APPLY, "--cached", "--", str(patch.resolve()))
        tree = git("write-tree")
        return git("commit-tree", tree, "-p", head.commit, "-m", "What is uncommitted")


def paths_in(patch: Path) -> set[str]:
    """Return the paths of the files that a patch changes or adds, as APPLY finds them."""
    names = _NAME.findall(patch.read_text(encoding="utf-8", errors="replace"))
    return {name for name in names if name != "dev/null"}


def not_applying(
    patch: Path, place: tuple[int, int], version: str, errors: str, *, is_there: bool = False, log: str = ""
) -> PatchError:
    """Return the error for a patch that `git apply` has refused with `errors`.

    `place` is its number in the series and the length of that; `is_there` says that it is applied already.
    """
    number, total = place
    of_series = f", {number} of {total}," if total > 1 else ""
    lines = [line.removeprefix("error: ").rstrip() for line in errors.splitlines() if "error: " in line]
    found = [match for line in lines if (match := _FAILED.search(line))]
    reasons = [_described(patch, match[1], int(match[2])) for match in found]
    reason = "; ".join(reasons or dict.fromkeys(lines) or [errors.strip()[-300:]])
    hint = "rebase it onto this version, or name the commit that it was made for with --against"
    if log:
        hint = "rebase it onto this version"
    if number > 1:
        hint = f"check that the patches are in order; {hint}"
    if is_there:
        reason, hint = "its changes are there already", "try an older commit, or omit this patch"
    return PatchError(
        f"the patch {patch.name}{of_series} does not apply to {version}: {reason}",
        where="; ".join(filter(None, (str(patch), log and f"log {log}"))),
        hint=hint,
    )


def _described(patch: Path, name: str, line: int) -> str:
    """Return which hunk of a file did not match, of which `git apply` says the first old line."""
    hunks = _hunks_of(patch.read_text(encoding="utf-8", errors="replace"), name)
    places = [number for number, start in enumerate(hunks, start=1) if start == line]
    which = f"hunk {places[0]} of {len(hunks)}" if places and len(hunks) > 1 else "the hunk"
    return f"{which} at {name}:{line} does not match"


def _hunks_of(text: str, name: str) -> list[int]:
    """Return the first old line of each hunk of one file of a patch."""
    found, current, old = [], "", ""
    for line in text.splitlines():
        if match := _OLD_NAME.fullmatch(line):
            old = match[1]
        elif match := _NEW_NAME.fullmatch(line):
            current = old if match[1] == "/dev/null" else match[1]
        elif (match := _HUNK.match(line)) and current == name:
            found.append(int(match[1]))
    return found
