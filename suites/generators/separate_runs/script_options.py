"""What sysbench says of a script before there is a server: its options, and what it does not define."""

import re
from collections.abc import Mapping
from pathlib import Path

from build.errors import did_you_mean
from build.version import Engine
from suites.definition import Suite, SuiteError
from suites.generators.complaints import complaint
from suites.generators.drivers import connection_options
from suites.keys.sysbench_scripts import plain_option
from suites.keys.values import Option
from suites.processes import ProcessError, run, tool
from suites.server import Address

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


CHECK_SECONDS = 20.0
"""Time limit for asking sysbench about a script, which has no server to work with."""

_OPTION = re.compile(r"^ *--([A-Za-z0-9_-]{1,100})(\[=on\|off\]|=\S+)? ", re.MULTILINE)
_NUMBER = re.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?")
_LACKS = re.compile(r"test does not implement the '(\w+)' command|cannot find the (event)\(\) function")
_BEFORE_CONNECTING = "`init' function failed"
"""What sysbench says of a function that it calls before it connects."""

_SWITCH = "[=on|off]"


def options_in(listing: str) -> dict[str, str]:
    """Return the options of a listing of sysbench: name, and how it is given.

    That is `=N`, `=STRING`, `=SIZE`, `=[LIST,...]` or `[=on|off]`.
    """
    return {match[1]: match[2] or "" for match in _OPTION.finditer(listing)}


def lacks(said: str) -> str | None:
    """Return the function or command that sysbench says a script does not define; None if it says nothing."""
    match = _LACKS.search(said)
    return (match[1] or match[2]) if match else None


def lua_path(folder: Path) -> Mapping[str, str]:
    """Return the variable with which a script finds modules in its folder, and those of sysbench."""
    return {"LUA_PATH": f"{folder}/?.lua;;"}


def require_script(suite: Suite) -> None:
    """Raise SuiteError, with file and line where there is one, unless the script loads and has its options.

    Also if it does not begin to run, or has no `prepare` and the suite no `load` or `setup`. Every command
    but `help` is told of a server that does not exist.
    """
    script = suite.folder / str(suite.script)
    known = _known_options(script)
    for step in suite.steps:
        try:
            for name, value in step.options.items():
                _require_option(name, value, known)
        except ValueError as error:
            raise SuiteError(
                f"{script.name}: {error}", where=f"options of step {step.name}", hint=_listing(script)
            ) from error
    for command in ("run", *(() if suite.has_files else ("prepare",))):
        said = _asked(script, command, suite.engines[0])
        if _BEFORE_CONNECTING in said:
            raise SuiteError(located_in(said, script.parent), where=str(script))
        missing = lacks(said)
        if missing is not None:
            also = "" if missing == "event" else ", and the suite has no load or setup"
            raise SuiteError(
                f"{script.name} does not define {missing}{also}",
                where=str(script),
                hint="name the script that people run, not one that it requires",
            )


def _listing(script: Path) -> str:
    return f"its options are listed by: sysbench {script.name} help"


def _known_options(script: Path) -> Mapping[str, str] | None:
    """Return the options of a script and of sysbench; None for a script that declares none, as old ones."""
    said = _asked(script, "help")
    if lacks(said) == "help":
        return None
    general = run([tool("sysbench"), "--help"], what="sysbench --help")
    return {**options_in(general), **options_in(said)}


def _require_option(name: str, value: Option, known: Mapping[str, str] | None) -> None:
    """Raise ValueError for an option that a script does not have, or for a value that is not of its kind."""
    if known is None:
        return
    kind = {plain_option(option): kind for option, kind in known.items()}.get(plain_option(name))
    if kind is None:
        meant = did_you_mean(name, known)
        raise ValueError(f"it has no option {name}" + f"; {meant}" * bool(meant))
    if kind == _SWITCH and not isinstance(value, bool) and value not in ("on", "off"):
        raise ValueError(f"the option {name} is on or off, not {value}")
    if kind == "=N" and (isinstance(value, bool) or not _NUMBER.fullmatch(str(value))):
        raise ValueError(f"the option {name} is a number, not {value}")


def _asked(script: Path, command: str, engine: Engine | None = None) -> str:
    """Return what sysbench says to a command. Raises SuiteError if the script cannot be loaded."""
    nowhere = (
        [] if engine is None else connection_options(Address(engine, Path("/nonexistent/s.1"), "-", "-"))
    )
    argv = [tool("sysbench"), str(script), *nowhere, "--events=1", "--time=1", command]
    try:
        return run(argv, what="sysbench", env=lua_path(script.parent), seconds=CHECK_SECONDS)
    except ProcessError as error:
        if engine is None and lacks(error.what) is None:
            raise SuiteError(located_in(error.what, script.parent), where=str(script)) from error
        return error.what
