"""What earlier compiles have left for later ones: failures, answers of configure, and objects of ccache.

Sources that do not compile are remembered by build key, so that no command tries in vain a second time. Only
an error of the compiler or the linker in the log is remembered, and only as long as the same packages are
installed. A full disk, a killed process or a failed configure says nothing about the source.

With the answers of an earlier run configure takes a few seconds. Autoconf writes what it has found out about
the machine into a cache file, and takes it from there. A site file names that file (Autoconf's manual,
"Setting Site Defaults"), rather than the option `--cache-file`: Postgres' configure writes its words into a
header that all files include, and with other words slim builds would share no object with whole ones. The
answers depend on the script that asks, on its options, on the compiler and on what is installed, and so do
the names of the files in which they are kept.
"""

import hashlib
import json
import os
import pwd
import re
import shlex
import shutil
import stat
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from build import host
from build.compile_commands import CompileError, last_output
from build.errors import TidemarkError, shell_line
from build.files import json_value, make_folder, open_checked, write_atomically
from build.home import Home
from build.request import BuildSpec

LONGEST_LINE = 200
"""The most characters of a line of the log that is shown."""

LONGEST_REASON = 20_000
"""The most characters of a reason that is kept."""

MAX_COMPLAINTS = 20
"""The most lines of the log that are kept with a failure."""

SCRIPT = "configure"
"""The script in a source tree that asks."""

SITE = "config.site"
"""The site file in the scratch folder, which names the file with the answers."""

INSTALLED = (
    "/var/lib/dpkg/status",
    "/usr/include",
    "/usr/local/include",
    "/usr/lib",
    "/usr/local/lib",
)
"""Files and folders that change when a package is installed or removed, or a library by hand."""

_COMPILER_ERROR = re.compile(r":\d+: (?:fatal )?error: |^ld: |undefined reference to")
_MACHINE_ERROR = re.compile(r"No space left on device|Killed signal|signal 9|Cannot allocate memory")

_SHARED, _OF_COMPILES, _UNKNOWN = 0o750, 0o700, 0o000


class KnownFailureError(CompileError):
    """A source that is known not to compile here; `complaints` are the lines that its log had then."""

    def __init__(self, known: "KnownFailure", hint: str) -> None:
        super().__init__(known.what, where=known.where, hint=hint)
        self.complaints = known.complaints or [known.what.partition("\n")[0][:LONGEST_LINE]]


@dataclass(frozen=True)
class KnownFailure:
    """A compile that failed because of its source."""

    key: str
    """The build key, 64 hex digits."""

    what: str
    where: str
    """The path of the log."""

    failed_at: str
    installed: list[str]
    """What was installed on the machine, as `installed_packages` returns it."""

    complaints: list[str]
    """The first errors of the compiler or the linker; the log may be gone when they are asked for."""


def compiler_errors(error: TidemarkError) -> list[str]:
    """Return the errors of the compiler or the linker in the log of a failed compile: of its last command."""
    if isinstance(error, KnownFailureError):
        return error.complaints
    lines = last_output(_log_of(error))
    return [line[:LONGEST_LINE] for line in lines if _COMPILER_ERROR.search(line)]


def is_of_machine(error: TidemarkError) -> bool:
    """Return whether a compile failed because the machine ran out of disk or memory.

    The whole log is searched: of parallel compilers one may say so long before the last one ends.
    """
    if isinstance(error, KnownFailureError):
        return False
    return any(_MACHINE_ERROR.search(text) for text in (str(error), _log_of(error)))


def _log_of(error: TidemarkError) -> str:
    log = Path(error.where)
    return log.read_text(errors="replace") if error.where and log.is_file() else ""


def remember_failure(home: Home, spec: BuildSpec, error: CompileError) -> None:
    """Remember that a source does not compile, if the log shows that it is to blame."""
    if is_of_machine(error) or not compiler_errors(error):
        return
    content = {
        "key": spec.key,
        "installed": installed_packages(),
        "failed_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "what": error.what[-LONGEST_REASON:],
        "where": error.where,
        "complaints": compiler_errors(error)[:MAX_COMPLAINTS],
    }
    make_folder(home.failures)
    write_atomically(_file(home, spec), json.dumps(content, indent=2) + "\n")


def known_failure(home: Home, spec: BuildSpec) -> CompileError | None:
    """Return the error with which a source failed to compile here; None if it is worth a try."""
    try:
        known = read_failure(_file(home, spec).read_bytes())
    except OSError:
        return None
    if known is None or known.key != spec.key or known.installed != installed_packages():
        return None
    day, version = known.failed_at[:10], spec.version
    hint = (
        f"it failed on {day} and is not tried again; {shell_line('./tidemark', 'build', version)} tries again"
    )
    return KnownFailureError(known, hint)


