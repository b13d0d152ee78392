"""Git: its commands, clones on this machine, and one bare mirror per source, of which commits are compiled.

The mirror of a repository on this machine borrows its objects (git's alternates) and holds no refs, so that
nothing is copied. What `git gc` removes there later is missed by no build: each is made of an unpacked tree.
"""

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from build import environment
from build.addresses import redacted, without_secrets
from build.compile_commands import end_group
from build.engines import ENGINES
from build.environment import NO_GIT_SETTINGS
from build.errors import TidemarkError, did_you_mean, shell_line
from build.files import make_folder
from build.home import Home
from build.lock import held
from build.progress import Progress, Silent
from build.sources import connections
from build.version import Engine, split_steps

FETCH_SECONDS = 2 * 3600.0
"""Time limit for updating a mirror; the first fetch downloads the whole history of an engine."""

LIST_SECONDS = 60.0
"""Time limit for listing the tags and branches of a remote source."""

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
    return {**kept, **quiet, **allowed, **connections.git_environment()}


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
            hint = connections.HINT
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


_PATHS = ("--git-path", "objects", "--git-path", "shallow", "--git-path", "index")
_FACTS = ("rev-parse", "--path-format=absolute", "--absolute-git-dir", *_PATHS, "--show-prefix")

# A missing object would be fetched by programs that the settings name (git's promisor remotes).
_NO_TRANSPORT = {"GIT_ALLOW_PROTOCOL": "none"}

_OF_FILES = r"^core\.(autocrlf|eol|excludesfile|filemode|ignorecase|precomposeunicode|symlinks)$"
"""The settings that say how files are compared; none of them names a program."""

_VERIFY = ("rev-parse", "--verify", "--quiet", "--end-of-options")

HEAD = "HEAD"
"""What is checked out in a clone."""


@dataclass(frozen=True)
class Clone:
    """A repository on this machine, such as a clone of a developer: it is only read, and never written to.

    Its settings belong to whoever owns it, and can name programs: filters, a monitor of files, what a fetch
    starts. None of them runs: in the repository itself git is asked for refs, names and settings only,
    without a transport, and its work tree is compared from the mirror.
    """

    git_dir: Path
    """That of its work tree, where it has one: HEAD is what is checked out there."""

    objects: Path
    """The folder of its objects, which work trees share."""

    shallow: Path
    """The file that exists if history is missing."""

    index: Path
    """The file with what is staged; there is none before something is."""

    root: Path
    """The top of its work tree; the repository itself if it is bare."""

    def commit(self, name: str) -> str | None:
        """Return the commit, 40 hex digits, of a full ref such as `refs/tags/v1`; None if there is none."""
        try:
            return self.read(*_VERIFY, f"{name}^{{commit}}").strip()
        except GitError:
            return None

    def branch(self, ref: str) -> str | None:
        """Return the commit of a branch by its name here, in a remote (`origin/topic`), or in `origin`.

        HEAD is what is checked out. Return None if there is no such branch.
        """
        places = ("refs/heads/", "refs/remotes/", "refs/remotes/origin/")
        names = [f"{place}{ref}" for place in places]
        if ref.startswith(HEAD):
            names.insert(0, ref)
        return next((found for name in names if (found := self.commit(name)) is not None), None)

    def names(self) -> list[str]:
        """Return the names of all branches and tags."""
        listed = self.read("for-each-ref", "--format=%(refname)").split()
        kinds = ("refs/heads/", "refs/tags/", "refs/remotes/origin/", "refs/remotes/")
        found = (name.removeprefix(kind) for kind in kinds for name in listed if name.startswith(kind))
        return list(dict.fromkeys(found))

    @property
    def has_tree(self) -> bool:
        """Whether files are checked out."""
        return self.root != self.git_dir

    def read(self, *arguments: str) -> str:
        """Return the output of a git command that reads refs, names or settings. Raises GitError."""
        return run(*arguments, git_dir=self.git_dir, variables=_NO_TRANSPORT)

    def read_tree(self, mirror: Path, *arguments: str) -> str:
        """Return the output of a git command that compares the work tree, in the repository `mirror`.

        That one has the objects of HEAD. Git gets a copy of the index, and of all settings only those that
        say how files are compared. Raises GitError.
        """
        variables = {
            **_NO_TRANSPORT,
            **NO_GIT_SETTINGS,
            **self._settings_of_files(),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(self.objects),  # of what is staged
        }
        with tempfile.TemporaryDirectory() as folder:
            variables["GIT_INDEX_FILE"] = f"{folder}/{self.index.name}"
            for file in (self.index, *self.index.parent.glob("sharedindex.*")):  # git-update-index(1)
                if file.is_file():
                    shutil.copy2(file, folder)  # with its time: git compares files that changed since
            return run(*arguments, git_dir=mirror, work_tree=self.root, variables=variables)

    def _settings_of_files(self) -> dict[str, str]:
        """Return variables with the settings of the clone, and of its user, by which files compare."""
        try:
            found = self.read("config", "-z", "--get-regexp", _OF_FILES).split("\0")[:-1]
        except GitError:  # there are none
            found = []
        variables = {"GIT_CONFIG_COUNT": str(len(found))}
        for number, setting in enumerate(found):
            key, has_value, value = setting.partition("\n")
            variables[f"GIT_CONFIG_KEY_{number}"] = key
            variables[f"GIT_CONFIG_VALUE_{number}"] = value if has_value else "true"
        return variables

    def names_in(self, ref: str) -> set[str]:
        """Return the names at the top of the tree of a ref; empty if there is no such ref."""
        try:
            return set(self.read("ls-tree", "--name-only", ref).splitlines())
        except GitError:
            return set()

    def is_published(self, commit: str) -> bool:
        """Return whether a branch or tag leads to a commit."""
        search = ("for-each-ref", "--count=1", f"--contains={commit}", "refs/heads", "refs/tags")
        return bool(self.read(*search).strip())

    @cached_property
    def is_partial(self) -> bool:
        """Whether objects are missing that its remote would give."""
        try:
            return bool(self.read("config", "--get", "extensions.partialClone").strip())
        except GitError:
            return False


def clone_at(folder: Path, *, is_named: bool = True) -> Clone | None:
    """Return the repository at `folder`, bare or with a work tree; None if there is none.

    What is compiled is code of the repository, so that whoever names it trusts it, whoever its owner is. One
    that nobody named has to be the caller's by git's own rule (safe.directory in git-config(1)), and is None
    otherwise.
    """
    if not folder.is_dir():
        return None
    trusting = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*"}
    try:
        told = run(
            *_FACTS, git_dir=None, folder=folder, variables=_NO_TRANSPORT | (trusting if is_named else {})
        )
    except GitError:
        return None
    *paths, prefix = told.split("\n")[:5]
    if prefix:
        return None  # it begins above
    git_dir, objects, shallow, index = map(Path, paths)
    above = (folder.resolve(), *folder.resolve().parents)
    root = next((place for place in above if (place / ".git").exists()), git_dir)
    if folder.resolve() not in (git_dir, root):
        return None
    return Clone(git_dir, objects, shallow, index, root)


_HEX = re.compile(r"[0-9a-f]{7,40}")

_TRANSPORT = re.compile(r"([A-Za-z0-9][A-Za-z0-9+.-]*)(?:::|://)")
"""How an address names its transport: `https://...`, or `fd::17` for a program `git-remote-fd`."""


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
    progress: Progress = field(default_factory=Silent, compare=False)
    """Shows what is fetched."""

    @property
    def shown(self) -> str:
        """The URL as it may appear in logs and manifests: without passwords and tokens."""
        return without_secrets(self.url)

    @cached_property
    def clone(self) -> Clone | None:
        """The repository on this machine whose objects are borrowed; None where they have to be fetched."""
        found = None if "://" in self.url else clone_at(Path(self.url))
        is_own = found is not None and found.git_dir == self.path.resolve()
        return None if found is None or is_own or found.is_partial else found

    def find(self, ref: str) -> Commit | None:
        """Return a commit or tag that is there already, without network: neither ever changes.

        Return None if it is not, or if it is a branch. Raises GitError if an abbreviated commit name is
        ambiguous.
        """
        if self.clone is not None:
            self._borrow(self.clone)
        elif not self.path.is_dir():
            return None
        if is_commit_name(split_steps(ref)[0]):
            commit = self._resolve(ref)
            if commit is not None:
                return commit
        if self.clone is None:
            return self._resolve(f"refs/tags/{ref}")
        return self._known(self.clone.commit(f"refs/tags/{ref}"))

    def require(self, ref: str) -> None:
        """Raise NoSuchRefError, within a second and before anything is fetched, unless `ref` exists.

        Only a commit that is not here may still be at a remote source: it cannot be asked for one.
        Raises GitError if the source cannot be reached.
        """
        if self.clone is not None:
            self.fetch(ref)
        elif self.find(ref) is None:
            self._listed(ref)

    def fetch(self, ref: str) -> Commit:
        """Return the commit of `ref`; update the mirror, which downloads only what is new, if it lacks it.

        Raises NoSuchRefError if the source has no such tag, branch or commit, and GitError if it cannot be
        reached.
        """
        if self.clone is not None:
            commit = self.find(ref) or self._known(self.clone.branch(ref))
            if commit is None:
                raise self._has_no(ref, self.clone.names())
            return commit
        listed = self._listed(ref)
        with held(self.path.parent / ".locks" / self.path.name):
            self._create()
            base, steps = split_steps(ref)
            known = self.find(ref) or (self._resolve(f"{listed}{steps}") if listed else None)
            if known is not None:
                return known
            self._fetch(*_ALL_REFS)
            commit = self.find(ref) or self._resolve(f"refs/heads/{ref}")
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
        if self.clone is not None:
            commit = self.find(ref) or self._known(self.clone.branch(ref))
        else:
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

    def fetch_pull(self, commit: str, number: int) -> Commit:
        """Update the mirror, and return a commit to which a pull request of the source leads.

        Raises GitError if it does not, or not any more, whatever the mirror has.
        """
        head = f"refs/pull/{number}/head"
        if self.clone is not None:
            self._borrow(self.clone)
            tip = self._known(self.clone.commit(head))
        else:
            own = f"refs/tidemark/pull/{number}"
            with held(self.path.parent / ".locks" / self.path.name):
                self._create()
                self._fetch(f"+{head}:{own}")
                tip = self._resolve(own)
        found = self._resolve(commit) if is_commit_name(commit) else None
        if (
            tip is None
            or found is None
            or self.query("rev-list", "-1", found.commit, f"^{tip.commit}").strip()
        ):
            raise GitError(
                f"pull request {number} does not lead to {commit}",
                where=self.shown,
                hint="name a commit of it; one that was replaced since has to be reviewed again",
            )
        return found

    def _is_published(self, commit: Commit) -> bool:
        if self.clone is not None:
            return self.clone.is_published(commit.commit)
        search = ("for-each-ref", "--count=1", f"--contains={commit.commit}")
        return bool(self.query(*search, "refs/heads", "refs/tags").strip())

    def _has_no(self, ref: str, names: Iterable[str] = ()) -> NoSuchRefError:
        is_file = ": it is a file here" if Path(ref).is_file() else ""
        if not is_file and ref.endswith((".patch", ".diff")):
            is_file = ", and no file of this name here"
        hint = f"list tags and branches with: {shell_line('git', 'ls-remote', self.shown)}"
        meant = did_you_mean(split_steps(ref)[0], names)
        return NoSuchRefError(
            f"no tag, branch or commit '{ref}'{is_file}",
            where=self.shown,
            hint=f"{meant} {hint}".strip() + self._own,
        )

    @property
    def _own(self) -> str:
        """What is added to the hint of an error of upstream's repository, which nobody may have meant."""
        upstream = any(self.url == ENGINES[engine].upstream.git for engine in Engine)
        return "; to take it from your own repository, name that with --git" if upstream else ""

    def _remotely(self, *arguments: str, git_dir: Path | None, seconds: float) -> str:
        try:
            return run(*arguments, git_dir=git_dir, seconds=seconds)
        except GitError as error:
            raise GitError(error.what, where=error.where, hint=error.hint + self._own) from error

    def names(self) -> list[str]:
        """Return the names of all tags and branches of the source now. Raises GitError."""
        if self.clone is not None:
            return self.clone.names()
        return [name.split("/", 2)[2] for name in self._remote_refs()]

    def _remote_refs(self) -> Mapping[str, str]:
        """Return the object of each tag and branch that the remote source lists, by its whole name."""
        asked = ("ls-remote", "--quiet", "--heads", "--tags", "--refs", "--", self.url)
        listed = self._remotely(*asked, git_dir=None, seconds=LIST_SECONDS)
        return {name: digest for digest, _, name in (line.partition("\t") for line in listed.splitlines())}

    def _listed(self, ref: str) -> str:
        """Return the object of the tag or branch that the remote source lists; empty for a commit.

        Raises NoSuchRefError for what is neither.
        """
        base, _ = split_steps(ref)
        if is_commit_name(base):
            return ""
        objects = self._remote_refs()
        found = objects.get(f"refs/tags/{base}") or objects.get(f"refs/heads/{base}")
        if not found:
            raise self._has_no(ref, [name.split("/", 2)[2] for name in objects])
        return found

    def read(self, commit: Commit, name: str) -> str:
        """Return the text of the file `name` in a commit. Raises GitError if there is no such file."""
        return run("cat-file", "blob", f"{commit.commit}:{name}", git_dir=self.path)

    def query(self, *arguments: str, seconds: float | None = None) -> str:
        """Return the output of a git command that only reads.

        Raises GitError with git's message, and when it takes longer than `seconds`, by default LOCAL_SECONDS.
        """
        with self._trusted() as git_dir:
            return run(*arguments, git_dir=git_dir, seconds=seconds)

    @contextmanager
    def _trusted(self) -> Iterator[Path]:
        """Yield the repository; of another user one that has nothing but its objects.

        The configuration of a repository names programs that git starts, and that user may write it.
        """
        if not self.path.is_dir() or self.path.stat().st_uid == os.geteuid():
            yield self.path
            return
        with tempfile.TemporaryDirectory(prefix="tidemark-git-") as name:
            folder = Path(name)
            (folder / "refs").mkdir()
            (folder / "objects/info").mkdir(parents=True)
            (folder / "HEAD").write_text("ref: refs/heads/none\n")
            (folder / "objects/info/alternates").write_text(f"{self.path.resolve() / 'objects'}\n")
            yield folder

    def _known(self, commit: str | None) -> Commit | None:
        return None if commit is None else self._resolve(commit)

    def _borrow(self, clone: Clone) -> None:
        """Let the mirror read the objects of a repository on this machine."""
        alternates = self.path / "objects/info/alternates"
        wanted = f"{clone.objects}\n"
        if alternates.is_file() and alternates.read_text() == wanted:
            return
        with held(self.path.parent / ".locks" / self.path.name):
            self._create()
            make_folder(alternates.parent)
            alternates.write_text(wanted)

    def _create(self) -> None:
        if not (self.path / "HEAD").exists():
            make_folder(self.path)
            run("init", "--quiet", "--bare", git_dir=self.path)

    def _fetch(self, *refspecs: str, prune: bool = False) -> None:
        words = ["fetch", "--no-tags", "--no-write-fetch-head", *(["--prune"] if prune else [])]
        with self.progress.task(f"fetch {self.shown}"):
            self._remotely(*words, "--", self.url, *refspecs, git_dir=self.path, seconds=FETCH_SECONDS)

    def _resolve(self, ref: str) -> Commit | None:
        try:
            commit = run(*_VERIFY, f"{ref}^{{commit}}", git_dir=self.path)
            tree = run(*_VERIFY, f"{ref}^{{tree}}", git_dir=self.path)
        except GitError as error:
            if "ambiguous" in error.where:
                raise GitError(
                    f"'{ref}' is ambiguous: several commits begin with it",
                    where=self.shown,
                    hint="give more digits of the commit",
                ) from error
            return None
        return Commit(self.path, commit.strip(), tree.strip())


def mirror(url: str, kind: str, home: Home, progress: Progress | None = None) -> Mirror:
    """Return the mirror of a git source, without fetching anything; `kind` is its engine, or `extension`.

    `progress` shows what is fetched later.

    Raises GitError as `require_address` does.
    """
    require_address(url)
    if Path(url).exists():
        url = str(Path(url).resolve())
    name = f"{kind}-{hashlib.sha256(url.encode()).hexdigest()[:12]}.git"
    return Mirror(url, home.sources / "git" / name, progress or Silent())


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
            hint=f"name a path, or a URL that begins with {', '.join(f'{name}://' for name in TRANSPORTS)}, "
            "so that nobody on the way can change it; or clone the repository and name the clone",
        )


def is_commit_name(ref: str) -> bool:
    """Return whether `ref` is a full or abbreviated commit name, which is the same in every clone."""
    return _HEX.fullmatch(ref) is not None


@contextmanager
def archive(commit: Commit) -> Iterator[subprocess.Popen[bytes]]:
    """Run `git archive` for a commit, and yield the process, whose standard output is a tar stream.

    Raises GitError if git archive fails.
    """
    command = [*BASE, "--git-dir", str(commit.mirror), "archive", "--format=tar", commit.commit]
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
