"""A site is written beside the old one and takes its place in one step, or not at all.

The new tree shares every file that did not change with the old one (hard links), so that a renewal costs what
changed. A process that is killed leaves its tree behind, which the next one removes.
"""

import ctypes
import errno
import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from build.errors import TidemarkError
from build.files import json_value, make_folder
from build.lock import held
from report.markup.frame import dated

STATE = "tidemark-site.json"
"""The file of a site that says what its files were made of. A folder without it is not a site of ours."""

FORMAT = 2
"""The version of the pages: a site of another one is written anew."""

_EXCHANGE = 2
"""RENAME_EXCHANGE of renameat2(2)."""

_AT_CWD = -100


class SiteError(TidemarkError):
    """The site cannot be written; the old one, if there is one, is whole."""


@dataclass
class SiteSource:
    """What some files of a site were made of, and which files they are."""

    signature: str
    """The state of the source: with the same one its files are the same."""

    paths: list[str] = field(default_factory=list)
    value: Any = None
    """What the next renewal needs to know of it besides its files, as JSON."""


@dataclass
class SiteTree:
    """A site while it is written."""

    folder: Path
    """Where the new tree lies."""

    written_at: datetime
    old: dict[str, str]
    """The digest of each file of the old site, by path."""

    old_sources: dict[str, SiteSource]
    """What the files of the old site were made of, by the source's name."""

    new: dict[str, str] = field(default_factory=dict)
    sources: dict[str, SiteSource] = field(default_factory=dict)
    changed: list[str] = field(default_factory=list)
    """The files that were written because they are new or differ."""

    _source: SiteSource | None = None

    def write(self, path: str, text: str) -> None:
        """Write a file, unless the old site has the same one; a page gets the time when it was written."""
        digest = _digest(text)
        self._record(path, digest)
        if self.old.get(path) == digest and (self.folder / path).is_file():
            return
        self._put(path, dated(text, self.written_at).encode())

    def write_bytes(self, path: str, content: bytes) -> None:
        """Write a file that is no page."""
        digest = hashlib.sha256(content).hexdigest()[:16]
        self._record(path, digest)
        if self.old.get(path) != digest or not (self.folder / path).is_file():
            self._put(path, content)

    @contextmanager
    def made_of(self, source: str, signature: str) -> Iterator[bool]:
        """Say that what is written in the context is made of a source, whose state is `signature`.

        Gives False when the files of the old site are of the same state: they are kept, and nothing needs to
        be written.
        """
        if self.has(source, signature) and self.keep(source):
            yield False
            return
        self._source = self.sources[source] = SiteSource(signature)
        try:
            yield True
        finally:
            self._source = None

    def has(self, source: str, signature: str) -> bool:
        """Whether the old site's files of a source, which may be missing, were made of the same state."""
        old = self.old_sources.get(source)
        return old is not None and old.signature == signature

    def keep(self, source: str) -> bool:
        """Keep the files of the old site that were made of a source; whether it has any, and all of them.

        A source that is gone is kept too: the addresses of its files stay.
        """
        old = self.old_sources.get(source)
        if old is None or not old.paths or not all((self.folder / path).is_file() for path in old.paths):
            return False
        self.sources[source] = old
        self.new |= {path: self.old.get(path, "") for path in old.paths}
        return True

    def remember(self, value: Any) -> None:
        """Keep a value, as JSON, for as long as the files of the source that is being written are kept."""
        assert self._source is not None
        self._source.value = value

    def value_before(self, source: str) -> Any:
        """Return what was remembered of a source of the old site; None unless all its files are there."""
        old = self.old_sources.get(source)
        whole = old is not None and all((self.folder / path).is_file() for path in old.paths)
        return old.value if old is not None and whole else None

    def text_of(self, path: str) -> str:
        """Return the text of a file, which is the old site's until it is written; empty without one."""
        file = self.folder / path
        return file.read_text(encoding="utf-8") if file.is_file() else ""

    def value_of(self, source: str) -> Any:
        """Return what was remembered of a source of the new site; None without anything."""
        kept = self.sources.get(source)
        return kept.value if kept is not None else None

    def finish(self) -> None:
        """Remove what the new site does not have, and write what it was made of."""
        for path in self.old.keys() - self.new.keys():
            (self.folder / path).unlink(missing_ok=True)
        sources = {name: vars(source) for name, source in self.sources.items()}
        state = {"tidemark": "site", "format": FORMAT, "files": self.new, "sources": sources}
        self._put(STATE, json.dumps(state, sort_keys=True, separators=(",", ":")).encode())

    def _record(self, path: str, digest: str) -> None:
        self.new[path] = digest
        if self._source is not None:
            self._source.paths.append(path)

    def _put(self, path: str, content: bytes) -> None:
        target = self.folder / path
        make_folder(target.parent)
        target.unlink(missing_ok=True)  # never write through a hard link into the old site
        target.write_bytes(content)
        self.changed.append(path)