def read_failure(text: bytes) -> KnownFailure | None:
    """Return what a file says; None for one that is damaged, which the next failure replaces."""
    try:
        content = json_value(text)
        return KnownFailure(
            key=str(content["key"]),
            what=str(content["what"]),
            where=str(content["where"]),
            failed_at=str(content["failed_at"]),
            installed=[str(program) for program in content["installed"]],
            complaints=[str(complaint)[:LONGEST_LINE] for complaint in content.get("complaints", [])],
        )
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def forget_failure(home: Home, spec: BuildSpec) -> None:
    """Forget that a source did not compile."""
    _file(home, spec).unlink(missing_ok=True)


def _file(home: Home, spec: BuildSpec) -> Path:
    return home.failures / f"{spec.key}.json"


@dataclass
class KeptAnswers:
    """The answers for one build; `file` is where its configure reads and writes them.

    A recipe that takes none leaves none either.
    """

    home: Home
    spec: BuildSpec
    file: Path
    _kept: Path | None = None

    def environment(self) -> dict[str, str]:
        """Return the variables with which configure finds the file; it need not exist yet."""
        if not self.spec.recipe.takes_answers:
            return {}
        site = self.file.with_name(SITE)
        site.write_text(f"cache_file={shlex.quote(str(self.file))}\n", encoding="utf-8")
        return {"CONFIG_SITE": str(site)}

    def take_over(self, script: bytes) -> None:
        """Provide the answers of an earlier run of the same configure script, if there are any."""
        if not self.spec.recipe.takes_answers:
            return
        self._kept = self.home.answers / _name(self.spec, script)
        if self._kept.exists():
            shutil.copyfile(self._kept, self.file)

    def keep(self) -> None:
        """Keep the answers for the next compile, unless it has some; the compile has succeeded."""
        if self._kept is None or self._kept.exists() or not self.file.exists():
            return
        partial = make_folder(self.home.answers) / f".{self._kept.name}.{os.getpid()}"
        try:
            answers = os.fdopen(open_checked(self.file), "rb")
        except OSError:
            return  # It is no file, and was not made by configure.
        with answers, partial.open("wb") as copy:
            shutil.copyfileobj(answers, copy)
        partial.replace(self._kept)


def installed_packages() -> list[str]:
    """Return the state of what is installed on the machine: when each of INSTALLED changed last."""
    return [f"{path} {path.stat().st_mtime_ns if path.exists() else 0}" for path in map(Path, INSTALLED)]


def _name(spec: BuildSpec, script: bytes) -> str:
    """Return the hex digest of everything that the answers depend on."""
    digest = hashlib.sha256(script)
    command, compiler = spec.recipe.stages[0].command, spec.compiler
    parts = [*command, compiler.command, compiler.version, host.os_name(), *installed_packages()]
    digest.update("\0".join(parts).encode())
    return digest.hexdigest()


def prepare_ccache(folder: Path, account: pwd.struct_passwd, *, writable: bool) -> None:
    """Make the folder of ccache one that an account may read, and also write to with `writable`.

    A commit that is compiled runs what its makefiles say, as the user that may write to ccache. It could
    store objects that do not belong to its own sources, and later compiles would take them. Patches therefore
    read ccache and cannot write to it; commits of a repository can.

    No process of the account exists yet. The mode of the folder says which it is, so that the owner of
    thousands of files changes only when patched and other compiles alternate. No other user can enter it.
    """
    folder = make_folder(folder).resolve()
    owner, mode = (account.pw_uid, _OF_COMPILES) if writable else (0, _SHARED)
    found = folder.stat()
    if (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)) == (owner, account.pw_gid, mode):
        return
    os.chown(folder, 0, account.pw_gid)
    folder.chmod(_UNKNOWN)  # while this is going on, and after it was interrupted
    for _, folders, files, place in os.fwalk(folder):
        for name in (*folders, *files):
            about = os.stat(name, dir_fd=place, follow_symlinks=False)
            if stat.S_ISDIR(about.st_mode) or (stat.S_ISREG(about.st_mode) and about.st_nlink == 1):
                os.chown(name, owner, account.pw_gid, dir_fd=place, follow_symlinks=False)
            else:
                os.unlink(name, dir_fd=place)  # a lock that was left, or what ccache never makes
    os.chown(folder, owner, account.pw_gid)
    folder.chmod(mode)
