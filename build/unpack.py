"""From a source to a tree that can be configured: unpacked, patched."""

import os
import shutil
from pathlib import Path

from build.order import Patch, PatchError
from build.sources import git
from build.sources.source import Source
from build.work import CompileCommands, CompileError


def unpack(source: Source, folder: Path, work: CompileCommands) -> None:
    """Fill the empty `folder` with the source tree. Raises CompileError or GitError."""
    if source.tarball is not None:
        tar = ["tar", "--extract", "--no-same-owner", "--strip-components=1", "--file", str(source.tarball)]
        work.run("unpack", tar, folder)
    elif source.commit is not None:
        with git.archive(source.commit) as stream:
            work.run("unpack", ["tar", "--extract", "--no-same-owner"], folder, stream.stdout)


def apply_patches(patches: tuple[Patch, ...], folder: Path, work: CompileCommands) -> None:
    """Apply each patch as `patch -p1` would, without fuzz: what does not fit exactly is not applied.

    Raises PatchError at the first that does not fit; it names the patch, and file and line of the hunk.
    """
    for patch in patches:
        started = work.log.stat().st_size
        command = ["git", "apply", "--verbose", "-p1", "--whitespace=nowarn", "--", str(patch.path)]
        try:
            work.run("patch", command, folder)
        except CompileError as error:
            raise _refused(patch, work.log, started) from error


def _refused(patch: Patch, log: Path, start: int) -> PatchError:
    with log.open(errors="replace") as file:
        file.seek(start)
        said = [line.rstrip().removeprefix("error: ") for line in file if line.startswith("error: ")]
    hunks = [line.removeprefix("patch failed: ") for line in said if line.startswith("patch failed: ")]
    which = f"the hunk at {', '.join(hunks)} does not fit" if hunks else "; ".join(said)
    return PatchError(
        f"the patch {patch.path.name} does not apply: {which}",
        where=f"{patch.path}; log {log}",
        hint="rebase the patch onto this version",
    )


def masquerade(ccache: str, folder: Path) -> str:
    """A PATH on which `gcc` and its like are ccache.

    `CC="ccache gcc"` would be written into pg_config and the makefiles of extensions, and so change what is
    installed; a link named like the compiler leaves no trace.
    """
    folder.mkdir()
    for name in filter(shutil.which, ("cc", "c++", "gcc", "g++", "clang", "clang++")):
        (folder / name).symlink_to(ccache)
    return f"{folder}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
