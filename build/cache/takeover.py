"""Taking over trees that others have made: what a compile has installed, and what an archive holds.

Both can be whatever somebody likes: with links that lead out of the prefix, and files that everybody may
write. Everything is checked before it is unpacked, as files of this user.
"""

import os
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path, PurePosixPath

from build import accounts
from build.cache import store
from build.compile_commands import CompileCommands, CompileError
from build.errors import TidemarkError
from build.files import make_folder

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
            check_members(archived, installed.name)
            extract_members(archived, make_folder(into))
        except MemberError as error:
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


class MemberError(TidemarkError):
    """An archive has a member that could write outside its folder, or that no build contains."""


def check_members(tar: tarfile.TarFile, top: str = "") -> tuple[str, int]:
    """Check every member; return their only folder at the top, and their unpacked size in bytes.

    It is that of the first member unless `top` names it. Members must be regular files, folders and links
    below it, with distinct names. A link must not leave the tree, and no member's path may pass through a
    symbolic link, because the target of such a path is known only after unpacking. Raises MemberError for the
    first member that violates this.
    """
    entries: dict[str, tarfile.TarInfo] = {}
    for member in tar:
        top = top or member.name.partition("/")[0]
        name = _plain_name(member, top)
        if name in entries:
            raise _refused(member, "occurs twice")
        if not (member.isfile() or member.isdir() or member.issym() or member.islnk()):
            raise _refused(member, "is neither a file nor a folder nor a link")
        if member.mode & 0o6000:
            raise _refused(member, "has the setuid or setgid bit")
        entries[name] = member
    links = {name for name, member in entries.items() if member.issym()}
    for name, member in entries.items():
        _check_path(member, PurePosixPath(name), top, links)
    return top, sum(member.size for member in entries.values())


def extract_members(tar: tarfile.TarFile, folder: Path) -> None:
    """Unpack a checked archive into `folder`: the current user owns it and alone may write, all may read."""
    no_filter: Callable[[tarfile.TarInfo, str], tarfile.TarInfo] = _no_filter
    # Newer versions of Python filter by default, older ones have no filter. `check_members` replaces it.
    tar.extraction_filter = no_filter
    for member in tar:
        member.uid, member.gid, member.uname, member.gname = os.geteuid(), os.getegid(), "", ""
        member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
        tar.extract(member, folder, numeric_owner=True)


def _no_filter(member: tarfile.TarInfo, folder: str) -> tarfile.TarInfo:
    del folder
    return member


def _plain_name(member: tarfile.TarInfo, top: str) -> str:
    parts = member.name.rstrip("/").split("/")
    if parts[0] != top or any(part in ("", ".", "..") for part in parts):
        raise _refused(member, f"is not below {top}/")
    return "/".join(parts)


def _check_path(member: tarfile.TarInfo, name: PurePosixPath, top: str, links: set[str]) -> None:
    if any(str(parent) in links for parent in name.parents):
        raise _refused(member, "has a path through a symbolic link")
    if member.islnk():
        # The target of a hard link is relative to the archive's root.
        _follow(member, [], member.linkname, top, links)
        if member.linkname in links:
            raise _refused(member, "is a hard link to a symbolic link")
    elif member.issym():
        _follow(member, list(name.parent.parts), member.linkname, top, links)


def _follow(member: tarfile.TarInfo, start: list[str], target: str, top: str, links: set[str]) -> None:
    """Check the target of a link: it must stay below `top`, and pass through no other symbolic link."""
    if target.startswith("/"):
        raise _refused(member, f"links to the absolute path {target}")
    at = list(start)
    for part in target.split("/"):
        if "/".join(at) in links:
            raise _refused(member, f"links to {target} through another symbolic link")
        if part == "..":
            at = at[:-1]
        elif part not in ("", "."):
            at.append(part)
        if not at or at[0] != top:
            raise _refused(member, f"links to {target}, outside the tree")


def _refused(member: tarfile.TarInfo, reason: str) -> MemberError:
    return MemberError(
        f"the archive is refused: {member.name!r} {reason}",
        hint="do not use this archive; export the build again",
    )
