"""Export and import of builds as archives, so that several machines measure the same binaries."""

import json
import os
import re
import shutil
import subprocess
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from build import accounts, environment, host, installs
from build.cache import store
from build.cache.takeover import check_members, extract_members
from build.errors import TidemarkError
from build.files import json_value, make_folder, write_atomically
from build.finished_build import Build
from build.home import Home
from build.lock import held
from build.manifest import HostRecord, Manifest, manifest_of
from build.progress import Progress
from build.sources.download import sha256_of

FORMAT = 1
"""Format number of the file that `export` writes beside an archive."""

_SUFFIX = ".tar.zst"

_PROGRAMS = ("bin", "sbin", "libexec")
"""Where builds have programs."""


class ArchiveError(TidemarkError):
    """A build cannot be exported, or an archive cannot be imported."""


def export(builds: Sequence[Build], folder: Path) -> list[Path]:
    """Write each build as `<engine>-<release>-<key>-linux-<arch>-glibc<version>.tar.zst` into `folder`.

    Beside each archive, a file with the extension `.json` contains the manifest and the SHA-256 of the
    archive. Return the paths of the archives. Raises ArchiveError if one cannot be written.
    """
    make_folder(folder)
    return [_export(build, folder) for build in builds]


def import_(path: Path, home: Home, progress: Progress) -> Build:
    """Import an archive that `export` wrote, or one of an install tree of a server.

    `path` is the archive or, of one that was exported, the `.json` file beside it. An install tree is the
    release that its server says it is, and needs no description.

    Digest, architecture, C library and the name of every member are checked before anything is unpacked, and
    then whether this machine has the libraries that the programs need. The build then appears in the cache by
    one rename. A build that is already there is left as it is. Raises ArchiveError, MemberError, or
    PrefixError for an install tree without a server that runs here.
    """
    if not path.name:
        raise ArchiveError(f"'{path}' is not the path of an archive", hint="./tidemark build import FILE...")
    stem = path.name.removesuffix(_SUFFIX).removesuffix(".json")
    archive, sidecar = path.with_name(stem + _SUFFIX), path.with_name(f"{stem}.json")
    if not archive.is_file():
        raise ArchiveError(f"there is no archive '{archive}'", hint="./tidemark build import FILE.tar.zst...")
    exported = description(sidecar)
    digest = sha256_of(archive)
    if exported is None:
        return _import_tree(archive, digest, home, progress)
    manifest, expected = exported
    _check_host(manifest.host, sidecar)
    name = store.folder_name(manifest.engine, manifest.release, manifest.key)
    with _locked(manifest.key, name, home, progress):
        existing = store.find(home, manifest.key)
        if existing is not None:
            progress.note(f"{name}: already in the build cache")
            return existing
        if expected != digest:
            raise ArchiveError(
                f"{archive.name} has SHA-256 {digest}, but its .json file says {expected}: refused",
                hint="the copy is damaged: copy the archive again",
            )
        with progress.task(f"import {name}"), _unpacked(archive, manifest.key, home, name) as tree:
            if _manifest_in(tree) != manifest.to_json():
                raise ArchiveError(
                    "the manifest in the archive differs from the one in the .json file beside it",
                    where=str(archive),
                    hint="copy both files from the same export",
                )
            return _published(tree, archive, digest, home)


def _import_tree(archive: Path, digest: str, home: Home, progress: Progress) -> Build:
    """Import an install tree, which has no manifest yet."""
    name = archive.name.removesuffix(_SUFFIX)
    with _locked(digest, name, home, progress):
        for build in store.all_builds(home):
            if store.imported_from(build) == digest:
                progress.note(f"{name}: already in the build cache")
                return build
        with progress.task(f"import {name}"), _unpacked(archive, digest, home) as tree:
            if _manifest_in(tree) is not None:
                raise ArchiveError(
                    f"the .json file of {archive.name} is missing, or not the one that was exported with it",
                    where=str(archive.parent),
                    hint="copy the archive and its .json file into the same folder",
                )
            engine = installs.engine_in(tree)
            if engine is None:
                raise ArchiveError(
                    f"{archive.name} has no server in bin/ of its only folder",
                    where=str(archive),
                    hint="pack the folder of one install tree, with the server in its bin/",
                )
            about = installs.described_install(tree, engine)
            source = {"kind": installs.INSTALL, "location": archive.name, "digest": f"sha256:{digest}"}
            about |= {"version": f"{engine}@{about['release']}", "source": source}
            existing = store.find(home, about["key"])
            if existing is not None:
                progress.note(f"{name}: already in the build cache, as {existing.prefix.name}")
                return existing
            store.write_manifest(tree, manifest_of(about))
            return _published(tree, archive, digest, home)


