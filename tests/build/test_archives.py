"""Export and import: the same binaries elsewhere, and nothing that should not be taken in."""

import hashlib
import io
import json
import os
import shutil
import subprocess
import tarfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from build import host
from build.cache import archives, store
from build.cache.archives import ArchiveError
from build.errors import TidemarkError
from build.finished_build import Build
from build.home import Home
from build.progress import Silent
from build.provide import find, provide
from build.request import BuildRequest
from build.version import parse_version
from tests.build.stand import Pins, Stand

RELEASE = parse_version("postgres@18.99")


@pytest.fixture
def made(home: Home, stand: Stand, versions: Pins) -> Build:
    """A build, compiled on this machine."""
    versions(r18_99=stand.tarball(home.sources / "postgresql-18.99.tar.bz2"))
    return provide(BuildRequest(RELEASE), home, Silent())


@pytest.fixture
def archive(made: Build, tmp_path: Path) -> Path:
    """The build's archive, exported."""
    return archives.export([made], tmp_path / "out")[0]


@pytest.fixture
def elsewhere(server_folder: Path) -> Home:
    """The home of another machine."""
    return Home(server_folder / "elsewhere")


@pytest.fixture
def umask() -> Iterator[None]:
    """A umask that takes nothing from the rights of new files."""
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.fixture
def unlinked(made: Build, tmp_path: Path) -> None:
    """A program of the build needs a library that is gone, as one of another distribution may."""
    library, source = tmp_path / "libtidemark-gone.so.1", tmp_path / "main.c"
    source.write_text("int main(void) { return 0; }")
    compiler = ["gcc", "-o"]
    subprocess.run([*compiler, library, "-shared", f"-Wl,-soname,{library.name}", source], check=True)
    program = made.prefix / "bin/psql"
    subprocess.run([*compiler, program, "-Wl,--no-as-needed", source, library], check=True)
    library.unlink()


def sidecar_of(archive: Path) -> Path:
    return archive.with_name(archive.name.removesuffix(".tar.zst") + ".json")


def change(archive: Path, edit: Callable[[dict[str, Any]], object]) -> None:
    """Rewrite the sidecar."""
    about = json.loads(sidecar_of(archive).read_text())
    edit(about)
    sidecar_of(archive).write_text(json.dumps(about))


@pytest.mark.usefixtures("unlinked")
def test_a_build_that_lacks_a_library_here_is_refused(made: Build, tmp_path: Path, elsewhere: Home) -> None:
    archive = archives.export([made], tmp_path / "out")[0]
    with pytest.raises(ArchiveError) as refused:
        archives.import_(archive, elsewhere, Silent())
    assert "needs libtidemark-gone.so.1, which this machine does not have" in refused.value.what
    assert refused.value.where == "bin/psql"
    assert find(BuildRequest(RELEASE), elsewhere) is None
    assert not list(elsewhere.builds.glob("[!.]*"))


def test_a_build_arrives_as_it_was(made: Build, archive: Path, elsewhere: Home) -> None:
    here = f"linux-{host.architecture()}-glibc{host.glibc_version()}"
    assert archive.name == f"postgres-18.99-{made.key[:12]}-{here}.tar.zst"
    progress = Silent()
    there = archives.import_(archive, elsewhere, progress)
    assert (there.key, there.manifest) == (made.key, made.manifest)
    assert there.prefix.parent == elsewhere.builds
    same = subprocess.run(["diff", "-r", "-x", store.IMPORTED, made.prefix, there.prefix], check=False)
    assert same.returncode == 0
    assert there.program("psql").stat().st_mode & 0o777 == 0o755


def test_importing_twice_changes_nothing(archive: Path, elsewhere: Home) -> None:
    first = archives.import_(archive, elsewhere, Silent())
    before = first.prefix.stat().st_mtime_ns
    progress = Silent()
    assert archives.import_(sidecar_of(archive), elsewhere, progress) == first
    assert first.prefix.stat().st_mtime_ns == before
    assert progress.notes == [f"{first.prefix.name}: already in the build cache"]


