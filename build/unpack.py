"""Preparing a source tree for configuring: unpacking and patching."""

import os
import shutil
from pathlib import Path

from build.build_spec import Patch, PatchError
from build.programs.work import CompileCommands, CompileError
from build.sources import git
from build.sources.source import Source


def unpack(source: Source, folder: Path, work: CompileCommands) -> None:
    """Unpack the source tree into the empty folder `folder`. Raises CompileError or GitError."""
    if source.tarball is not None:
        tar = ["tar", "--extract", "--no-same-owner", "--strip-components=1", "--file", str(source.tarball)]
        work.run("unpack", tar, folder)
    elif source.commit is not None:
        with git.archive(source.commit) as stream:
            work.run("unpack", ["tar", "--extract", "--no-same-owner"], folder, stream.stdout)


def apply_patches(patches: tuple[Patch, ...], folder: Path, work: CompileCommands) -> None:
    """Apply the patches in order as `patch -p1` would, but without fuzz.

    Raises PatchError for the first patch that does not apply exactly, with file and line of the hunk.
    """
    for patch in patches:
        started = work.log.stat().st_size
        command = ["git", "apply", "--verbose", "-p1", "--whitespace=nowarn", "--", str(patch.path)]
        try:
            work.run("patch", command, folder)
        except CompileError as error:
            raise _patch_error(patch, work.log, started) from error


def _patch_error(patch: Patch, log: Path, start: int) -> PatchError:
    with log.open(errors="replace") as file:
        file.seek(start)
        errors = [line.rstrip().removeprefix("error: ") for line in file if line.startswith("error: ")]
    hunks = [line.removeprefix("patch failed: ") for line in errors if line.startswith("patch failed: ")]
    reason = f"the hunk at {', '.join(hunks)} does not match" if hunks else "; ".join(errors)
    return PatchError(
        f"the patch {patch.path.name} does not apply: {reason}",
        where=f"{patch.path}; log {log}",
        hint="rebase the patch onto this version",
    )


def masquerade(ccache: str, folder: Path) -> str:
    """Create links to ccache named `gcc`, `cc` and so on in `folder`, and return a PATH that begins with it.

    `CC="ccache gcc"` would be recorded in pg_config and in the makefiles of extensions, and so change what is
    installed. A link with the compiler's name leaves no trace.
    """
    folder.mkdir()
    for name in filter(shutil.which, ("cc", "c++", "gcc", "g++", "clang", "clang++")):
        (folder / name).symlink_to(ccache)
    return f"{folder}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
