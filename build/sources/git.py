"""Git sources: one bare mirror per repository, shared by every commit that is compiled from it."""

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
"""How long bringing a mirror up to date may take: the first time it is all of an engine's history."""

LOCAL_SECONDS = 600.0
"""How long git may take for anything that it needs no network for."""

SLOW_BYTES, SLOW_SECONDS = 1000, 60
"""A server that sends less in a second, for so long, has gone away."""

_HEX = re.compile(r"[0-9a-f]{7,40}")


class GitError(TidemarkError):
    """A git source cannot be read, or has no such ref."""


@dataclass(frozen=True)
class Commit:
    """One commit that lies in the mirror."""

    mirror: Path
    commit: str
    """40 hex digits."""

    tree: str
    """40 hex digits; the content that is compiled."""


@dataclass(frozen=True)
class Mirror:
    """A bare repository below the source cache that follows one git source."""

    url: str
    """Any URL that git reads, or a local path."""

    path: Path

    @property
    def shown(self) -> str:
        """The URL as it may appear in logs and manifests: without passwords and tokens."""
        return without_secrets(self.url)

    def find(self, ref: str) -> Commit | None:
        """A commit or tag that is here already: both mean the same for ever, so that no network is needed.

        None when it is not here, or is a branch. Raises GitError when an abbreviated commit fits several.
        """
        if not self.path.is_dir():
            return None
        if is_commit_name(split_steps(ref)[0]):
            found = self._resolved(ref)
            if found is not None:
                return found
        return self._resolved(f"refs/tags/{ref}")

    def fetch(self, ref: str) -> Commit:
        """Bring the mirror up to date, which downloads only what is new, and resolve `ref` in it.

        Raises GitError when the source cannot be reached or has no such tag, branch or commit.
        """
        with held(self.path.parent / ".locks" / self.path.name):
            self._create()
            # '+' lets a branch that was rewound follow; tags stay as they were first seen.
            self._fetch("+refs/heads/*:refs/heads/*", "refs/tags/*:refs/tags/*")
            found = self.find(ref) or self._resolved(f"refs/heads/{ref}")
            base, _ = split_steps(ref)
            if found is None and len(base) == 40 and is_commit_name(base):
                # No branch leads to it (any more), but servers give out a commit by its full name.
                self._fetch(base)
                found = self._resolved(ref)
        if found is None:
            raise GitError(f"no tag, branch or commit '{ref}'", where=self.shown)
        return found

    def read(self, commit: Commit, name: str) -> str:
        """The text of one file of a commit. Raises GitError when it has none of that name."""
        return _git("cat-file", "blob", f"{commit.commit}:{name}", mirror=self.path)

    def ask(self, *words: str) -> str:
        """What git says to a command that only reads. Raises GitError, with git's words, when it fails."""
        return _git(*words, mirror=self.path)

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

    def _resolved(self, ref: str) -> Commit | None:
        asked = (f"{ref}^{{commit}}", f"{ref}^{{tree}}")
        try:
            told = _git("rev-parse", "--verify", "--quiet", "--end-of-options", asked[0], mirror=self.path)
            tree = _git("rev-parse", "--verify", "--quiet", "--end-of-options", asked[1], mirror=self.path)
        except GitError as error:
            if "ambiguous" in error.where:
                raise GitError(
                    f"'{ref}' fits several commits", where=self.shown, hint="write more digits"
                ) from error
            return None
        return Commit(self.path, told.strip(), tree.strip())


def mirror(url: str, engine: Engine, home: Home) -> Mirror:
    """The mirror of a git source; nothing is fetched.

    Raises GitError for what git could take for an option.
    """
    if not url or url.startswith("-"):
        raise GitError(f"'{url}' is not the address of a git repository")
    if Path(url).exists():
        url = str(Path(url).resolve())
    name = f"{engine}-{hashlib.sha256(url.encode()).hexdigest()[:12]}.git"
    return Mirror(url, home.sources / "git" / name)


def is_commit_name(ref: str) -> bool:
    """Whether `ref` is a commit's full or abbreviated name, which means the same in every clone for ever."""
    return _HEX.fullmatch(ref) is not None


@contextmanager
def archive(commit: Commit) -> Iterator[subprocess.Popen[bytes]]:
    """`git archive` of the commit as a tar stream on the process's standard output.

    Raises GitError when the archive ends in error.
    """
    command = [*_BASE, "--git-dir", str(commit.mirror), "archive", "--format=tar", commit.commit]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, env=_environment()) as process:
        yield process
        said = process.stderr.read().decode(errors="replace").strip() if process.stderr else ""
    if process.returncode != 0:
        raise GitError(f"git archive of {commit.commit} failed", where=redacted(said)[-1000:])


# ext:: addresses run any command; a hook in the mirror has no business here.
_BASE = ("git", "-c", "protocol.ext.allow=never", "-c", "core.hooksPath=/dev/null", "-c", "gc.auto=0")
_PATIENT = ("-c", f"http.lowSpeedLimit={SLOW_BYTES}", "-c", f"http.lowSpeedTime={SLOW_SECONDS}")


def _environment() -> dict[str, str]:
    # Without a terminal prompt a private repository is an error instead of a night spent waiting.
    kept = {name: value for name, value in os.environ.items() if name not in ("GIT_DIR", "GIT_WORK_TREE")}
    ssh = kept.get("GIT_SSH_COMMAND", "ssh -o BatchMode=yes -o ConnectTimeout=10")
    return {**kept, "GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": "true", "GIT_SSH_COMMAND": ssh, "LC_ALL": "C"}


def _git(*arguments: str, mirror: Path, seconds: float | None = None) -> str:
    command = [*_BASE, *_PATIENT, "--git-dir", str(mirror), *arguments]
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
            # What git starts to reach a server is ended with it: alone it would keep our pipes open.
            start_new_session=True,
        )
    except FileNotFoundError as error:
        raise GitError("git is missing", hint="install it (Debian: apt-get install git)") from error
    try:
        said, complained = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        raise GitError(
            f"git {arguments[0]} is not done after {limit:g} s",
            where=str(mirror),
            hint="is the repository reachable? what it has fetched so far is lost",
        ) from None
    finally:
        end_group(process)
    if process.returncode != 0:
        raise GitError(f"git {arguments[0]} failed", where=redacted(complained.strip())[-1000:])
    return said
