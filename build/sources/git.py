"""Git sources: one bare mirror per repository, used for all commits that are compiled from it."""

import hashlib
import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from build.addresses import redacted, without_secrets
from build.errors import TidemarkError
from build.files import make_folder
from build.home import Home
from build.lock import held
from build.version import Engine, split_steps
from build.work import end_group

FETCH_SECONDS = 2 * 3600.0
"""Time limit for updating a mirror; the first fetch downloads the whole history of an engine."""

LOCAL_SECONDS = 600.0
"""Time limit of git commands that need no network."""

SLOW_BYTES, SLOW_SECONDS = 1000, 60
"""A transfer that stays below this rate in bytes/s for this many seconds is aborted."""

_HEX = re.compile(r"[0-9a-f]{7,40}")


class GitError(TidemarkError):
    """A git source cannot be read, or has no such ref."""


@dataclass(frozen=True)
class Commit:
    """One commit that is in the mirror."""

    mirror: Path
    commit: str
    """40 hex digits."""

    tree: str
    """40 hex digits of the commit's tree, which is the content that is compiled."""


@dataclass(frozen=True)
class Mirror:
    """A bare repository in the source cache that mirrors one git source."""

    url: str
    """A URL that git supports, or a local path."""

    path: Path

    @property
    def shown(self) -> str:
        """The URL as it may appear in logs and manifests: without passwords and tokens."""
        return without_secrets(self.url)

    def find(self, ref: str) -> Commit | None:
        """Return a commit or tag that the mirror already has, without network: neither ever changes.

        Return None if the mirror does not have it, or if it is a branch. Raises GitError if an abbreviated
        commit name is ambiguous.
        """
        if not self.path.is_dir():
            return None
        if is_commit_name(split_steps(ref)[0]):
            commit = self._resolve(ref)
            if commit is not None:
                return commit
        return self._resolve(f"refs/tags/{ref}")

    def fetch(self, ref: str) -> Commit:
        """Update the mirror, which downloads only what is new, and return the commit of `ref`.

        Raises GitError if the source cannot be reached or has no such tag, branch or commit.
        """
        with held(self.path.parent / ".locks" / self.path.name):
            self._create()
            # '+' also follows branches that were rewound. A tag stays as it was first fetched.
            self._fetch("+refs/heads/*:refs/heads/*", "refs/tags/*:refs/tags/*")
            commit = self.find(ref) or self._resolve(f"refs/heads/{ref}")
            base, _ = split_steps(ref)
            if commit is None and len(base) == 40 and is_commit_name(base):
                # No branch leads to it (any more), but servers give out a commit by its full name.
                self._fetch(base)
                commit = self._resolve(ref)
        if commit is None:
            raise GitError(f"no tag, branch or commit '{ref}'", where=self.shown)
        return commit

    def read(self, commit: Commit, name: str) -> str:
        """Return the text of the file `name` in a commit. Raises GitError if there is no such file."""
        return _git("cat-file", "blob", f"{commit.commit}:{name}", mirror=self.path)

    def query(self, *arguments: str) -> str:
        """Return the output of a git command that only reads. Raises GitError with git's message."""
        return _git(*arguments, mirror=self.path)

    def _create(self) -> None:
        if not (self.path / "HEAD").exists():
            make_folder(self.path)
            _git("init", "--quiet", "--bare", mirror=self.path)

    def _fetch(self, *refspecs: str) -> None:
        _git(
            "fetch",
            "--quiet",
            "--no-tags",
            "--no-write-fetch-head",
            "--",
            self.url,
            *refspecs,
            mirror=self.path,
            seconds=FETCH_SECONDS,
        )

    def _resolve(self, ref: str) -> Commit | None:
        parse = ("rev-parse", "--verify", "--quiet", "--end-of-options")
        try:
            commit = _git(*parse, f"{ref}^{{commit}}", mirror=self.path)
            tree = _git(*parse, f"{ref}^{{tree}}", mirror=self.path)
        except GitError as error:
            if "ambiguous" in error.where:
                raise GitError(
                    f"'{ref}' is ambiguous: several commits begin with it",
                    where=self.shown,
                    hint="give more digits of the commit",
                ) from error
            return None
        return Commit(self.path, commit.strip(), tree.strip())


def mirror(url: str, engine: Engine, home: Home) -> Mirror:
    """Return the mirror of a git source, without fetching anything.

    Raises GitError if `url` is empty or could be mistaken for an option of git.
    """
    if not url or url.startswith("-"):
        raise GitError(f"'{url}' is not the URL or path of a git repository")
    if Path(url).exists():
        url = str(Path(url).resolve())
    name = f"{engine}-{hashlib.sha256(url.encode()).hexdigest()[:12]}.git"
    return Mirror(url, home.sources / "git" / name)


def is_commit_name(ref: str) -> bool:
    """Return whether `ref` is a full or abbreviated commit name, which is the same in every clone."""
    return _HEX.fullmatch(ref) is not None


@contextmanager
def archive(commit: Commit) -> Iterator[subprocess.Popen[bytes]]:
    """Run `git archive` for a commit, and yield the process, whose standard output is a tar stream.

    Raises GitError if git archive fails.
    """
    command = [*_BASE, "--git-dir", str(commit.mirror), "archive", "--format=tar", commit.commit]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, env=_environment()) as process:
        yield process
        errors = process.stderr.read().decode(errors="replace").strip() if process.stderr else ""
    if process.returncode != 0:
        raise GitError(f"git archive of {commit.commit} failed", where=redacted(errors)[-1000:])


# ext:: URLs run arbitrary commands, and so would a hook in the mirror.
_BASE = ("git", "-c", "protocol.ext.allow=never", "-c", "core.hooksPath=/dev/null", "-c", "gc.auto=0")
_SLOW_LIMIT = ("-c", f"http.lowSpeedLimit={SLOW_BYTES}", "-c", f"http.lowSpeedTime={SLOW_SECONDS}")


def _environment() -> dict[str, str]:
    # Without a terminal prompt, a private repository is an error instead of a night of waiting.
    kept = {name: value for name, value in os.environ.items() if name not in ("GIT_DIR", "GIT_WORK_TREE")}
    ssh = kept.get("GIT_SSH_COMMAND", "ssh -o BatchMode=yes -o ConnectTimeout=10")
    return {**kept, "GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": "true", "GIT_SSH_COMMAND": ssh, "LC_ALL": "C"}


def _git(*arguments: str, mirror: Path, seconds: float | None = None) -> str:
    command = [*_BASE, *_SLOW_LIMIT, "--git-dir", str(mirror), *arguments]
    limit = LOCAL_SECONDS if seconds is None else seconds
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            env=_environment(),
            umask=0o022,
            # In a process group of its own, git ends together with its transport, which keeps our pipes open.
            start_new_session=True,
        )
    except FileNotFoundError as error:
        raise GitError("git is not installed", hint="install it (Debian: apt-get install git)") from error
    try:
        output, errors = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        raise GitError(
            f"git {arguments[0]} took longer than {limit:g} s and was stopped",
            where=str(mirror),
            hint="check that the repository can be reached; a fetch starts again from the beginning",
        ) from None
    finally:
        end_group(process)
    if process.returncode != 0:
        raise GitError(f"git {arguments[0]} failed", where=redacted(errors.strip())[-1000:])
    return output
