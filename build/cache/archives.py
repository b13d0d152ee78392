"""Builds as archives: one machine compiles, the others measure the very same binaries."""

import json
import re
import shutil
import subprocess
import tarfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from build import host
from build.build import Build
from build.cache import manifest, members, store
from build.cache.manifest import FORMAT, ArchiveError, Parcel
from build.files import json_value, make_folder, write_atomically
from build.home import Home
from build.lock import held
from build.progress import Progress
from build.sources.download import sha256_of

_SUFFIX = ".tar.zst"


def export(builds: Sequence[Build], folder: Path) -> list[Path]:
    """Write each build as `<engine>-<release>-<key>-linux-<arch>-glibc<version>.tar.zst` into `folder`.

    A `.json` of the same name beside it holds the manifest and the archive's SHA-256. Returns the archives.
    Raises TransferError when one cannot be written.
    """
    make_folder(folder)
    return [_exported(build, folder) for build in builds]


def import_(path: Path, home: Home, progress: Progress) -> Build:
    """Take in an archive that `export` wrote, or an install tree made elsewhere that a `.json` describes.

    `path` is the archive or the file beside it.

    Digest, architecture, C library and the name of every member are checked before anything is unpacked; the
    build then appears in one rename. Importing what is already there changes nothing. Raises TransferError.
    """
    archive, sidecar = _pair(path)
    contents = manifest.read(sidecar)
    name, key = contents.name, contents.manifest["key"]
    _check_host(contents.manifest, sidecar)
    with held(store.lock_path(home, key), lambda: progress.note(f"{name}: waiting for another process")):
        there = store.find(home, key)
        if there is not None:
            progress.note(f"{name}: already there")
            return there
        with progress.task(f"import {name}"):
            digest = _check_archive(archive, contents, home)
            return _unpacked(archive, contents, digest, home)


def _exported(build: Build, folder: Path) -> Path:
    made_on = build.manifest["host"]
    stem = f"{build.prefix.name}-linux-{made_on['architecture']}-glibc{made_on['glibc']}"
    archive = folder / (stem + _SUFFIX)
    partial = folder / f".{archive.name}.partial"
    try:
        _pack(build.prefix, partial)
        partial.chmod(0o644)
        digest = sha256_of(partial)
        partial.rename(archive)
    finally:
        partial.unlink(missing_ok=True)
    about = {"format": FORMAT, "archive": archive.name, "sha256": digest, "manifest": dict(build.manifest)}
    write_atomically(folder / f"{stem}.json", json.dumps(about, indent=2, sort_keys=True) + "\n")
    return archive


def _pack(prefix: Path, archive: Path) -> None:
    # Sorted, without owners: the same build gives the same archive, whoever exports it.
    command = ["tar", "--create", "--sort=name", "--format=gnu", "--owner=0", "--group=0", "--numeric-owner"]
    command += ["--use-compress-program=zstd -T0 -9", f"--exclude={prefix.name}/{store.IMPORTED}"]
    command += ["--file", str(archive), "--directory", str(prefix.parent), "--", prefix.name]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ArchiveError(
            f"{prefix.name} cannot be packed", where=done.stderr.strip()[-1000:], hint=_zstd_hint()
        )


def _pair(path: Path) -> tuple[Path, Path]:
    if not path.name:
        raise ArchiveError(f"'{path}' names no archive", hint="./tidemark build import FILE...")
    stem = path.name.removesuffix(_SUFFIX).removesuffix(".json")
    archive, sidecar = path.with_name(stem + _SUFFIX), path.with_name(f"{stem}.json")
    for file in (archive, sidecar):
        if not file.is_file():
            raise ArchiveError(f"{file.name} is missing", where=str(path.parent), hint="copy both files")
    return archive, sidecar


def _check_host(manifest: dict[str, Any], sidecar: Path) -> None:
    made_on = manifest.get("host", {})
    here = {"architecture": host.architecture(), "glibc": host.glibc_version()}
    if made_on.get("architecture") != here["architecture"]:
        raise ArchiveError(
            f"the build is for {made_on.get('architecture')}, this machine is {here['architecture']}",
            where=str(sidecar),
        )
    # Programs run on the C library they were linked with and on any newer one.
    if _numbers(str(made_on.get("glibc"))) > _numbers(here["glibc"]):
        raise ArchiveError(
            f"the build needs glibc {made_on.get('glibc')}, this machine has {here['glibc']}",
            where=str(sidecar),
            hint="compile on the machine with the oldest distribution, or compile here",
        )


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part[:9]) for part in re.findall(r"[0-9]+", text))


def _check_archive(archive: Path, contents: Parcel, home: Home) -> str:
    """Check digest, members and free disk; returns the digest."""
    found = sha256_of(archive)
    if contents.sha256 not in (found, None):
        raise ArchiveError(
            f"{archive.name} has SHA-256 {found}, its .json says {contents.sha256}: refused",
            hint="copy it again",
        )
    with _opened(archive) as tar:
        size = members.check(tar, contents.top)
    free = shutil.disk_usage(make_folder(home.builds)).free
    if size > free:
        raise ArchiveError(
            f"{contents.name} takes {size / 1e9:.1f} GB, {free / 1e9:.1f} GB are free", where=str(home.builds)
        )
    return found


def _unpacked(archive: Path, contents: Parcel, digest: str, home: Home) -> Build:
    staging = store.staging(home, contents.manifest["key"])
    shutil.rmtree(staging, ignore_errors=True)
    make_folder(staging)
    try:
        with _opened(archive) as tar:
            members.extract(tar, staging)
        tree = staging / contents.top
        if not contents.has_manifest:
            store.write_manifest(tree, contents.manifest)
        elif json_value((tree / store.MANIFEST).read_bytes()) != contents.manifest:
            raise ArchiveError("the archive's manifest is not the one beside it", where=str(archive))
        at = datetime.now(UTC).isoformat(timespec="seconds")
        return store.publish(tree, home, {"archive": archive.name, "sha256": digest, "imported_at": at})
    except (OSError, ValueError) as error:
        raise ArchiveError(f"{archive.name} cannot be unpacked", where=str(error)) from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)


@contextmanager
def _opened(archive: Path) -> Iterator[tarfile.TarFile]:
    command = ["zstd", "--decompress", "--stdout", "--quiet", "--", str(archive)]
    try:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    except FileNotFoundError as error:
        raise ArchiveError("zstd is missing", hint=_zstd_hint()) from error
    with process:
        try:
            with tarfile.open(fileobj=process.stdout, mode="r|") as tar:
                yield tar
        except tarfile.TarError as error:
            raise ArchiveError(f"{archive.name} is not a whole tar archive", where=str(error)) from error
        finally:
            process.kill()


def _zstd_hint() -> str:
    return "is zstd installed? (Debian: apt-get install zstd)"
