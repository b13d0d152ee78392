"""Git sources: one bare mirror per repository, used for all commits that are compiled from it."""

import hashlib
import os
import re
import shlex
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
from build.programs import environment
from build.programs.work import end_group
from build.sources import certificates
from build.version import Engine, split_steps

FETCH_SECONDS = 2 * 3600.0
"""Time limit for updating a mirror; the first fetch downloads the whole history of an engine."""

LOCAL_SECONDS = 600.0
"""Time limit of git commands that need no network."""

SLOW_BYTES, SLOW_SECONDS = 1000, 60
"""A transfer that stays below this rate in bytes/s for this many seconds is aborted."""

TRANSPORTS = ("file", "git", "http", "https", "ssh")
"""The protocols that git may use: those that git itself trusts. Others, such as `ext` and `fd`, run programs
or wait for what another process has opened."""

_UNREACHABLE = "check the address, and that it can be reached from this machine"

_HEX = re.compile(r"[0-9a-f]{7,40}")

_TRANSPORT = re.compile(r"([A-Za-z0-9][A-Za-z0-9+.-]*)(?:::|://)")
"""How an address names its transport: `https://...`, or `fd::17` for a program `git-remote-fd`."""


class GitError(TidemarkError):
    """A git source cannot be read, or has no such ref."""


