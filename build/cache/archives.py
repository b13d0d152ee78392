"""Export and import of builds as archives, so that several machines measure the same binaries."""

import json
import re
import shutil
import subprocess
import tarfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from build import host
from build.build import Build
from build.cache import libraries, members, store
from build.cache.manifest import FORMAT, ArchiveError, ArchiveInfo, read
from build.files import json_value, make_folder, write_atomically
from build.home import Home
from build.lock import held
from build.manifest import HostRecord
from build.programs import environment
from build.progress import Progress
from build.sources.download import sha256_of

_SUFFIX = ".tar.zst"


def export(builds: Sequence[Build], folder: Path) -> list[Path]:
    """Write each build as `<engine>-<release>-<key>-linux-<arch>-glibc<version>.tar.zst` into `folder`.

    Beside each archive, a file with the extension `.json` contains the manifest and the SHA-256 of the
    archive. Return the paths of the archives. Raises ArchiveError if one cannot be written.
    """
    make_folder(folder)
    return [_export(build, folder) for build in builds]


def import_(path: Path, home: Home, progress: Progress) -> Build:
    """Import an archive that `export` wrote, or an archived install tree that a `.json` file describes.

    `path` is the archive or the `.json` file beside it; both must be in the same folder.

    Digest, architecture, C library and the name of every member are checked before anything is unpacked, and
    then whether this machine has the libraries that the programs need. The build then appears in the cache by
    one rename. A build that is already there is left as it is. Raises ArchiveError or MemberError.
    """
    archive, sidecar = _archive_and_sidecar(path)
    contents = read(sidecar)
    name, key = contents.name, contents.manifest.key
    _check_host(contents.manifest.host, sidecar)
    with held(store.lock_path(home, key), lambda: progress.note(f"{name}: waiting for another process")):
        existing = store.find(home, key)
        if existing is not None:
            _require_same(existing, archive, contents)
            progress.note(f"{name}: already in the build cache")
            return existing
        with progress.task(f"import {name}"):
            digest = _check_archive(archive, contents, home)
            return _unpack(archive, contents, digest, home)


def _require_same(existing: Build, archive: Path, contents: ArchiveInfo) -> None:
    """Raise ArchiveError if a build was imported with the same description, but from another archive.

    What `export` writes has a key over all that the build was made from; a description by hand may leave out
    what distinguishes two builds.
    """
    if contents.has_manifest:
        return
    try:
        recorded = json_value((existing.prefix / store.IMPORTED).read_bytes())["sha256"]
    except (OSError, ValueError, KeyError, TypeError):
        return
    if recorded != sha256_of(archive):
        raise ArchiveError(
            f"another archive with the same description was imported as {existing.prefix.name}",
            where=str(archive),
            hint="say in the .json file what distinguishes the two, such as an entry of `configure`, or "
            f"unpack the archive and name its folder: {existing.version.engine}@NAME=/PATH",
        )


def _export(build: Build, folder: Path) -> Path:
    built_on = build.manifest.host
    stem = f"{build.prefix.name}-linux-{built_on.architecture}-glibc{built_on.glibc}"
    archive = folder / (stem + _SUFFIX)
    partial = folder / f".{archive.name}.partial"
    try:
        _pack(build.prefix, partial)
        partial.chmod(0o644)
        digest = sha256_of(partial)
        partial.rename(archive)
    finally:
        partial.unlink(missing_ok=True)
    manifest = build.manifest.to_json()
    about = {"format": FORMAT, "archive": archive.name, "sha256": digest, "manifest": manifest}
    write_atomically(folder / f"{stem}.json", json.dumps(about, indent=2, sort_keys=True) + "\n")
    return archive


def _pack(prefix: Path, archive: Path) -> None:
    # Sorted and without owners, so that the same build gives the same archive for every user.
    command = ["tar", "--create", "--sort=name", "--format=gnu", "--owner=0", "--group=0", "--numeric-owner"]
    command += ["--use-compress-program=zstd -T0 -9", f"--exclude={prefix.name}/{store.IMPORTED}"]
    command += ["--file", str(archive), "--directory", str(prefix.parent), "--", prefix.name]
    variables = environment.compiling()
    completed = subprocess.run(command, capture_output=True, text=True, env=variables, check=False)
    if completed.returncode != 0:
        said = " ".join(completed.stderr.split())[-1000:]
        hint = "" if shutil.which("zstd") else _zstd_hint()
        raise ArchiveError(f"{prefix.name} cannot be packed: {said}", where=str(archive), hint=hint)