def description(sidecar: Path) -> tuple[Manifest, str] | None:
    """Return the manifest and the SHA-256 in the file that `export` wrote beside an archive; None without it.

    Raises ArchiveError if the file is damaged, or of another format.
    """
    try:
        about: Mapping[str, Any] = json_value(sidecar.read_text(encoding="utf-8"))
        if "manifest" not in about:
            return None
        if about["format"] != FORMAT:
            raise ArchiveError(
                f"the file beside the archive has format {about['format']}, but only {FORMAT} is supported",
                where=str(sidecar),
                hint="export the build again with this version of Tidemark",
            )
        return manifest_of(about["manifest"]), str(about["sha256"])
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        reason = f"the key {error} is missing" if isinstance(error, KeyError) else str(error)
        raise ArchiveError(
            "the file beside the archive does not describe a build", where=f"{sidecar}: {reason}"
        ) from error


@contextmanager
def _locked(key: str, name: str, home: Home, progress: Progress) -> Iterator[None]:
    with held(store.lock_path(home, key), lambda: progress.note(f"{name}: waiting for another process")):
        yield


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


@contextmanager
def _unpacked(archive: Path, key: str, home: Home, top: str = "") -> Iterator[Path]:
    """Yield the tree that was unpacked from an archive, which is deleted afterwards unless it was published.

    `top` is the only folder in the archive, if that is known. Raises ArchiveError and MemberError.
    """
    with _opened(archive) as tar:
        top, size = check_members(tar, top)
    free = shutil.disk_usage(make_folder(home.builds)).free
    if size > free:
        raise ArchiveError(
            f"{archive.name} needs {size / 1e9:.1f} GB, but only {free / 1e9:.1f} GB are free",
            where=str(home.builds),
            hint="free some disk space, or set TIDEMARK_HOME to a folder on a larger disk",
        )
    staging = store.staging(home, key)
    shutil.rmtree(staging, ignore_errors=True)
    make_folder(staging).chmod(0o700)  # whatever the umask is, until members have their rights
    try:
        with _opened(archive) as tar:
            extract_members(tar, staging)
        staging.chmod(0o755)  # the user who runs its programs has to get in
        _check_libraries(staging / top)
        yield staging / top
    except (OSError, ValueError) as error:
        raise ArchiveError(f"{archive.name} cannot be unpacked", where=str(error)) from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _manifest_in(tree: Path) -> Any:
    """Return the manifest that was packed with a tree, as JSON; None without one."""
    path = tree / store.MANIFEST
    return json_value(path.read_bytes()) if path.exists() else None


def _published(tree: Path, archive: Path, digest: str, home: Home) -> Build:
    at = datetime.now(UTC).isoformat(timespec="seconds")
    return store.publish(tree, home, {"archive": archive.name, "sha256": digest, "imported_at": at})


def _check_libraries(tree: Path) -> None:
    """Raise ArchiveError if programs of a tree need shared libraries that this machine lacks.

    A build of another distribution lacks some although its C library is older: between Debian 12 and 13
    libaio.so.1 became libaio.so.1t64. As root the user of the servers asks, who needs access to the tree.
    Raises AccountError.
    """
    accounts.require_access(accounts.server_account(), tree)
    for program in (path for name in _PROGRAMS for path in sorted((tree / name).glob("*"))):
        lacking = _not_found(program) if program.is_file() and os.access(program, os.X_OK) else []
        if lacking:
            raise ArchiveError(
                f"{tree.name} needs {', '.join(sorted(lacking))}, which this machine does not have",
                where=str(program.relative_to(tree)),
                hint="install the package that has it, or compile the version on this machine",
            )


def _not_found(program: Path) -> list[str]:
    # `ldd` asks the loader and runs none of the programs; what is not a program for this loader, such as a
    # script, lacks nothing. Without the variables that add libraries, which servers do not get either. The
    # loader runs the library that a program names as its auditor (ld.so(8), DT_AUDIT).
    asked = subprocess.run(
        [*accounts.become(accounts.server_account()), "ldd", program],
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        env=environment.measured(),
    )
    return [line.split(" => ")[0].strip() for line in asked.stdout.splitlines() if line.endswith("not found")]


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
