"""Running git: its environment, its limits of time, and its errors."""

import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from build.addresses import redacted
from build.errors import TidemarkError
from build.programs.work import end_group
from build.sources import certificates

LOCAL_SECONDS = 600.0
"""Time limit of git commands that need no network."""

SLOW_BYTES, SLOW_SECONDS = 1000, 60
"""A transfer that stays below this rate in bytes/s for this many seconds is aborted."""

TRANSPORTS = ("file", "https", "ssh")
"""The protocols that git may use. Over `git` and `http` whoever is on the way can replace what is compiled;
others, such as `ext` and `fd`, run programs or wait for what another process has opened."""

_UNREACHABLE = "check the address, and that it can be reached from this machine"

BASE = (
    *("git", "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "log.showSignature=false"),
    *("-c", "gc.auto=0"),
)
"""How every command begins: without the hooks, the monitor and the gpg that a configuration may name."""

_SLOW_LIMIT = ("-c", f"http.lowSpeedLimit={SLOW_BYTES}", "-c", f"http.lowSpeedTime={SLOW_SECONDS}")


_REF = re.compile(r"From |POST git-| [ +*t=-] .* -> ")
"""What a fetch says of refs that were updated, which is no error."""


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
    # A password of the history, too, which another process of this user can read while git runs.
    unwanted = {*_OF_A_REPOSITORY, *(name for name in os.environ if name.startswith("PG"))}
    kept = {name: value for name, value in os.environ.items() if name not in unwanted}
    ssh = kept.get("GIT_SSH_COMMAND", "ssh -o BatchMode=yes -o ConnectTimeout=10")
    quiet = {"GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": "true", "GIT_SSH_COMMAND": ssh, "LC_ALL": "C"}
    # Holds for addresses that a configuration of git or a server's redirect puts in place of ours, too.
    allowed = {"GIT_ALLOW_PROTOCOL": ":".join(TRANSPORTS)}
    return {**kept, **quiet, **allowed, **certificates.git_environment()}


def run(
    *arguments: str,
    git_dir: Path | None,
    work_tree: Path | None = None,
    folder: Path | None = None,
    seconds: float | None = None,
    variables: Mapping[str, str] | None = None,
) -> str:
    """Return the output of a git command in the repository `git_dir`, and in its `work_tree`.

    Without either it is that at `folder`, or above it, or none.

    `variables` are added to the environment.

    Raises GitError with git's message, and when it takes longer than `seconds`, by default LOCAL_SECONDS.
    """
    where = ["-C", str(work_tree or folder or "/")]
    where += [] if work_tree is None else ["--work-tree", str(work_tree)]
    where += [] if git_dir is None else ["--git-dir", str(git_dir.absolute())]
    command = [*BASE, *_SLOW_LIMIT, *where, *arguments]
    limit = LOCAL_SECONDS if seconds is None else seconds
    name = arguments[0]
    process = _started(command, variables or {})
    try:
        output, told = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        raise GitError(
            f"git {name} took longer than {limit:g} s and was stopped",
            where=str(git_dir or ""),
            hint="check that the repository can be reached; a fetch starts again from the beginning",
        ) from None
    finally:
        end_group(process)
    if process.returncode != 0:
        errors = "\n".join(line for line in told.splitlines() if not _REF.match(line))
        hint = _UNREACHABLE if name in ("fetch", "ls-remote") else ""
        if "certificate" in errors:
            hint = certificates.HINT
        if "transport '" in errors and "not allowed" in errors:
            hint = f"git reads through {', '.join(TRANSPORTS)} only: check the address, and those that your "
            hint += "configuration of git or the server puts in its place"
        raise GitError(f"git {name} failed", where=redacted(errors.strip())[-1000:], hint=hint)
    return output


def _started(command: Sequence[str], variables: Mapping[str, str]) -> subprocess.Popen[str]:
    try:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            env={**_environment(), **variables},
            umask=0o022,
            # In a process group of its own, git ends together with its transport, which keeps our pipes open.
            start_new_session=True,
        )
    except FileNotFoundError as error:
        raise GitError("git is not installed", hint="install it (Debian: apt-get install git)") from error
