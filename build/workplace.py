"""Where root's compiles work: folders and a turn of the user that compiles."""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from pwd import struct_passwd

from build.files import make_folder
from build.lock import held
from build.programs import accounts

COMPILES = Path("/run/tidemark-build")
"""The folder with the lock of compiles that root starts. Only root may enter it."""


@contextmanager
def compiling(below: Path, on_wait: Callable[[], None]) -> Iterator[struct_passwd | None]:
    """Yield the account that compiles in folders below `below`; None if this user is not root, and compiles.

    One compile at a time has that account, so that no compile can change another one, and so that all of its
    processes can be ended: before the context, what a killed Tidemark left, and after it. `on_wait` is called
    before another compile is waited for. Raises AccountError.
    """
    account = accounts.compile_account()
    if account is None:
        yield None
        return
    accounts.require_access(account, below)
    COMPILES.mkdir(mode=0o700, parents=True, exist_ok=True)
    with held(COMPILES / "lock", on_wait):
        accounts.end_all(account)
        try:
            yield account
        finally:
            accounts.end_all(account)


def make_workplace(scratch: Path, account: struct_passwd | None, *names: str) -> None:
    """Make an empty folder that no other user may enter, with folders `names` that belong to an account.

    Without an account they belong to the current user, and others may read them.
    """
    shutil.rmtree(scratch, ignore_errors=True)  # A killed process may have left it.
    make_folder(scratch)
    if account is not None:
        scratch.chmod(0o710)
        os.chown(scratch, -1, account.pw_gid)
    for name in names:
        make_folder(scratch / name)
        if account is not None:
            os.chown(scratch / name, account.pw_uid, account.pw_gid)
