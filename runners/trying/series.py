"""The patches of a try, in order: files, a folder of them, or the mails of a mailing list."""

import email
import hashlib
import re
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from email.errors import MessageError
from email.header import decode_header, make_header
from email.message import Message
from functools import partial
from pathlib import Path

from build.errors import TidemarkError
from build.files import make_folder
from build.home import Home

MAX_PATCH_BYTES = 20_000_000
"""The size of a patch, or of a file of mails, that is read."""

SUFFIXES = (".patch", ".diff")
"""The names of the files in a folder that are patches."""

_CHANGES_A_FILE = re.compile(rb"^(--- |diff --git )", re.MULTILINE)
_BASE_COMMIT = re.compile(rb"^base-commit: ([0-9a-f]{40})\s*$", re.MULTILINE)
"""The line with which `git format-patch --base` names the commit that a patch applies to."""

_MAIL = re.compile(rb"^From [^\n]*\n(?=[A-Za-z-]+:)", re.MULTILINE)
"""The line before each mail of an mbox, with a header behind it."""

_SUBJECT = re.compile(r"\[[^\]]*?PATCH[^\]]*\]", re.IGNORECASE)
_REVISION = re.compile(r"\bv([0-9]{1,4})\b", re.IGNORECASE)
_NUMBER = re.compile(r"\b([0-9]{1,4})/([0-9]{1,4})\b")
_FILE_NAME = re.compile(r"(?:v([0-9]{1,4})-)?([0-9]{4})-")
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


class PatchSeriesError(TidemarkError):
    """There is no patch, or no order of patches, in what was named."""


@dataclass(frozen=True)
class PatchSeries:
    """Patches in the order in which they apply."""

    files: tuple[Path, ...]
    shown: str
    """What it is called: the name of the only file, or what was named with the number of patches."""

    notes: tuple[str, ...] = ()
    """What was left out."""

    @property
    def base_commit(self) -> str | None:
        """The commit that the series says it applies to; None if it names none."""
        return next((named for file in self.files if (named := base_commit_of(file.read_bytes()))), None)


@dataclass(frozen=True)
class NumberedPatch:
    """A patch with its revision and number in a series of `total`, each 0 where it is not named."""

    revision: int
    number: int
    total: int
    name: str
    text: bytes


def is_series(words: Sequence[str]) -> bool:
    """Return whether words of a command line name patches: files with changes, or folders of patches."""
    paths = list(map(Path, words))
    return bool(paths) and all(
        _files_of(path) if path.is_dir() else path.is_file() and is_patch(path) for path in paths
    )


def _files_of(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.iterdir()) if path.suffix in SUFFIXES and path.is_file()]


def is_patch(file: Path) -> bool:
    """Return whether a file has a line with which a part of a patch begins that changes a file, or mails."""
    with file.open("rb") as opened:
        text = opened.read(MAX_PATCH_BYTES)
    return _CHANGES_A_FILE.search(text) is not None or _MAIL.match(text) is not None


def base_commit_of(patch: bytes) -> str | None:
    """Return the commit that a patch says that it applies to; None if it names none."""
    found = _BASE_COMMIT.findall(patch)
    return found[-1].decode() if found else None


def read_series(words: Sequence[str], home: Home) -> PatchSeries:
    """Return the patches that paths name, in order; those of mails are written to files in the home.

    Files are taken in the order in which they are named, the files of a folder by their numbers
    (`v3-0002-...`) or names, and mails by the numbers of their subjects (`[PATCH v3 2/5]`). Of several
    revisions in a folder or in mails the latest is taken. Raises PatchSeriesError.
    """
    files: list[Path] = []
    notes: list[str] = []
    for path in map(Path, words):
        if path.is_dir():
            files += _of_folder(path, notes)
        else:
            _require_small(path)
            files += _of_mails(path, home, notes) if _is_mail(path.read_bytes()) else [path.resolve()]
    if not files:
        raise PatchSeriesError("there is no patch in what was named", where=" ".join(words))
    return PatchSeries(tuple(files), _shown(words, files), tuple(notes))


def write_patch(name: str, home: Home, write: Callable[[Path], object]) -> Path:
    """Let `write` write a patch to a file; return its path in the home, in a folder named by the content."""
    patches = make_folder(home.path / "tries" / "patches")
    with tempfile.TemporaryDirectory(dir=patches) as folder:
        written = Path(folder) / name
        write(written)
        digest = hashlib.sha256(written.read_bytes()).hexdigest()
        return written.rename(make_folder(patches / digest[:12]) / name)


def _shown(words: Sequence[str], files: Sequence[Path]) -> str:
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.read_bytes())
    name = Path(words[0]).name or str(Path(words[0]).resolve().name)
    if len(words) > 1:
        name = f"{name} to {Path(words[-1]).name}"
    several = f", {len(files)} patches" if len(files) > 1 else ""
    return f"{name} ({digest.hexdigest()[:8]}{several})"


