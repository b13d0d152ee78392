"""Series of patches: their order, what is left out, and which hunk does not apply."""

from email.message import EmailMessage
from pathlib import Path

import pytest

from build.home import Home
from build.sources.git import mirror
from build.sources.patching import PatchError, require_applies
from build.version import Engine
from runners.trying.series import PatchSeriesError, is_series, read_series
from runners.trying.sides import sides_of
from tests.plain_repository import PlainRepository


@pytest.fixture
def work(tmp_path: Path) -> PlainRepository:
    """Three commits on `main` after the first, each of which changes the same file."""
    work = PlainRepository(tmp_path / "work")
    work.commit("src/x", "\n".join(f"line {number}" for number in range(40)))
    for number, place in enumerate((3, 20, 37), start=1):
        path = work.path / "src/x"
        path.write_text(path.read_text().replace(f"line {place}\n", f"changed {number}\n"))
        work.git("commit", "-qam", f"Change {number}")
    return work


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def patches(work: PlainRepository, *options: str) -> Path:
    """The three commits as a folder of patches with a cover letter."""
    folder = work.path.parent / "patches"
    work.git("format-patch", "-q", "-o", str(folder), *options, "main~3..main")
    return folder


def names(files: tuple[Path, ...]) -> list[str]:
    return [path.name for path in files]


def test_a_folder_is_taken_by_number_and_its_latest_revision(work: PlainRepository, home: Home) -> None:
    patches(work, "-v2")
    folder = patches(work, "-v10", "--cover-letter", "--cover-from-description=none")
    (folder / "notes.txt").write_text("mine")
    series = read_series([str(folder)], home)
    assert names(series.files) == [f"v10-000{number}-Change-{number}.patch" for number in (1, 2, 3)]
    assert series.notes == (f"of the patches in {folder}, v10 is tried; left out: v2",)
    assert series.shown.startswith("patches (")
    assert series.shown.endswith(", 3 patches)")


def test_files_are_taken_as_they_are_named(work: PlainRepository, home: Home) -> None:
    words = sorted(map(str, patches(work).iterdir()))
    assert [str(path) for path in read_series(words[::-1], home).files] == words[::-1]
    assert not is_series([words[0], "main"])
    assert not is_series([str(work.path / "src")])


def mail(subject: str, text: str = "", attached: dict[str, str] | None = None) -> bytes:
    message = EmailMessage()
    message["Subject"] = subject
    message.set_content(text or "Here it is.\n", cte="quoted-printable")
    for name, content in (attached or {}).items():
        message.add_attachment(content.encode(), maintype="text", subtype="x-patch", filename=name)
    return b"From someone Mon Sep 17 00:00:00 2001\n" + message.as_bytes() + b"\n"


def test_mails_are_taken_by_their_numbers(work: PlainRepository, home: Home, tmp_path: Path) -> None:
    texts = [path.read_text().split("\n\n", 1)[1] for path in sorted(patches(work).iterdir())]
    box = tmp_path / "thread.mbox"
    mails = [mail(f"[PATCH v3 {number}/3] Change {number}", texts[number - 1]) for number in (3, 1, 2)]
    old = mail("[PATCH v2 1/1] An older one", texts[0])
    box.write_bytes(
        b"".join([mail("[PATCH v3 0/3] Three changes"), old, *mails, mail("Re: [PATCH v3 1/3]", texts[0])])
    )
    series = read_series([str(box)], home)
    assert names(series.files) == [f"000{number}-Change-{number}.patch" for number in (1, 2, 3)]
    assert series.notes == ("of the patches in thread.mbox, v3 is tried; left out: v2",)
    require_applies(mirror(str(work.path), Engine.POSTGRES, home).fetch("main~3"), series.files, "main~3")
    box.write_bytes(b"".join(mails[:2]))
    with pytest.raises(PatchSeriesError, match="lack patch 2/3"):
        read_series([str(box)], home)
    box.write_bytes(mail("[PATCH] nothing"))
    assert is_series([str(box)])
    with pytest.raises(PatchSeriesError, match="none of the mails has a patch"):
        read_series([str(box)], home)


def test_attachments_are_taken_in_their_order(work: PlainRepository, home: Home, tmp_path: Path) -> None:
    files = sorted(patches(work, "-v4").iterdir())
    attached = {path.name: path.read_text() for path in reversed(files)}
    (tmp_path / "mail").write_bytes(mail("a proposal", attached={**attached, "plot.txt": "no patch"}))
    series = read_series([str(tmp_path / "mail")], home)
    assert names(series.files) == [
        f"000{number}-v4-000{number}-Change-{number}.patch" for number in (1, 2, 3)
    ]


def test_what_does_not_apply_is_named_with_patch_hunk_and_commit(work: PlainRepository, home: Home) -> None:
    folder = patches(work)
    files = sorted(folder.iterdir())
    text = files[1].read_text()
    files[1].write_text(text.replace("-line 20", "-line twenty"))
    base = work.git("rev-parse", "main~3")[:12]
    with pytest.raises(PatchError) as caught:
        sides_of([str(folder)], "main~3", Engine.POSTGRES, str(work.path), home)
    said = "the patch 0002-Change-2.patch, 2 of 3, does not apply to main~3"
    assert caught.value.what == f"{said} ({base}): the hunk at src/x:18 does not match"
    assert "--against" in caught.value.hint
    both = folder / "both.patch"
    both.write_text(work.git("diff", "main~3", "main") + "\n")
    both.write_text(both.read_text().replace("-line 37", "-line x"))
    with pytest.raises(PatchError, match="hunk 3 of 3 at src/x:35 does not match"):
        sides_of([str(both)], "main~3", Engine.POSTGRES, str(work.path), home)
    with pytest.raises(PatchError, match="its changes are there already"):
        sides_of([str(files[0])], "main", Engine.POSTGRES, str(work.path), home)
    assert work.git("status", "--porcelain") == ""
