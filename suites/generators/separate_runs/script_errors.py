"""Errors of sysbench's scripts: file, line, and the sentence of the server or of Lua."""

import re
from pathlib import Path

from suites.generators.complaints import complaint

_FATAL = re.compile(
    r"^FATAL: (?:`\w+' function failed: *)?(?P<file>\S.*?\.lua):(?P<line>\d+): *(?P<said>.+)$", re.M
)
_OF_SERVER = re.compile(r"SQL error, errno = -?\d+, state = '\w*': *")


def located_in(said: str, folder: Path) -> str:
    """Return the first error in the output of sysbench, with file in `folder` and line if it has them."""
    match = _FATAL.search(said)
    if match is None:
        return complaint(said.splitlines())
    said = _OF_SERVER.sub("", match["said"])
    return f"{_in_folder(match['file'], folder)}, line {match['line']}: {said}"


def _in_folder(file: str, folder: Path) -> str:
    """Return the path in `folder` of a file as Lua calls it, whose long path has dots for its beginning."""
    end = file.removeprefix("...")
    paths = (path for path in folder.rglob("*.lua") if str(path).endswith(end))
    return next((str(path.relative_to(folder)) for path in paths), file)
