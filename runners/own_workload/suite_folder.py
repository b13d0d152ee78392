"""A suite from a user's own files: `run --setup FILE --script FILE@WEIGHT`, and what keeps it under a name.

The suite is a folder below the home whose name follows from its content, so that the same files are the same
suite again: for a session that is resumed, for comparisons, and for commands that measure again.
"""

import argparse
import hashlib
import json
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from build.errors import TidemarkError
from build.files import make_folder
from build.home import locate_for_writing
from runners.own_workload.arguments import USUAL_SUITE
from suites.definition import SuiteError, load_suite, own_suites, suite_names
from suites.keys.pgbench_scripts import PROTOCOLS, weighted_script

_TOML = """# Made by ./tidemark run from files of its user.
name = {name}
title = {title}
generator = "pgbench"
engines = ["postgres"]
seed = 20260101
{data}
[profiles.smoke]
title = "seconds: does everything work, and is anything grossly slower?"
seconds = 6
slice_seconds = 3
counted_passes = 2
perf_seconds = 6
repetitions = 3
data_to_memory = 0.01
{bounds}buffer_to_memory = 0.2
settle_seconds = 0

[profiles.short]
title = "minutes"
seconds = 30
slice_seconds = 5
counted_passes = 2
perf_seconds = 20
repetitions = 5
data_to_memory = 0.01
{bounds}buffer_to_memory = 0.2
settle_seconds = 2

[profiles.long]
title = "2 hours on the same data"
mode = "long"
seconds = 7200
slice_seconds = 60
perf_seconds = 120
repetitions = 1
data_to_memory = 0.01
{bounds}buffer_to_memory = 0.25
settle_seconds = 60

[[steps]]
name = "own"
title = {title}
scripts = {scripts}
options = {{ protocol = {protocol}, connect = {connect} }}
{more}"""

_SCALE = """
[scale]
unit = "branch"
tables.pgbench_accounts = { rows = 100_000, bytes_per_row = 150 }
"""


_OF_SCRIPTS = "this suite has a mistake: steps.own.scripts: "
"""How errors begin about the scripts of a file that the user has not written."""


class OwnWorkloadError(TidemarkError):
    """The options that describe a user's own workload contradict each other, or a file cannot be read."""


def suite_of(arguments: argparse.Namespace) -> str:
    """Return the name of the suite of a command line, which is written if it has files of its own.

    Raises OwnWorkloadError, with file and line of what is wrong in a script.
    """
    others = {
        "--setup": arguments.setup,
        "--scale": arguments.scale,
        "--protocol": arguments.protocol,
        "--connect": arguments.connect,
        "--define": arguments.define,
        "--rate": arguments.rate,
    }
    if not arguments.script:
        for option, given in others.items():
            if given:
                raise OwnWorkloadError(
                    f"{option} needs a workload", where=option, hint="add --script FILE, a pgbench script"
                )
        return arguments.suite or USUAL_SUITE
    if arguments.suite:
        raise OwnWorkloadError(
            "--script makes a suite of its own", where="--script", hint="omit --suite, or --script"
        )
    files, scripts = _files(arguments)
    return _written(_toml(arguments, scripts), files)


def _files(arguments: argparse.Namespace) -> tuple[dict[str, bytes], list[str]]:
    """Return the content of all files by name, and the scripts as `NAME@WEIGHT`."""
    files: dict[str, bytes] = {}
    scripts = []
    if arguments.setup:
        files[Path(arguments.setup).name] = _content("--setup", arguments.setup)
    for text in arguments.script:
        try:
            script = weighted_script(text)
        except ValueError as error:
            raise OwnWorkloadError(str(error), where="--script") from error
        name, content = Path(script.name).name, _content("--script", script.name)
        if name in files:
            raise OwnWorkloadError(
                f"two files are called {name}", where="--script", hint="rename one of them; use weights"
            )
        files[name] = content
        scripts.append(f"{name}@{script.weight}")
    return files, scripts


