"""The unprivileged users as which programs run when Tidemark runs as root: one for servers, one for compiles.

Whatever a commit under test brings, its makefiles or its server, runs without the rights of root. Compiles
have a user of their own, so that no measured server can change what is being compiled, or ccache.
"""

import os
import pwd
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from build import environment
from build.errors import TidemarkError, shell_line
from build.files import make_folder
from build.lock import held

SERVER_USER = "tidemark"
"""The system user that runs the servers if Tidemark itself runs as root; `$TIDEMARK_USER` overrides it."""

COMPILE_USER = "tidemark-build"
"""The system user that compiles if Tidemark runs as root."""

COMPILES = Path("/run/tidemark-build")
"""The folder with the lock of compiles that root starts. Only root may enter it."""

END_SECONDS = 30.0
"""The longest that killed processes may take to end, such as those that wait for a disk."""


class AccountError(TidemarkError):
    """There is no unprivileged user, or it cannot do what is needed of it."""


def server_account() -> pwd.struct_passwd | None:
    """Return the account that runs the servers; None for the current user if that is not root.

    Postgres' programs refuse to run as root. The account is created if it does not exist yet. Raises
    AccountError.
    """
    name = os.environ.get("TIDEMARK_USER", SERVER_USER)
    account = _account(name, "runs the servers") if os.geteuid() == 0 else None
    if account is not None and (account.pw_uid == 0 or name == COMPILE_USER):
        is_ = "root" if account.pw_uid == 0 else "the one that compiles"
        raise AccountError(f"the server user is {is_}", where="$TIDEMARK_USER", hint="name another user")
    return account


def compile_account() -> pwd.struct_passwd | None:
    """Return the account that compiles, created if it does not exist; None if this user is not root."""
    return _account(COMPILE_USER, "compiles") if os.geteuid() == 0 else None


def become(account: pwd.struct_passwd | None) -> list[str]:
    """Return the words before a command that run it as another user, without any other rights.

    Programs with the setuid bit, such as sudo, give it none either. No words without an account.
    """
    if account is None:
        return []
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        raise AccountError("setpriv is not installed", hint="run ./tidemark setup, which installs it")
    return [setpriv, *identity(account), "--no-new-privs", "--"]


def identity(account: pwd.struct_passwd) -> list[str]:
    """Return the options with which setpriv becomes another user and leaves all groups."""
    return [f"--reuid={account.pw_uid}", f"--regid={account.pw_gid}", "--clear-groups"]


def blocked_folder(path: Path) -> Path | None:
    """Return the first folder of `path`, itself included, that other users cannot enter; None without one."""
    for folder in [*reversed(path.parents), path]:
        if folder.is_dir() and not folder.stat().st_mode & 0o001:
            return folder
    return None


def require_access(account: pwd.struct_passwd | None, folder: Path) -> None:
    """Raise AccountError, which names the blocking folder, if an account cannot enter `folder`."""
    blocked = blocked_folder(folder) if account is not None else None
    if account is not None and blocked is not None:
        raise AccountError(
            f"the user {account.pw_name} has no access to {folder}",
            where=str(blocked),
            hint=f"run {shell_line('chmod', 'o+x', blocked)}, or use a folder that every user can access "
            "(TIDEMARK_HOME)",
        )


def _account(name: str, does: str) -> pwd.struct_passwd:
    with suppress(KeyError):
        return pwd.getpwnam(name)
    useradd = shutil.which("useradd", path=os.environ.get("PATH", "") + ":/usr/sbin")
    if useradd is None:
        raise AccountError(f"the user '{name}', who {does}, does not exist", hint=f"adduser {name}")
    options = ["--system", "--user-group", "--shell", "/usr/sbin/nologin", "--no-create-home"]
    done = subprocess.run(
        [useradd, *options, name],
        env=environment.measured(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    try:
        return pwd.getpwnam(name)  # which another process may have created meanwhile
    except KeyError:
        raise AccountError(
            f"the system user {name}, who {does}, cannot be created: {done.stderr.strip()[-500:]}",
            where=useradd,
            hint=f"adduser --system --group {name}",
        ) from None


def end_all(account: pwd.struct_passwd) -> None:
    """Kill every process of an account, and wait until they have ended. Raises AccountError.

    kill(2) with -1 reaches them all at once, so that none escapes by starting others. As root it would reach
    every process of the machine, so that the shell looks once more who it is.
    """
    subprocess.run(
        [*become(account), "sh", "-c", f'[ "$(id -u)" = {account.pw_uid} ] && kill -KILL -1'],
        env=environment.compiling(),
        stdin=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,  # there is none to kill
        check=False,
    )
    deadline = time.monotonic() + END_SECONDS
    while left := _alive(account.pw_uid):
        if time.monotonic() > deadline:
            raise AccountError(
                f"a process of {account.pw_name} does not end although it was killed",
                where=f"process {left[0]}",
                hint="check the disk that it waits for: ps -o stat,wchan,cmd -p PID",
            )
        time.sleep(0.02)


def _alive(user: int) -> list[int]:
    import psutil  # imported late: commands are parsed before packages are installed

    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if user in process.uids()[:2] and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process.pid)
    return found


@contextmanager
def compiling(below: Path, on_wait: Callable[[], None]) -> Iterator[pwd.struct_passwd | None]:
    """Yield the account that compiles in folders below `below`; None if this user is not root, and compiles.

    One compile at a time has that account, so that no compile can change another one, and so that all of its
    processes can be ended: before the context, what a killed Tidemark left, and after it. `on_wait` is called
    before another compile is waited for. Raises AccountError.
    """
    account = compile_account()
    if account is None:
        yield None
        return
    require_access(account, below)
    COMPILES.mkdir(mode=0o700, parents=True, exist_ok=True)
    with held(COMPILES / "lock", on_wait):
        end_all(account)
        try:
            yield account
        finally:
            end_all(account)


def make_workplace(scratch: Path, account: pwd.struct_passwd | None, *names: str) -> None:
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
