"""Running git: its environment, its limits of time, and its errors."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from build.addresses import redacted
from build.errors import TidemarkError
from build.programs.work import end_group
from build.progress import ProgressTask, SilentTask
from build.sources import certificates
from build.sources.transfer_progress import transfer_messages

LOCAL_SECONDS = 600.0
"""Time limit of git commands that need no network."""

SLOW_BYTES, SLOW_SECONDS = 1000, 60
"""A transfer that stays below this rate in bytes/s for this many seconds is aborted."""

TRANSPORTS = ("file", "git", "http", "https", "ssh")
"""The protocols that git may use: those that git itself trusts. Others, such as `ext` and `fd`, run programs
or wait for what another process has opened."""

_UNREACHABLE = "check the address, and that it can be reached from this machine"

# A hook in the mirror would run arbitrary commands.
BASE = ("git", "-c", "core.hooksPath=/dev/null", "-c", "gc.auto=0")
"""How every command begins."""

_SLOW_LIMIT = ("-c", f"http.lowSpeedLimit={SLOW_BYTES}", "-c", f"http.lowSpeedTime={SLOW_SECONDS}")


class GitError(TidemarkError):
    """A git source cannot be read, or has no such ref."""


class NoSuchRefError(GitError):
    """A git source was read, and has no such tag, branch or commit."""


_OF_A_REPOSITORY = (
    *("GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_INDEX_FILE", "GIT_PREFIX"),
    *("GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES"),
)
"""What a hook of git, or a script of a person, has in its environment, and is about another repository."""


def _environment() -> dict[str, str]:
    # Without a terminal prompt, a private repository is an error instead of a night of waiting.
    kept = {name: value for name, value in os.environ.items() if name not in _OF_A_REPOSITORY}
    ssh = kept.get("GIT_SSH_COMMAND", "ssh -o BatchMode=yes -o ConnectTimeout=10")
    quiet = {"GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": "true", "GIT_SSH_COMMAND": ssh, "LC_ALL": "C"}
    # Holds for addresses that a configuration of git or a server's redirect puts in place of ours, too.
    allowed = {"GIT_ALLOW_PROTOCOL": ":".join(TRANSPORTS)}
    return {**kept, **quiet, **allowed, **certificates.git_environment()}


# Whoever works there keeps the index as it is, and no program that the repository names is started.
_READ_ONLY = ("--no-optional-locks", "-c", "core.fsmonitor=false", "-c", "diff.autoRefreshIndex=false")


def run(
    *arguments: str,
    git_dir: Path | None,
    work_tree: Path | None = None,
    seconds: float | None = None,
    task: ProgressTask | None = None,
) -> str:
    """Return the output of a git command in the repository `git_dir`, or in none, and in its `work_tree`.

    `task` shows how far a transfer is that was asked for with --progress.

    Raises GitError with git's message, and when it takes longer than `seconds`, by default LOCAL_SECONDS.
    """
    where = [] if work_tree is None else [*_READ_ONLY, "--work-tree", str(work_tree)]
    where += [] if git_dir is None else ["--git-dir", str(git_dir)]
    command = [*BASE, *_SLOW_LIMIT, *where, *arguments]
    limit = LOCAL_SECONDS if seconds is None else seconds
    name = arguments[0]
    with transfer_messages(task or SilentTask()) as messages:
        process = _started(command, messages.stream)
        try:
            output, _ = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            raise GitError(
                f"git {name} took longer than {limit:g} s and was stopped",
                where=str(git_dir or ""),
                hint="check that the repository can be reached; a fetch starts again from the beginning",
            ) from None
        finally:
            end_group(process)
        errors = messages.text()
    if process.returncode != 0:
        hint = _UNREACHABLE if name in ("fetch", "ls-remote") else ""
        if "certificate" in errors:
            hint = certificates.HINT
        raise GitError(f"git {name} failed", where=redacted(errors.strip())[-1000:], hint=hint)
    return output


def _started(command: Sequence[str], stderr: int) -> subprocess.Popen[str]:
    try:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            errors="replace",
            env=_environment(),
            umask=0o022,
            # In a process group of its own, git ends together with its transport, which keeps our pipes open.
            start_new_session=True,
        )
    except FileNotFoundError as error:
        raise GitError("git is not installed", hint="install it (Debian: apt-get install git)") from error
