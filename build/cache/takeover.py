"""Taking over what a compile has installed: as a copy that belongs to this user, checked as an archive is.

Makefiles can install whatever they like: links that lead out of the prefix, files that everybody may write.
"""

import os
import subprocess
import tarfile
from pathlib import Path

from build.cache import members, store
from build.files import make_folder
from build.programs import accounts
from build.programs.work import CompileCommands, CompileError

_MODES = "a+rX,go-w,ug-s,-t"
"""How tar changes the modes of files."""


def taken_over(installed: Path, scratch: Path, into: Path, work: CompileCommands) -> Path:
    """Return a copy, in the folder `into`, of the tree that the commands of `work` have installed.

    Everything in it belongs to the current user, who alone may write to it, and no link leads out of it. It
    is packed with the rights of the user that compiled, into a file in the folder `scratch`. Raises
    CompileError if the tree has what no build contains.
    """
    packed = scratch / "installed.tar"
    words = ["tar", "--create", "--format=gnu", f"--mode={_MODES}", "--directory", str(installed.parent)]
    with packed.open("wb") as archive:
        done = subprocess.run(
            [*accounts.become(work.account), *words, "--", installed.name],
            env=dict(work.environment),
            stdin=subprocess.DEVNULL,
            stdout=archive,
            stderr=subprocess.PIPE,
            check=False,
        )
    if done.returncode != 0:
        said = " ".join(done.stderr.decode(errors="replace").split())[-500:]
        raise work.failure("install", f"what is installed cannot be read: {said}")
    with tarfile.open(packed) as archived:
        try:
            members.check(archived, installed.name)
            members.extract(archived, make_folder(into))
        except members.MemberError as error:
            raise CompileError(
                f"{work.label}: what is installed is no build: {error.what}",
                where=str(work.log),
                hint="see in the log what its makefiles install",
            ) from error
    packed.unlink()
    tree = into / installed.name
    for name in (store.MANIFEST, store.IMPORTED):
        if os.path.lexists(tree / name):
            raise work.failure("install", f"it installs {name}, which only Tidemark writes")
    return tree