def _content(option: str, path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise OwnWorkloadError(f"{path} cannot be read: {error.strerror}", where=option) from error


def _toml(arguments: argparse.Namespace, scripts: Sequence[str]) -> str:
    """Return a suite.toml, with `{name}` in place of the name."""
    setup = Path(arguments.setup).name if arguments.setup else None
    scale = arguments.scale or (None if setup else 1)
    defined = {}
    for text in arguments.define:
        name, equals, value = text.partition("=")
        if not equals or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            raise OwnWorkloadError(f"'{text}' must be NAME=VALUE", where="--define")
        defined[name] = value
    more = [f"rate = {arguments.rate}\n"] if arguments.rate else []
    more += ["[steps.variables]\n", *(f"{name} = {_quoted(value)}\n" for name, value in defined.items())]
    return _TOML.format(
        name="{name}",
        title=_quoted(", ".join([*([setup] if setup else []), *scripts])),
        data=(f"setup = {_quoted(setup)}\n" if setup else "") + (_SCALE if scale else ""),
        bounds=f"scale = [{scale}, {scale}]\n" if scale else "",
        scripts=f"[{', '.join(map(_quoted, scripts))}]",
        protocol=_quoted(arguments.protocol or PROTOCOLS[-1]),
        connect=str(arguments.connect).lower(),
        more="".join(more) if defined else "".join(more[:-1]),
    )


def _quoted(text: str) -> str:
    """Return a basic string of TOML, whose escapes JSON has, too."""
    return json.dumps(text).replace("\x7f", "\\u007f")


def _written(toml: str, files: Mapping[str, bytes]) -> str:
    """Write a suite below the home unless it is there; return its name. Raises OwnWorkloadError."""
    digest = hashlib.sha256(toml.encode())
    for name, content in files.items():
        digest.update(name.encode() + b"\0" + hashlib.sha256(content).digest())
    name = f"own-{digest.hexdigest()[:8]}"
    _write_suite(name, {"suite.toml": toml.replace("{name}", _quoted(name), 1).encode(), **files})
    return name


def _write_suite(name: str, files: Mapping[str, bytes]) -> Path:
    """Write the files of a suite below the home, whole or not at all; return its folder."""
    suites = make_folder(locate_for_writing().suites)
    folder = suites / name
    present = {path.name: path.read_bytes() for path in folder.glob("*") if path.is_file()}
    if present == files:
        return folder
    with tempfile.TemporaryDirectory(dir=suites, prefix=".") as scratch:
        whole = make_folder(Path(scratch) / name)
        for file, content in files.items():
            (whole / file).write_bytes(content)
        try:
            load_suite(f"{whole}/")
        except SuiteError as error:
            raise OwnWorkloadError(error.what.removeprefix(_OF_SCRIPTS), where="--script") from error
        shutil.rmtree(folder, ignore_errors=True)
        whole.rename(folder)
    return folder


def save(tried: str, name: str) -> Path:
    """Keep the suite `tried`, which a command line made, under a name of its own; return its folder.

    Raises SuiteError for a name that is taken or is none.
    """
    suite = load_suite(tried)
    if suite.name not in own_suites():
        raise SuiteError(f"{tried} was not made by run --script", hint="./tidemark suite list shows those")
    if not re.fullmatch(r"[a-z][a-z0-9-]*", name) or name in {*suite_names(), *own_suites()}:
        raise SuiteError(
            f"'{name}' cannot be the name of a new suite",
            hint="use lower-case letters, digits and hyphens, and no name that there is",
        )
    files = {path.name: path.read_bytes() for path in sorted(suite.folder.iterdir())}
    named = f"\nname = {_quoted(suite.name)}\n".encode(), f"\nname = {_quoted(name)}\n".encode()
    return _write_suite(name, {**files, "suite.toml": files["suite.toml"].replace(*named, 1)})
