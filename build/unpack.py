"""Preparing a source tree for configuring: unpacking and patching."""

import os
import shutil
from pathlib import Path

from build.build_spec import Patch
from build.programs.environment import NO_HOME
from build.programs.work import CompileCommands, CompileError
from build.sources import git
from build.sources.git import BASE
from build.sources.patching import APPLY, PatchError, not_applying
from build.sources.source import Source
from build.version import Version

EXTRACT = ("tar", "--extract", "--no-same-owner", "--no-same-permissions")
"""Unpacks a source tree, which nobody else may then write to, whatever the archive says."""

_PACKED = {".bz2": "--bzip2", ".gz": "--gzip", ".xz": "--xz"}
"""The options of tar for the tarballs of upstream and of Debian."""


def unpack(source: Source, folder: Path, work: CompileCommands) -> None:
    """Unpack the source tree into the empty folder `folder`. Raises CompileError or GitError."""
    if source.tarball is not None:
        packed = _PACKED[source.tarball.suffix]
        with source.tarball.open("rb") as file:  # which the user that compiles need not be able to read
            work.run("unpack", [*EXTRACT, packed, "--strip-components=1", "--file=-"], folder, file)
    elif source.commit is not None:
        with git.archive(source.commit) as stream:
            work.run("unpack", EXTRACT, folder, stream.stdout)


def apply_patches(patches: tuple[Patch, ...], folder: Path, work: CompileCommands, version: Version) -> None:
    """Apply the patches in order as `patch -p1` would, but without fuzz.

    Raises PatchError for the first patch that does not apply exactly to `version` after those before it, with
    file and line of the hunk.
    """
    for number, patch in enumerate(patches, start=1):
        started = work.log.stat().st_size
        # In no repository: one around this folder could be anybody's, and its filters would run.
        command = [*BASE, "--git-dir", NO_HOME, *APPLY, "--verbose", "-"]
        try:
            with patch.path.open("rb") as file:
                work.run("patch", command, folder, file)
        except CompileError as error:
            place = (number, len(patches))
            raise _patch_error(patch.path, place, version, work.log, started) from error


def _patch_error(patch: Path, place: tuple[int, int], version: Version, log: Path, start: int) -> PatchError:
    with log.open(errors="replace") as file:
        file.seek(start)
        return not_applying(patch, place, str(version), file.read(), log=str(log))


def masquerade(ccache: str, folder: Path) -> str:
    """Create links to ccache named `gcc`, `cc` and so on in `folder`, and return a PATH that begins with it.

    `CC="ccache gcc"` would be recorded in pg_config and in the makefiles of extensions, and so change what is
    installed. A link with the compiler's name leaves no trace.
    """
    folder.mkdir()
    for name in filter(shutil.which, ("cc", "c++", "gcc", "g++", "clang", "clang++")):
        (folder / name).symlink_to(ccache)
    return f"{folder}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
