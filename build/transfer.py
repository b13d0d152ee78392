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

from build import host, members, store
from build.build import Build
from build.download import sha256_of
from build.errors import TidemarkError
from build.files import make_folder, write_atomically
from build.home import Home
from build.lock import held
from build.progress import Progress

FORMAT = 1
"""Of the sidecar."""

_SUFFIX = ".tar.zst"


class TransferError(TidemarkError):
    """A build cannot be exported, or an archive cannot be taken in."""


def export(builds: Sequence[Build], folder: Path) -> list[Path]:
    """Write each build as `<engine>-<release>-<key>-linux-<arch>-glibc<version>.tar.zst` into `folder`.

    A `.json` of the same name beside it holds the manifest and the archive's SHA-256. Returns the archives.
    Raises TransferError when one cannot be written.
    """
    make_folder(folder)
    return [_exported(build, folder) for build in builds]


def import_(path: Path, home: Home, progress: Progress) -> Build:
    """Take in an archive that `export` wrote; `path` is the archive or its sidecar.

    Digest, architecture, C library and the name of every member are checked before anything is unpacked; the
    build then appears in one rename. Importing what is already there changes nothing. Raises TransferError.
    """
    archive, sidecar = _pair(path)
    about = _read_sidecar(sidecar)
    manifest = about["manifest"]
    try:
        name = store.folder_name(manifest["engine"], manifest["release"], manifest["key"])
    except KeyError as error:
        raise TransferError(f"the manifest lacks {error}", where=str(sidecar)) from error
    _check_host(manifest, sidecar)
    with held(
        store.lock_path(home, manifest["key"]), lambda: progress.note(f"{name}: waiting for another process")
    ):
        there = store.find(home, manifest["key"])
        if there is not None:
            progress.note(f"{name}: already there")
            return there
        with progress.task(f"import {name}"):
            _check_archive(archive, about["sha256"], name, home)
            return _unpacked(archive, about, name, home)


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
        raise TransferError(
            f"{prefix.name} cannot be packed", where=done.stderr.strip()[-1000:], hint=_zstd_hint()
        )


def _pair(path: Path) -> tuple[Path, Path]:
    stem = path.name.removesuffix(_SUFFIX).removesuffix(".json")
    archive, sidecar = path.with_name(stem + _SUFFIX), path.with_name(f"{stem}.json")
    for file in (archive, sidecar):
        if not file.is_file():
            raise TransferError(f"{file.name} is missing", where=str(path.parent), hint="copy both files")
    return archive, sidecar


def _read_sidecar(path: Path) -> dict[str, Any]:
    try:
        about: dict[str, Any] = json.loads(path.read_text())
        complete = isinstance(about["manifest"], dict) and isinstance(about["sha256"], str)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise TransferError(
            "the file beside the archive is not one of a build", where=f"{path}: {error}"
        ) from error
    if not complete or about.get("format") != FORMAT:
        raise TransferError(f"the file beside the archive is not of format {FORMAT}", where=str(path))
    return about


def _check_host(manifest: dict[str, Any], sidecar: Path) -> None:
    made_on = manifest.get("host", {})
    here = {"architecture": host.architecture(), "glibc": host.glibc_version()}
    if made_on.get("architecture") != here["architecture"]:
        raise TransferError(
            f"the build is for {made_on.get('architecture')}, this machine is {here['architecture']}",
            where=str(sidecar),
        )
    # Programs run on the C library they were linked with and on any newer one.
    if _numbers(str(made_on.get("glibc"))) > _numbers(here["glibc"]):
        raise TransferError(
            f"the build needs glibc {made_on.get('glibc')}, this machine has {here['glibc']}",
            where=str(sidecar),
            hint="compile on the machine with the oldest distribution, or compile here",
        )


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", text))


def _check_archive(archive: Path, expected: str, name: str, home: Home) -> None:
    found = sha256_of(archive)
    if found != expected:
        raise TransferError(
            f"{archive.name} has SHA-256 {found}, its .json says {expected}: refused", hint="copy it again"
        )
    with _opened(archive) as tar:
        size = members.check(tar, name)
    free = shutil.disk_usage(make_folder(home.builds)).free
    if size > free:
        raise TransferError(
            f"{name} takes {size / 1e9:.1f} GB, {free / 1e9:.1f} GB are free", where=str(home.builds)
        )


def _unpacked(archive: Path, about: dict[str, Any], name: str, home: Home) -> Build:
    staging = store.staging(home, about["manifest"]["key"])
    shutil.rmtree(staging, ignore_errors=True)
    make_folder(staging)
    try:
        with _opened(archive) as tar:
            members.extract(tar, staging)
        tree = staging / name
        if json.loads((tree / store.MANIFEST).read_text()) != about["manifest"]:
            raise TransferError("the archive's manifest is not the one beside it", where=str(archive))
        at = datetime.now(UTC).isoformat(timespec="seconds")
        return store.publish(
            tree, home, {"archive": archive.name, "sha256": about["sha256"], "imported_at": at}
        )
    except (OSError, ValueError) as error:
        raise TransferError(f"{archive.name} cannot be unpacked", where=str(error)) from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)


@contextmanager
def _opened(archive: Path) -> Iterator[tarfile.TarFile]:
    command = ["zstd", "--decompress", "--stdout", "--quiet", "--", str(archive)]
    try:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    except FileNotFoundError as error:
        raise TransferError("zstd is missing", hint=_zstd_hint()) from error
    with process:
        try:
            with tarfile.open(fileobj=process.stdout, mode="r|") as tar:
                yield tar
        except tarfile.TarError as error:
            raise TransferError(f"{archive.name} is not a whole tar archive", where=str(error)) from error
        finally:
            process.kill()


def _zstd_hint() -> str:
    return "is zstd installed? (Debian: apt-get install zstd)"