def _require_small(path: Path) -> None:
    if path.stat().st_size > MAX_PATCH_BYTES:
        raise PatchSeriesError(f"the patch {path.name} is larger than {MAX_PATCH_BYTES // 1_000_000} MB")


def _of_folder(folder: Path, notes: list[str]) -> list[Path]:
    found = []
    for path in _files_of(folder):
        _require_small(path)
        named = _FILE_NAME.match(path.name)
        revision, number = (int(named[1] or 0), int(named[2])) if named else (0, 0)
        if number == 0 and named is not None and _CHANGES_A_FILE.search(path.read_bytes()) is None:
            continue  # a cover letter
        found.append(NumberedPatch(revision, number, 0, path.name, b""))
    if not found:
        return []
    return [(folder / patch.name).resolve() for patch in _latest(found, notes, str(folder))]


def _is_mail(text: bytes) -> bool:
    """Return whether a file has to be taken apart: several mails, or one with encoded text or attachments."""
    if _MAIL.match(text) is None:
        return False
    head = text.split(b"\n\n", 1)[0].lower()
    is_encoded = any(word in head for word in (b"quoted-printable", b"base64", b"multipart/"))
    return is_encoded or len(_MAIL.findall(text)) > 1


def _of_mails(path: Path, home: Home, notes: list[str]) -> list[Path]:
    found = patches_in_mails(path.read_bytes())
    if not found:
        raise PatchSeriesError("none of the mails has a patch", where=str(path))
    chosen = _latest(found, notes, path.name)
    _require_whole(chosen, path)
    return [
        write_patch(f"{place:04}-{patch.name}"[:80], home, partial(Path.write_bytes, data=patch.text))
        for place, patch in enumerate(chosen, start=1)
    ]


def patches_in_mails(text: bytes) -> list[NumberedPatch]:
    """Return the patches of an mbox, mail by mail: those attached, or that in the text."""
    mails = map(email.message_from_bytes, _MAIL.split(text)[1:])
    return [patch for message in mails for patch in _patches_of(message)]


def _patches_of(message: Message) -> list[NumberedPatch]:
    subject = _subject(message)
    tag = _SUBJECT.search(subject)
    numbered = _NUMBER.search(tag[0]) if tag else None
    revised = _REVISION.search(tag[0]) if tag else None
    revision = int(revised[1]) if revised else 0
    attached, body = [], b""
    for part in message.walk():
        content, name = part.get_payload(decode=True), part.get_filename()
        if not isinstance(content, bytes) or _CHANGES_A_FILE.search(content) is None:
            continue  # a cover letter, or what somebody wrote about a patch
        if name is None:
            body = body or content
            continue
        named = _FILE_NAME.match(name)
        of_name = (int(named[1] or 0), int(named[2])) if named else (revision, 0)
        attached.append(NumberedPatch(*of_name, 0, _plain(name), content))
    if attached or not body or tag is None or subject.lower().startswith(("re:", "aw:")):
        return attached
    number, total = (int(numbered[1]), int(numbered[2])) if numbered else (0, 0)
    return [NumberedPatch(revision, number, total, f"{_plain(subject[tag.end() :])}.patch", body)]


def _subject(message: Message) -> str:
    raw = str(message.get("Subject", ""))
    try:
        return str(make_header(decode_header(raw)))
    except (LookupError, ValueError, MessageError):  # an unknown character set, or bytes of another one
        return raw


def _plain(text: str) -> str:
    return _UNSAFE.sub("-", text.strip()).strip("-.") or "patch"


def _latest(found: Sequence[NumberedPatch], notes: list[str], where: str) -> list[NumberedPatch]:
    """Return the patches of the latest revision, by number; those without a number keep their order."""
    latest = max(patch.revision for patch in found)
    revisions = sorted({patch.revision for patch in found} - {latest})
    if revisions:
        older = ", ".join(f"v{revision or 1}" for revision in revisions)
        notes.append(f"of the patches in {where}, v{latest} is tried; left out: {older}")
    chosen: dict[tuple[int, int], NumberedPatch] = {}
    for place, patch in enumerate(found):
        if patch.revision == latest:
            # Of two with one number, such as in a mail that was sent again, the later one counts.
            chosen[patch.number, 0 if patch.number else place] = patch
    return sorted(chosen.values(), key=lambda patch: patch.number)


def _require_whole(patches: Iterable[NumberedPatch], path: Path) -> None:
    """Raise PatchSeriesError if a number of a series is missing."""
    numbers = [patch.number for patch in patches if patch.total]
    total = max((patch.total for patch in patches), default=0)
    missing = sorted(set(range(1, total + 1)) - set(numbers))
    if missing:
        named = ", ".join(f"{number}/{total}" for number in missing)
        raise PatchSeriesError(
            f"the mails lack patch {named}", where=str(path), hint="add the mail that has it"
        )
