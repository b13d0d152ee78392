"""Starting programs as an unprivileged user, and ensuring that they end with Tidemark."""

import contextlib
import fcntl
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO

import psutil

from build import environment
from build.accounts import (
    AccountError,
    become,
    blocked_folder,
    identity,
    require_access,
    server_account,
)
from build.errors import TidemarkError, shell_line
from build.files import open_checked, remove_folder

RUN_SECONDS = 600.0
"""Time limit of a program that is run to its end, such as initdb."""

LONGEST_LINE = 300
"""Characters of a line of a program's output that are told: a statement can have thousands."""

LOST_FOLDER = "could not change directory"
"""What psql and pg_restore before 16 say that cannot return by its path to the folder where they began."""

PREFERRED_NICE = -15
"""The niceness of what is to run at once: below that of servers and clients, which have 0."""


class ProcessError(TidemarkError):
    """A program is missing, failed, or cannot run as the unprivileged user."""


def require_reachable(path: Path) -> None:
    """Raise AccountError, which names the blocking folder, if the server user has no access to `path`."""
    require_access(server_account(), path)


def require_readable(prefix: Path, folders: Sequence[str]) -> None:
    """Raise ProcessError, which names it, if the server user cannot read a file in `folders` of a prefix.

    The user itself looks: until a program has started, setpriv still has the rights of root.
    """
    inside = [prefix / name for name in folders if (prefix / name).is_dir()]
    search: list[str | Path] = ["find", "-L", *inside, "-type", "f", "!", "-readable", "-print", "-quit"]
    try:
        unreadable = run(as_server_user(search), what="reading the install prefix").strip()
    except ProcessError as error:
        unreadable = tail(error.what, 1).strip()
    if unreadable:
        blocked = blocked_folder(prefix)
        access = shell_line("chmod", "o+x", blocked) if blocked else shell_line("chmod", "-R", "o+rX", prefix)
        raise ProcessError(
            f"the user that runs the servers cannot read all of {prefix}",
            where=unreadable,
            hint=f"run {access}",
        )


def require_files(program: Path, folder: Path, names: Sequence[str]) -> None:
    """Raise AccountError, which names it, if a client that starts in `folder` cannot read one of its files.

    It need not be able to enter the folders around it, unless its `program` returns there by the whole path.
    """
    account = server_account()
    if account is None:
        return
    if LOST_FOLDER in run([program, "--version"], what=program.name, cwd=folder, account=account):
        require_access(account, folder)
    search = ["find", "-L", *(f"./{name}" for name in names), "!", "-readable", "-print", "-quit"]
    try:
        unreadable = run(search, what="find", cwd=folder, account=account).strip()
    except ProcessError:  # a folder cannot be entered
        inside = ((folder / name).parents for name in names)
        around = [path for parents in inside for path in parents if path.is_relative_to(folder)]
        targets = ((folder / name).resolve().parent for name in names)  # of links
        closed = (path for path in around if not path.stat().st_mode & 0o001)
        path = next(filter(None, (*closed, *map(blocked_folder, targets))), folder)
        mode = ["o+x"]
    else:
        path = folder / unreadable
        mode = ["-R", "o+rX"] if path.is_dir() else ["o+r"]
        if not unreadable:
            return
    raise AccountError(
        f"the user {account.pw_name}, who runs {program.name}, cannot read {' or '.join(names)}",
        where=str(path),
        hint=f"run {shell_line('chmod', *mode, path)}",
    )


@contextlib.contextmanager
def client_folder(prefix: str) -> Iterator[Path]:
    """Return a context with a temporary folder that the server user may enter and only this user change."""
    folder, account = Path(tempfile.mkdtemp(prefix=prefix)), server_account()
    try:
        if account is not None:
            os.chown(folder, -1, account.pw_gid)
            folder.chmod(0o750)
        yield folder
    finally:
        remove_folder(folder)


def log_folder(folder: Path) -> Path:
    """Make a folder of the server user in another folder, and return its path."""
    made = Path(tempfile.mkdtemp(dir=folder))
    own(made)
    return made


def own(path: Path) -> None:
    """Make the server user the owner of `path`."""
    account = server_account()
    if account is not None:
        os.chown(path, account.pw_uid, account.pw_gid, follow_symlinks=False)