def _archive_and_sidecar(path: Path) -> tuple[Path, Path]:
    if not path.name:
        raise ArchiveError(f"'{path}' is not the path of an archive", hint="./tidemark build import FILE...")
    stem = path.name.removesuffix(_SUFFIX).removesuffix(".json")
    archive, sidecar = path.with_name(stem + _SUFFIX), path.with_name(f"{stem}.json")
    for file in (archive, sidecar):
        if not file.is_file():
            raise ArchiveError(
                f"{file.name} is missing",
                where=str(path.parent),
                hint="copy the archive and its .json file into the same folder",
            )
    return archive, sidecar


def _check_host(built_on: HostRecord, sidecar: Path) -> None:
    architecture, glibc = host.architecture(), host.glibc_version()
    if built_on.architecture != architecture:
        raise ArchiveError(
            f"the build is for {built_on.architecture}, but this machine is {architecture}",
            where=str(sidecar),
            hint="compile the version on this machine, or import a build for its architecture",
        )
    # A program runs with the C library it was linked against, and with newer ones.
    if _numbers(built_on.glibc) > _numbers(glibc):
        raise ArchiveError(
            f"the build needs glibc {built_on.glibc}, but this machine has {glibc}",
            where=str(sidecar),
            hint="compile on the machine with the oldest distribution, or on this one",
        )


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part[:9]) for part in re.findall(r"[0-9]+", text))


def _check_archive(archive: Path, contents: ArchiveInfo, home: Home) -> str:
    """Check digest, members and free disk space; return the archive's hex SHA-256."""
    digest = sha256_of(archive)
    if contents.sha256 not in (digest, None):
        raise ArchiveError(
            f"{archive.name} has SHA-256 {digest}, but its .json file says {contents.sha256}: refused",
            hint="the copy is damaged: copy the archive again",
        )
    with _opened(archive) as tar:
        size = members.check(tar, contents.top)
    free = shutil.disk_usage(make_folder(home.builds)).free
    if size > free:
        raise ArchiveError(
            f"{contents.name} needs {size / 1e9:.1f} GB, but only {free / 1e9:.1f} GB are free",
            where=str(home.builds),
            hint="free some disk space, or set TIDEMARK_HOME to a folder on a larger disk",
        )
    return digest


def _unpack(archive: Path, contents: ArchiveInfo, digest: str, home: Home) -> Build:
    staging = store.staging(home, contents.manifest.key)
    shutil.rmtree(staging, ignore_errors=True)
    make_folder(staging).chmod(0o700)  # whatever the umask is, until members have their rights
    try:
        with _opened(archive) as tar:
            members.extract(tar, staging)
        staging.chmod(0o755)  # the user who runs its programs has to get in
        tree = staging / contents.top
        if not contents.has_manifest:
            store.write_manifest(tree, contents.manifest)
        elif json_value((tree / store.MANIFEST).read_bytes()) != contents.manifest.to_json():
            raise ArchiveError(
                "the manifest in the archive differs from the one in the .json file beside it",
                where=str(archive),
                hint="copy both files from the same export",
            )
        _check_libraries(tree, contents)
        at = datetime.now(UTC).isoformat(timespec="seconds")
        return store.publish(tree, home, {"archive": archive.name, "sha256": digest, "imported_at": at})
    except (OSError, ValueError) as error:
        raise ArchiveError(f"{archive.name} cannot be unpacked", where=str(error)) from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _check_libraries(tree: Path, contents: ArchiveInfo) -> None:
    lacking = libraries.missing(tree)
    if lacking:
        needed_by = next(iter(lacking.values())).relative_to(tree)
        raise ArchiveError(
            f"{contents.name} needs {', '.join(sorted(lacking))}, which this machine does not have",
            where=str(needed_by),
            hint="install the package that has it, or compile the version on this machine",
        )


@contextmanager
def _opened(archive: Path) -> Iterator[tarfile.TarFile]:
    command = ["zstd", "--decompress", "--stdout", "--quiet", "--", str(archive)]
    try:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment.compiling()
        )
    except FileNotFoundError as error:
        raise ArchiveError("zstd is not installed", hint=_zstd_hint()) from error
    with process:
        try:
            with tarfile.open(fileobj=process.stdout, mode="r|") as tar:
                yield tar
        except tarfile.TarError as error:
            raise ArchiveError(f"{archive.name} is not a complete tar archive", where=str(error)) from error
        finally:
            process.kill()


def _zstd_hint() -> str:
    return "run ./tidemark setup, which installs it"
