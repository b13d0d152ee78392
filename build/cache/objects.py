"""The objects that ccache has kept of earlier compiles: who may add to them when root compiles.

A commit that is compiled runs what its makefiles say, as the user that may write to ccache. It could store
objects that do not belong to its own sources, and later compiles would take them. Patches therefore read
ccache and cannot write to it; commits of a repository can.
"""

import os
import pwd
import stat
from pathlib import Path

from build.files import make_folder

_SHARED, _OF_COMPILES, _UNKNOWN = 0o750, 0o700, 0o000


def prepare(folder: Path, account: pwd.struct_passwd, *, writable: bool) -> None:
    """Make the folder of ccache one that an account may read, and also write to with `writable`.

    No process of the account exists yet. The mode of the folder says which it is, so that the owner of
    thousands of files changes only when patched and other compiles alternate. No other user can enter it.
    """
    folder = make_folder(folder).resolve()
    owner, mode = (account.pw_uid, _OF_COMPILES) if writable else (0, _SHARED)
    found = folder.stat()
    if (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)) == (owner, account.pw_gid, mode):
        return
    os.chown(folder, 0, account.pw_gid)
    folder.chmod(_UNKNOWN)  # while this is going on, and after it was interrupted
    for _, folders, files, place in os.fwalk(folder):
        for name in (*folders, *files):
            about = os.stat(name, dir_fd=place, follow_symlinks=False)
            if stat.S_ISDIR(about.st_mode) or (stat.S_ISREG(about.st_mode) and about.st_nlink == 1):
                os.chown(name, owner, account.pw_gid, dir_fd=place, follow_symlinks=False)
            else:
                os.unlink(name, dir_fd=place)  # a lock that was left, or what ccache never makes
    os.chown(folder, owner, account.pw_gid)
    folder.chmod(mode)