@contextmanager
def renewed(site: Path, written_at: datetime) -> Iterator[SiteTree]:
    """Give a tree to write a site in, which takes the place of `site` when all went well.

    Waits for another process that writes the same site. Raises SiteError when something else lies there, and
    when the file system has no room.
    """
    site = site.absolute()
    _refuse_foreign(site)
    try:
        make_folder(site.parent)
        with held(site.with_name(f".{site.name}.lock")), _swapped(site) as folder:
            files, sources = _state(site)
            tree = SiteTree(folder, written_at, files, sources)
            yield tree
            tree.finish()
    except OSError as error:
        raise SiteError(
            f"the site cannot be written: {error.strerror or error}; the old one is whole",
            where=str(site),
            hint="free some space, or check the folder's owner and rights",
        ) from error


@contextmanager
def _swapped(site: Path) -> Iterator[Path]:
    new, old = site.with_name(f".{site.name}.new"), site.with_name(f".{site.name}.old")
    if old.exists() and not site.exists():
        old.rename(site)  # a process was killed between the two renames of _replace
    for rest in (new, old):
        shutil.rmtree(rest, ignore_errors=True)
    try:
        if site.is_dir():
            shutil.copytree(site, new, copy_function=_linked)
        else:
            make_folder(new)
        yield new
        _replace(site, new, old)
    finally:
        shutil.rmtree(new, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


def _linked(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.EMLINK, errno.EOPNOTSUPP, errno.EXDEV):
            raise
        shutil.copy2(source, target)


def _replace(site: Path, new: Path, old: Path) -> None:
    """Put the new tree in the place of the old one: exchanged at once where the file system can do it."""
    if not site.exists():
        new.rename(site)
        return
    libc = ctypes.CDLL(None, use_errno=True)
    exchanged = getattr(libc, "renameat2", None)
    if (
        exchanged is not None
        and exchanged(_AT_CWD, os.fsencode(new), _AT_CWD, os.fsencode(site), _EXCHANGE) == 0
    ):
        return
    site.rename(old)
    new.rename(site)


def _refuse_foreign(site: Path) -> None:
    if site.is_symlink() or (site.exists() and not site.is_dir()):
        raise SiteError(
            "something other than a folder lies there",
            where=str(site),
            hint="choose another folder with --out",
        )
    if site.is_dir() and any(site.iterdir()) and not (site / STATE).is_file():
        raise SiteError(
            "the folder holds something else than a site of Tidemark, which would be replaced",
            where=str(site),
            hint="choose an empty or a new folder with --out",
        )


def _state(site: Path) -> tuple[dict[str, str], dict[str, SiteSource]]:
    """Return what the old site's files are and were made of; nothing when another Tidemark wrote it."""
    try:
        kept = json_value((site / STATE).read_bytes())
        if kept["format"] != FORMAT:
            return dict.fromkeys(kept["files"], ""), {}
        return dict(kept["files"]), {name: SiteSource(**source) for name, source in kept["sources"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}, {}


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
