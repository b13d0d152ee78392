"""Sources that do not compile: remembered by build key, so that no command tries in vain a second time.

Only an error of the compiler or the linker in the log is remembered, and only as long as the same packages
are installed. A full disk, a killed process or a failed configure says nothing about the source.
"""

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from build.build_spec import BuildSpec
from build.cache.answers import installed
from build.errors import TidemarkError
from build.files import json_value, make_folder, write_atomically
from build.home import Home
from build.programs.shell import shell_line
from build.programs.work import CompileError, last_output

LONGEST_LINE = 200
"""The most characters of a line of the log that is shown."""

LONGEST_REASON = 20_000
"""The most characters of a reason that is kept."""

MAX_COMPLAINTS = 20
"""The most lines of the log that are kept with a failure."""

_COMPILER_ERROR = re.compile(r":\d+: (?:fatal )?error: |^ld: |undefined reference to")
_MACHINE_ERROR = re.compile(r"No space left on device|Killed signal|signal 9|Cannot allocate memory")


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
    """What was installed on the machine, as `installed` returns it."""

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


def remember(home: Home, spec: BuildSpec, error: CompileError) -> None:
    """Remember that a source does not compile, if the log shows that it is to blame."""
    if is_of_machine(error) or not compiler_errors(error):
        return
    content = {
        "key": spec.key,
        "installed": installed(),
        "failed_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "what": error.what[-LONGEST_REASON:],
        "where": error.where,
        "complaints": compiler_errors(error)[:MAX_COMPLAINTS],
    }
    make_folder(home.failures)
    write_atomically(_file(home, spec), json.dumps(content, indent=2) + "\n")


def recall(home: Home, spec: BuildSpec) -> CompileError | None:
    """Return the error with which a source failed to compile here; None if it is worth a try."""
    try:
        known = read_failure(_file(home, spec).read_bytes())
    except OSError:
        return None
    if known is None or known.key != spec.key or known.installed != installed():
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


def forget(home: Home, spec: BuildSpec) -> None:
    """Forget that a source did not compile."""
    _file(home, spec).unlink(missing_ok=True)


def _file(home: Home, spec: BuildSpec) -> Path:
    return home.failures / f"{spec.key}.json"