class NoSuchRefError(GitError):
    """A git source was read, and has no such tag, branch or commit."""


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
            self._fetch(*_ALL_REFS)
            commit = self.find(ref) or self._resolve(f"refs/heads/{ref}")
            base, _ = split_steps(ref)
            if commit is None and len(base) == 40 and is_commit_name(base):
                # No branch leads to it (any more), but servers give out a commit by its full name.
                self._fetch(base)
                commit = self._resolve(ref)
        if commit is None:
            raise self._has_no(ref)
        return commit

    def fetch_published(self, ref: str) -> Commit:
        """Update the mirror, and return the commit of `ref`, to which a branch or tag of the source leads.

        That the mirror has a commit says nothing: it may have been fetched by its name, and hosts of git give
        out commits of pull requests, which anybody may open. Raises GitError as `fetch` does, and for a
        commit to which no branch or tag leads.
        """
        with held(self.path.parent / ".locks" / self.path.name):
            self._create()
            # Pruned, because a branch that was deleted publishes nothing any more.
            self._fetch(_BRANCHES, prune=True)
            self._fetch(*_ALL_REFS)
            commit = self.find(ref) or self._resolve(f"refs/heads/{ref}")
            if commit is None and not is_commit_name(split_steps(ref)[0]):
                raise self._has_no(ref)
            if commit is None or not self._is_published(commit):
                raise GitError(
                    f"no branch or tag leads to {ref}",
                    where=self.shown,
                    hint="push it to a branch there; a commit that only a pull request has may be anybody's "
                    "code, and is measured by a person on the box, by the same command without --box",
                )
        return commit

    def _is_published(self, commit: Commit) -> bool:
        search = ("for-each-ref", "--count=1", f"--contains={commit.commit}")
        return bool(self.query(*search, "refs/heads", "refs/tags").strip())

    def _has_no(self, ref: str) -> NoSuchRefError:
        is_file = ": it is a file here" if Path(ref).is_file() else ""
        if not is_file and ref.endswith((".patch", ".diff")):
            is_file = ", and no file of this name here"
        hint = f"list tags and branches with: git ls-remote {shlex.quote(self.shown)}"
        return NoSuchRefError(f"no tag, branch or commit '{ref}'{is_file}", where=self.shown, hint=hint)

    def read(self, commit: Commit, name: str) -> str:
        """Return the text of the file `name` in a commit. Raises GitError if there is no such file."""
        return _git("cat-file", "blob", f"{commit.commit}:{name}", mirror=self.path)

    def query(self, *arguments: str, seconds: float | None = None) -> str:
        """Return the output of a git command that only reads.

        Raises GitError with git's message, and when it takes longer than `seconds`, by default LOCAL_SECONDS.
        """
        return _git(*arguments, mirror=self.path, seconds=seconds)

    def _create(self) -> None:
        if not (self.path / "HEAD").exists():
            make_folder(self.path)
            _git("init", "--quiet", "--bare", mirror=self.path)

    def _fetch(self, *refspecs: str, prune: bool = False) -> None:
        _git(
            "fetch",
            "--quiet",
            "--no-tags",
            "--no-write-fetch-head",
            *(["--prune"] if prune else []),
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

    Raises GitError as `require_address` does.
    """
    require_address(url)
    if Path(url).exists():
        url = str(Path(url).resolve())
    name = f"{engine}-{hashlib.sha256(url.encode()).hexdigest()[:12]}.git"
    return Mirror(url, home.sources / "git" / name)


def local_mirrors(engine: Engine, home: Home, first: str) -> tuple[Mirror, ...]:
    """Return the mirrors of an engine that are in the source cache, that of the address `first` first.

    Nothing is fetched. The addresses of the others are not known; their paths stand for them.
    """
    preferred = mirror(first, engine, home)
    others = sorted((home.sources / "git").glob(f"{engine}-*.git"))
    return (
        *([preferred] if preferred.path.is_dir() else []),
        *(Mirror(str(path), path) for path in others if path != preferred.path),
    )


def require_address(url: str) -> None:
    """Raise GitError if `url` is empty, looks like an option, or names a transport beside TRANSPORTS."""
    if not url or url.startswith("-"):
        raise GitError(f"'{url}' is not the URL or path of a git repository")
    named = _TRANSPORT.match(url)
    is_trusted = named is None or ("::" not in named[0] and named[1].lower() in {*TRANSPORTS, *_SSH_NAMES})
    if not is_trusted and not Path(url).exists():
        raise GitError(
            f"git sources are not read through '{named and named[0]}'",
            where=without_secrets(url),
            hint=f"name a path, or a URL that begins with {', '.join(f'{name}://' for name in TRANSPORTS)}; "
            "or clone the repository and name the clone",
        )


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
    # The digest of a source is that of the commit: nobody's settings of git may change the files.
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, env=environment.compiling()) as process:
        yield process
        errors = process.stderr.read().decode(errors="replace").strip() if process.stderr else ""
    if process.returncode != 0:
        raise GitError(f"git archive of {commit.commit} failed", where=redacted(errors)[-1000:])


_SSH_NAMES = ("git+ssh", "ssh+git")
"""Names that git also takes for ssh."""

# '+' also follows branches that were rewound. A tag stays as it was first fetched.
_BRANCHES = "+refs/heads/*:refs/heads/*"
_ALL_REFS = (_BRANCHES, "refs/tags/*:refs/tags/*")

# A hook in the mirror would run arbitrary commands.
_BASE = ("git", "-c", "core.hooksPath=/dev/null", "-c", "gc.auto=0")
_SLOW_LIMIT = ("-c", f"http.lowSpeedLimit={SLOW_BYTES}", "-c", f"http.lowSpeedTime={SLOW_SECONDS}")


def _environment() -> dict[str, str]:
    # Without a terminal prompt, a private repository is an error instead of a night of waiting.
    kept = {name: value for name, value in os.environ.items() if name not in ("GIT_DIR", "GIT_WORK_TREE")}
    ssh = kept.get("GIT_SSH_COMMAND", "ssh -o BatchMode=yes -o ConnectTimeout=10")
    quiet = {"GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": "true", "GIT_SSH_COMMAND": ssh, "LC_ALL": "C"}
    # Holds for addresses that a configuration of git or a server's redirect puts in place of ours, too.
    allowed = {"GIT_ALLOW_PROTOCOL": ":".join(TRANSPORTS)}
    return {**kept, **quiet, **allowed, **certificates.git_environment()}


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
        hint = _UNREACHABLE if arguments[0] == "fetch" else ""
        if "certificate" in errors:
            hint = certificates.HINT
        raise GitError(f"git {arguments[0]} failed", where=redacted(errors.strip())[-1000:], hint=hint)
    return output