def write_for_server(path: Path, text: str) -> None:
    """Write a file in a folder of the server user, with the rights of that user; nobody else may read it.

    That user could replace every folder on the way by a link, which root would follow. Raises ProcessError.
    """
    if server_account() is None:
        path.touch(mode=0o600)
        path.write_text(text, encoding="utf-8")
        return
    try:
        done = subprocess.run(
            as_server_user(["tee", path]),
            input=text.encode(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=RUN_SECONDS,
            check=False,
            env=environment.measured(),
            umask=0o077,
        )
    except subprocess.TimeoutExpired:  # a pipe that nobody reads
        raise ProcessError(
            f"the file could not be written within {RUN_SECONDS:g} s", where=str(path)
        ) from None
    if done.returncode != 0:
        said = with_output("the file cannot be written", done.stderr.decode(errors="replace"))
        raise ProcessError(said, where=str(path))


def delete_in(folder: Path, pattern: str) -> None:
    """Delete files in a folder of the server user with that user's rights: a link could lie in its place.

    Raises ProcessError.
    """
    delete: list[str | Path] = ["find", folder, "-maxdepth", "1", "-name", pattern, "-delete"]
    run(as_server_user(delete), what=f"deleting {pattern}")


def open_log(path: Path) -> IO[bytes]:
    """Open the log of a server for appending; one that is missing is created for the server user.

    Its folder belongs to the server user. Raises ProcessError when something else than a file is there.
    """
    account = server_account()
    try:
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            if account is not None:
                os.fchown(descriptor, account.pw_uid, account.pw_gid)
        except FileExistsError:
            descriptor = open_checked(path, writable=True)
            if account is not None and os.fstat(descriptor).st_uid != account.pw_uid:
                os.close(descriptor)
                raise ProcessError("the log belongs to somebody else", where=str(path)) from None
        fcntl.fcntl(descriptor, fcntl.F_SETFL, fcntl.fcntl(descriptor, fcntl.F_GETFL) | os.O_APPEND)
    except OSError as error:
        raise ProcessError(f"the log cannot be opened: {error.strerror}", where=str(path)) from error
    return os.fdopen(descriptor, "wb")


def as_server_user(argv: Sequence[str | Path], dies_by: str = "INT") -> list[str]:
    """Return the command line that runs `argv` as the server user and ends it if Tidemark dies.

    setpriv makes the kernel send the signal `dies_by` to the program when its parent ends, so that servers
    end even after `kill -9` of Tidemark. SIGINT is Postgres' fast shutdown. The parent is the thread that
    started the program.
    """
    account = server_account()
    as_user = identity(account) if account is not None else []
    return [tool("setpriv"), *as_user, f"--pdeathsig={dies_by}", "--", *map(str, argv)]


def tool(name: str) -> str:
    """Return the path of a program of the system or of a Python package. Raises ProcessError if missing."""
    # Debian has servers in /usr/sbin, which is not in everybody's path.
    places = (None, "/usr/sbin", Path(sys.executable).parent)
    path = next(filter(None, (shutil.which(name, path=place) for place in places)), None)
    if path is None:
        raise ProcessError(f"{name} is not installed", hint="run ./tidemark setup, which installs it")
    return path


def start(
    argv: Sequence[str | Path],
    log: IO[bytes] | int,
    *,
    bound_to: Collection[int] | None = None,
    stdin: int = subprocess.DEVNULL,
    env: Mapping[str, str] | None = None,
    account: pwd.struct_passwd | None = None,
    **options: object,
) -> "subprocess.Popen[bytes]":
    """Start `argv` in a session of its own, so that Ctrl-C reaches only Tidemark, which then stops it.

    The program and its children run only on the cores `bound_to`; None does not restrict them. `env` is added
    to the few variables that measured programs get (build.environment). With an `account` it has
    no rights but those of this user; `cwd` is entered before.
    """
    with _on(bound_to):
        process: subprocess.Popen[bytes] = subprocess.Popen(  # type: ignore[call-overload]
            [*become(account), *map(str, argv)],
            stdout=log,
            stdin=stdin,
            env=environment.measured(env),
            start_new_session=True,
            **options,
        )
    return process


@contextlib.contextmanager
def _on(cores: Collection[int] | None) -> Iterator[None]:
    """Run the block, and the programs that it starts, on `cores`.

    Binding a program after its start could miss threads and children that it already has.
    """
    if cores is None:
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def run(
    argv: Sequence[str | Path],
    *,
    what: str,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    seconds: float | None = None,
    stdin: IO[bytes] | int = subprocess.DEVNULL,
    account: pwd.struct_passwd | None = None,
) -> str:
    """Run a short program to its end, and return its output; `env` and `account` are those of `start`.

    Raises ProcessError with the last lines of the output if the program fails, or takes longer than `seconds`
    (default: RUN_SECONDS). `what` says in error messages what the program does.
    """
    limit = RUN_SECONDS if seconds is None else seconds
    process = subprocess.Popen(
        [*become(account), *map(str, argv)],
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        cwd=cwd,
        env=environment.measured(env),
        text=True,
        errors="replace",
    )
    try:
        output, _ = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        stop(process, patience=1)
        raise ProcessError(
            f"{what} took longer than {limit:g} s and was stopped",
            where=str(argv[0]),
            hint="check whether the disk is overloaded or full",
        ) from None
    except BaseException:
        stop(process)
        raise
    if process.returncode != 0:
        failure = f"{what} failed with exit status {process.returncode}"
        raise ProcessError(with_output(failure, output), where=str(argv[0]))
    return output


def with_output(what: str, output: str) -> str:
    """Return what failed with the last lines of the program's output, if it has any."""
    said = tail(output)
    return f"{what}; it said:\n{said}" if said else what


def tail(text: str, lines: int = 20) -> str:
    """Return the last `lines` lines of `text`, each up to LONGEST_LINE characters.

    A line that is repeated, as by each thread of a load generator, is given once, where it was last.
    """
    cut = [line if len(line) <= LONGEST_LINE else f"{line[:LONGEST_LINE]}…" for line in text.splitlines()]
    last = dict.fromkeys(reversed(list(map(str.rstrip, cut))))
    return "\n".join(list(reversed([line for line in last if line]))[-lines:])


def tail_of(log: Path, lines: int = 20) -> str:
    """Return the last `lines` lines of a log file, or the reason why it cannot be read."""
    try:
        with os.fdopen(open_checked(log), "rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - 16384))
            return tail(file.read().decode(errors="replace"), lines)
    except OSError as error:
        return f"no log: {error}"


def exit_reason(status: int) -> str:
    """Return how a program ended, such as `exit status 1` or `killed by SIGKILL`."""
    return f"killed by {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"


def stop(process: "subprocess.Popen[bytes] | subprocess.Popen[str]", patience: float = 5) -> None:
    """End a program by SIGTERM, and after `patience` seconds its whole group by SIGKILL."""
    if process.poll() is None:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(patience)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, 9)
    process.wait()


def tree_of(pid: int) -> list[int]:
    """Return the process ids of a process and all its descendants."""
    try:
        root = psutil.Process(pid)
        return [pid, *(child.pid for child in root.children(recursive=True))]
    except psutil.Error:
        return [pid]


def prefer(task: int) -> None:
    """Have the kernel run a process or thread as soon as it is ready, where this user may raise its priority.

    What looks at a machine whose cores are all taken would otherwise see it when one of them becomes free.
    """
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, task, PREFERRED_NICE)


def bind(pid: int, cores: Collection[int]) -> None:
    """Let a process, its descendants and all their threads run on `cores` only, now and later.

    What they start inherits it. Threads and processes that end meanwhile are left out.
    """
    for process in tree_of(pid):
        with contextlib.suppress(OSError):
            for thread in Path(f"/proc/{process}/task").iterdir():
                with contextlib.suppress(OSError):
                    os.sched_setaffinity(int(thread.name), cores)


def processes_in(folder: Path) -> Iterator[psutil.Process]:
    """Yield the processes whose working directory is `folder`.

    All processes of a Postgres server run in its data directory. Each one is a session leader, so that they
    are not in one process group.
    """
    wanted = str(folder.resolve())
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.cwd() == wanted:
                yield process


def kill_processes_in(folder: Path, patience: float = 5) -> None:
    """Kill every process whose working directory is `folder`; wait up to `patience` seconds."""
    killed = list(processes_in(folder))
    for process in killed:
        with contextlib.suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(killed, timeout=patience)