def test_an_imported_build_serves_its_version_without_a_compiler(
    archive: Path, elsewhere: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = archives.import_(archive, elsewhere, Silent())

    def no_compiler(_: str = "") -> host.Compiler:
        raise host.HostError("no compiler")

    monkeypatch.setattr(host, "compiler", no_compiler)
    assert find(BuildRequest(RELEASE), elsewhere) == there
    assert provide(BuildRequest(RELEASE), elsewhere, Silent()).prefix == there.prefix
    with pytest.raises(host.HostError):
        find(BuildRequest(parse_version("postgres@18.99")), Home(elsewhere.path / "empty"))


def test_exporting_an_imported_build_gives_the_same_archive(
    archive: Path, elsewhere: Home, tmp_path: Path
) -> None:
    there = archives.import_(archive, elsewhere, Silent())
    again = archives.export([there], tmp_path / "again")[0]
    assert again.name == archive.name
    assert listing(again) == listing(archive)


def listing(archive: Path) -> str:
    command = f"zstd -dc '{archive}' | tar -t"
    return subprocess.run(command, shell=True, capture_output=True, text=True, check=True).stdout


def test_a_changed_archive_is_refused(archive: Path, elsewhere: Home) -> None:
    with archive.open("r+b") as file:
        file.seek(100)
        file.write(b"tidemark")
    with pytest.raises(ArchiveError, match="refused"):
        archives.import_(archive, elsewhere, Silent())


def test_another_architecture_is_refused(archive: Path, elsewhere: Home) -> None:
    change(archive, lambda about: about["manifest"]["host"].update(architecture="aarch64"))
    with pytest.raises(ArchiveError, match="the build is for aarch64"):
        archives.import_(archive, elsewhere, Silent())


@pytest.mark.parametrize(("glibc", "fits"), [("2.99", False), ("2.9", True), ("2.100", False)])
def test_a_newer_c_library_is_refused(archive: Path, elsewhere: Home, glibc: str, fits: bool) -> None:
    change(archive, lambda about: about["manifest"]["host"].update(glibc=glibc))
    # Past that check it is the manifest inside, which still tells the truth, that no longer agrees.
    reason = "differs from the one in the" if fits else f"needs glibc {glibc}"
    with pytest.raises(ArchiveError, match=reason):
        archives.import_(archive, elsewhere, Silent())
    assert store.all_builds(elsewhere) == []


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", '{"manifest": 1, "sha256": ""}', '{"manifest": {}, "sha256": "x"}']
)
def test_a_strange_sidecar_is_refused(archive: Path, elsewhere: Home, text: str) -> None:
    sidecar_of(archive).write_text(text)
    with pytest.raises(ArchiveError):
        archives.import_(archive, elsewhere, Silent())


def test_a_manifest_cannot_choose_where_the_build_goes(archive: Path, elsewhere: Home) -> None:
    change(archive, lambda about: about["manifest"].update(release="../../x"))
    with pytest.raises(TidemarkError, match="its release and key are not those of a build"):
        archives.import_(archive, elsewhere, Silent())


def test_a_missing_half_is_named(archive: Path, elsewhere: Home) -> None:
    sidecar_of(archive).unlink()
    with pytest.raises(ArchiveError, match=r"the \.json file of .* is missing"):
        archives.import_(archive, elsewhere, Silent())


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "", mode: int = 0o644) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.mode = kind, link, mode
    return info


SYM, HARD = tarfile.SYMTYPE, tarfile.LNKTYPE

MALICIOUS = {
    "absolute": [member("/tmp/x")],
    "parent": [member("TOP/../../x")],
    "beside": [member("other/x")],
    "top is a link": [member("TOP", SYM, "/tmp")],
    "absolute link": [member("TOP/x", SYM, "/etc/passwd")],
    "link out": [member("TOP/x", SYM, "../../x")],
    "link out and back": [member("TOP/x", SYM, "../TOP/y")],
    "hard link out": [member("TOP/x", HARD, "../x")],
    "hard link to elsewhere": [member("TOP/x", HARD, "/etc/passwd")],
    "through a link": [member("TOP/a", SYM, "b"), member("TOP/b", tarfile.DIRTYPE), member("TOP/a/x")],
    # Each link stays inside when read as text; followed on disk the second leaves.
    "link through a link": [
        member("TOP/d/e/a", SYM, "../.."),
        member("TOP/x", SYM, "d/e/a/../.."),
    ],
    "link first, then file": [member("TOP/x", SYM, "y"), member("TOP/x")],
    "device": [member("TOP/x", tarfile.CHRTYPE)],
    "pipe": [member("TOP/x", tarfile.FIFOTYPE)],
    "setuid": [member("TOP/x", mode=0o4755)],
    "hard link to a link": [member("TOP/a", SYM, "b"), member("TOP/x", HARD, "TOP/a")],
}


