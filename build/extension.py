"""An extension as the user writes it, `NAME=REPO@REF`, and the commit that it stands for."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from build.addresses import without_secrets
from build.errors import TidemarkError
from build.home import Home
from build.progress import Progress
from build.sources.git import Commit, Mirror, mirror, require_address
from build.version import Engine, Version, is_ref, split_steps

EXTENSIBLE = Engine.POSTGRES
"""The engine that has extensions: PGXS compiles them."""

EXTENSION_DIGITS = 12
"""The hex digits of a commit of an extension, as it is displayed."""

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,62}")

_FORM = "write --with extension.NAME=REPO@REF, such as extension.pgvector=~/src/pgvector@v0.8.0"


class ExtensionError(TidemarkError):
    """An extension is not well-formed, has no PGXS or control file, or cannot be loaded."""


@dataclass(frozen=True)
class Extension:
    """An extension at a commit of its git repository."""

    name: str
    """The name of its control file; of an extension with only one, any name."""

    repository: str
    """A URL that git supports, or an absolute path."""

    ref: str
    """A tag, branch or commit, or HEAD of a clone, each maybe with steps back; empty until it is chosen."""

    commit: str = ""
    """The commit of `ref`, 40 hex digits; empty until it was looked up."""

    def __str__(self) -> str:
        return f"{self.name} {self.ref}"

    def to_json(self) -> dict[str, Any]:
        """Return what a session records: name, repository without secrets, ref and commit."""
        shown = without_secrets(self.repository)
        values = {"name": self.name, "repository": shown, "ref": self.ref, "commit": self.commit}
        return {key: value for key, value in values.items() if value}

    def mirror(self, home: Home, progress: Progress | None = None) -> Mirror:
        """Return the mirror of its repository, without fetching anything; `progress` shows what is."""
        return mirror(self.repository, "extension", home, progress)


def parse_extension(text: str, *, has_ref: bool = True) -> Extension:
    """Return the extension that `NAME=REPO@REF` describes, or `NAME=REPO` without `has_ref`.

    A path of a repository becomes absolute. Raises ExtensionError, or GitError for an address that git may
    not read.
    """
    form = _FORM if has_ref else "write --extension NAME=REPO, such as pgvector=~/src/pgvector"
    name, equals, rest = text.partition("=")
    repository, at, ref = rest.rpartition("@") if has_ref else (rest, "@", "")
    if not (equals and at and repository):
        raise ExtensionError(f"'{text[:80]}' is no extension", where="extension", hint=form)
    if not _NAME.fullmatch(name):
        raise ExtensionError(f"'{name[:80]}' is no name of an extension", where="extension", hint=form)
    if has_ref and not is_ref(split_steps(ref)[0]):
        raise ExtensionError(
            f"'{ref[:80]}' in '{text[:80]}' is no tag, branch or commit", where="extension", hint=form
        )
    require_address(repository)
    folder = Path(repository).expanduser()
    if folder.is_dir():
        repository = str(folder.resolve())
    elif "://" not in repository and ":" not in repository:
        raise ExtensionError(f"there is no folder {repository}", where=f"extension {text[:80]}")
    return Extension(name, repository, ref)


def require_extensible(version: Version, extensions: Sequence[Extension]) -> None:
    """Raise ExtensionError unless `extensions`, if there are any, can be compiled for a version."""
    if extensions and version.engine is not EXTENSIBLE:
        raise ExtensionError(
            f"{version} takes no extension: PGXS compiles extensions of Postgres",
            where=f"extension {extensions[0].name}",
            hint="define it for a variant of Postgres: --with VARIANT:extension.NAME=REPO@REF",
        )
    if extensions and version.is_install:
        raise ExtensionError(
            f"{version} is an install prefix of yours, into which Tidemark installs nothing",
            where=f"extension {extensions[0].name}",
            hint="install the extension there, a prefix for each ref, and have the setup create it",
        )


def pinned(extension: Extension, home: Home, progress: Progress) -> Extension:
    """Return the extension with the commit of its ref; what is a commit or a known tag needs no network.

    Raises GitError when its repository cannot be read, or has no such ref.
    """
    if extension.commit:
        return extension
    found = commit_of(extension, home, progress)
    if not found.commit.startswith(extension.ref):
        progress.note(f"{extension}: commit {found.commit}")
    return replace(extension, commit=found.commit)


def commit_of(extension: Extension, home: Home, progress: Progress | None = None) -> Commit:
    """Return the commit of an extension in the mirror of its repository. Raises GitError as `pinned` does."""
    source, ref = extension.mirror(home, progress), extension.commit or extension.ref
    return source.find(ref) or source.fetch(ref)


def described_extension(recorded: Mapping[str, Any]) -> str:
    """Return what `to_json` recorded in words: `pgvector v0.8.0 (5bf748b86b12)`."""
    ref, commit = str(recorded.get("ref", "")), str(recorded.get("commit", ""))
    short = commit[:EXTENSION_DIGITS]
    if not short or (ref and commit.startswith(ref)):
        return f"{recorded.get('name')} {short or ref}"
    return f"{recorded.get('name')} {ref} ({short})"
