"""What may be in an archive that comes from another machine, checked before anything is unpacked."""

import os
import tarfile
from collections.abc import Callable
from pathlib import Path, PurePosixPath

from build.errors import TidemarkError


class MemberError(TidemarkError):
    """An archive holds what could write outside its folder, or is no part of a build."""


def check(tar: tarfile.TarFile, top: str) -> int:
    """Check every member; returns the bytes they unpack to.

    All have to be plain files, folders and links below the folder `top`, each name once. A link must not lead
    out of the tree, and nothing may lie behind a symbolic link: where such a path ends is known only once it
    is unpacked. Raises MemberError at the first offence.
    """
    entries: dict[str, tarfile.TarInfo] = {}
    for member in tar:
        name = _plain_name(member, top)
        if name in entries:
            raise _refused(member, "is there twice")
        if not (member.isfile() or member.isdir() or member.issym() or member.islnk()):
            raise _refused(member, "is neither file, folder nor link")
        if member.mode & 0o6000:
            raise _refused(member, "would run with its owner's rights")
        entries[name] = member
    links = {name for name, member in entries.items() if member.issym()}
    for name, member in entries.items():
        _check_path(member, PurePosixPath(name), top, links)
    return sum(member.size for member in entries.values())


def extract(tar: tarfile.TarFile, folder: Path) -> None:
    """Unpack a checked archive, owned by whoever unpacks it, readable by all."""
    trusted: Callable[[tarfile.TarInfo, str], tarfile.TarInfo] = _trusted
    # Newer Pythons filter by default and older ones know no filter: `check` has decided for all of them.
    tar.extraction_filter = trusted
    for member in tar:
        member.uid, member.gid, member.uname, member.gname = os.geteuid(), os.getegid(), "", ""
        member.mode |= 0o755 if member.isdir() or member.mode & 0o100 else 0o644
        tar.extract(member, folder, numeric_owner=True)


def _trusted(member: tarfile.TarInfo, folder: str) -> tarfile.TarInfo:
    del folder
    return member


def _plain_name(member: tarfile.TarInfo, top: str) -> str:
    parts = member.name.rstrip("/").split("/")
    if parts[0] != top or any(part in ("", ".", "..") for part in parts):
        raise _refused(member, f"does not lie below {top}/")
    return "/".join(parts)


def _check_path(member: tarfile.TarInfo, name: PurePosixPath, top: str, links: set[str]) -> None:
    if any(str(parent) in links for parent in name.parents):
        raise _refused(member, "lies behind a symbolic link")
    if member.islnk():
        # Hard links name their target from the archive's top.
        _follow(member, [], member.linkname, top, links)
        if member.linkname in links:
            raise _refused(member, "is a hard link to a symbolic link")
    elif member.issym():
        _follow(member, list(name.parent.parts), member.linkname, top, links)


def _follow(member: tarfile.TarInfo, start: list[str], target: str, top: str, links: set[str]) -> None:
    """Walk a link's target name by name; it must stay below `top` and pass no other symbolic link."""
    if target.startswith("/"):
        raise _refused(member, f"links to the absolute path {target}")
    at = list(start)
    for part in target.split("/"):
        if "/".join(at) in links:
            raise _refused(member, f"links through another symbolic link: {target}")
        if part == "..":
            at = at[:-1]
        elif part not in ("", "."):
            at.append(part)
        if not at or at[0] != top:
            raise _refused(member, f"links out of the tree: {target}")


def _refused(member: tarfile.TarInfo, why: str) -> MemberError:
    return MemberError(
        f"the archive is refused: {member.name!r} {why}", hint="do not use it; export the build anew"
    )