@pytest.mark.parametrize("case", MALICIOUS)
def test_a_malicious_archive_is_refused_before_anything_is_unpacked(
    made: Build, archive: Path, elsewhere: Home, case: str
) -> None:
    name = made.prefix.name
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        tar.add(made.prefix, name)
        for entry in MALICIOUS[case]:
            evil = tarfile.TarInfo(entry.name.replace("TOP", name))
            evil.type, evil.mode, evil.linkname = entry.type, entry.mode, entry.linkname.replace("TOP", name)
            tar.addfile(evil)
    packed = subprocess.run(["zstd", "-c"], input=buffer.getvalue(), capture_output=True, check=True).stdout
    archive.write_bytes(packed)
    change(archive, lambda about: about.update(sha256=hashlib.sha256(packed).hexdigest()))
    with pytest.raises(TidemarkError, match="the archive is refused"):
        archives.import_(archive, elsewhere, Silent())
    assert [
        path for path in elsewhere.builds.rglob("*") if path.parent.name != ".locks" and path.name != ".locks"
    ] == []


def test_links_of_shared_libraries_are_taken(made: Build, elsewhere: Home, tmp_path: Path) -> None:
    (made.prefix / "lib/libpq.so").symlink_to("libpq.so.5")
    (made.prefix / "lib/libpq.so.5").symlink_to("../lib/pgstattuple.so")
    archive = archives.export([made], tmp_path / "out")[0]
    there = archives.import_(archive, elsewhere, Silent())
    assert (there.prefix / "lib/libpq.so").resolve() == there.prefix / "lib/pgstattuple.so"


@pytest.mark.usefixtures("umask")
def test_nobody_else_may_write_to_what_was_imported(made: Build, elsewhere: Home, tmp_path: Path) -> None:
    for path in (made.prefix, made.prefix / "bin", made.prefix / "bin/psql", made.prefix / store.MANIFEST):
        path.chmod(0o777)
    there = archives.import_(archives.export([made], tmp_path / "out")[0], elsewhere, Silent())
    found = [there.prefix, there.prefix.parent, *there.prefix.rglob("*")]
    assert [path for path in found if not path.is_symlink() and path.stat().st_mode & 0o022] == []
    # As an earlier version has imported it.
    there.program("psql").chmod(0o777)
    for use in (find, partial(provide, progress=Silent())):
        with pytest.raises(store.StoreError) as refused:
            use(BuildRequest(RELEASE), elsewhere)
        assert f"everybody may write to {there.program('psql')}" in refused.value.what
        assert refused.value.hint.startswith(f"rm -r {there.prefix}, then compile or import")


def test_half_an_archive_is_refused(archive: Path, elsewhere: Home) -> None:
    half = archive.read_bytes()[:-200]
    archive.write_bytes(half)
    change(archive, lambda about: about.update(sha256=hashlib.sha256(half).hexdigest()))
    with pytest.raises(ArchiveError, match="not a complete"):
        archives.import_(archive, elsewhere, Silent())
    assert store.all_builds(elsewhere) == []


def test_a_failed_unpacking_leaves_nothing(
    archive: Path, elsewhere: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tarfile.TarFile, "extract", full)
    with pytest.raises(ArchiveError, match="cannot be unpacked"):
        archives.import_(archive, elsewhere, Silent())
    assert [path.name for path in elsewhere.builds.iterdir()] == [".locks"]


def test_an_archive_is_either_whole_or_absent(
    made: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.rmtree(made.prefix)
    with pytest.raises(ArchiveError, match="cannot be packed"):
        archives.export([made], tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []
