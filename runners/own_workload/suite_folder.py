"""A suite from a user's own files: `run --setup FILE --script FILE@WEIGHT`, and what keeps it under a name.

The suite is a folder below the home whose name follows from its content, so that the same files are the same
suite again: for a session that is resumed, for comparisons, and for commands that measure again.
"""

import argparse
import hashlib
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from build.files import make_folder
from build.home import locate_for_writing
from runners.own_workload.arguments import USUAL_SUITE
from runners.own_workload.kinds import OwnWorkloadError, ScriptKind, kind_of, quoted
from suites.definition import SuiteError, load_suite, own_suites, suite_names
from suites.generators.registry import require_runnable
from suites.keys.pgbench_scripts import WeightedScript, weighted_script

_TOML = """# Made by ./tidemark run from files of its user.
name = {name}
title = {title}
generator = {generator}
engines = [{engines}]
seed = 20260101
{keys}
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

{steps}"""

_OF_SUITE = re.compile(r"this suite has a mistake: (?:steps\.own\.(?:scripts: |options\.))?")
"""How errors begin about a file that the user has not written."""


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
    given = [option for option, value in others.items() if value]
    if not arguments.script:
        if given:
            raise OwnWorkloadError(
                f"{given[0]} needs a workload",
                where=given[0],
                hint="add --script FILE, a script of pgbench or sysbench",
            )
        return arguments.suite or USUAL_SUITE
    if arguments.suite:
        raise OwnWorkloadError(
            "--script makes a suite of its own", where="--script", hint="omit --suite, or --script"
        )
    try:
        scripts = [weighted_script(text) for text in arguments.script]
    except ValueError as error:
        raise OwnWorkloadError(str(error), where="--script") from error
    kind = kind_of(arguments, scripts)
    for option in given:
        if option in kind.refused:
            raise OwnWorkloadError(
                f"{option} is not for {scripts[0].name}", where=option, hint=kind.refused[option]
            )
    files = _files(arguments, kind, scripts)
    named = [WeightedScript(Path(script.name).name, script.weight) for script in scripts]
    return _written(_toml(arguments, kind, named), files)


def _files(
    arguments: argparse.Namespace, kind: ScriptKind, scripts: Sequence[WeightedScript]
) -> dict[str, bytes]:
    """Return the content of all files by their names in the folder of the suite."""
    files: dict[str, bytes] = {}
    if arguments.setup:
        files[Path(arguments.setup).name] = _content("--setup", Path(arguments.setup))
    for script in scripts:
        path = Path(script.name)
        _content("--script", path)
        for file in kind.files(path):
            name, content = str(file.relative_to(path.parent)), _content("--script", file)
            if name in files:
                raise OwnWorkloadError(
                    f"two files are called {name}", where="--script", hint="rename one of them; use weights"
                )
            files[name] = content
    return files


def _content(option: str, path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise OwnWorkloadError(f"{path} cannot be read: {error.strerror}", where=option) from error


def _toml(arguments: argparse.Namespace, kind: ScriptKind, scripts: Sequence[WeightedScript]) -> str:
    """Return a suite.toml, with `{name}` in place of the name."""
    setup = Path(arguments.setup).name if arguments.setup else None
    titles = [f"{script.name}@{script.weight}" if len(scripts) > 1 else script.name for script in scripts]
    keys = kind.keys(arguments, scripts)
    return _TOML.format(
        name="{name}",
        title=quoted(", ".join([*([setup] if setup else []), *titles])),
        generator=quoted(kind.generator),
        engines=", ".join(map(quoted, kind.engines)),
        keys=(f"setup = {quoted(setup)}\n" if setup else "") + keys,
        bounds=kind.bounds(arguments),
        steps=kind.steps(arguments, scripts),
    )


def _written(toml: str, files: Mapping[str, bytes]) -> str:
    """Write a suite below the home unless it is there; return its name. Raises OwnWorkloadError."""
    digest = hashlib.sha256(toml.encode())
    for name, content in files.items():
        digest.update(name.encode() + b"\0" + hashlib.sha256(content).digest())
    name = f"own-{digest.hexdigest()[:8]}"
    _write_suite(name, {"suite.toml": toml.replace("{name}", quoted(name), 1).encode(), **files})
    return name


def _write_suite(name: str, files: Mapping[str, bytes]) -> Path:
    """Write the files of a suite below the home, whole or not at all; return its folder."""
    suites = make_folder(locate_for_writing().suites)
    folder = suites / name
    if _files_in(folder) == files:
        return folder
    with tempfile.TemporaryDirectory(dir=suites, prefix=".") as scratch:
        whole = make_folder(Path(scratch) / name)
        for file, content in files.items():
            make_folder((whole / file).parent)
            (whole / file).write_bytes(content)
        try:
            require_runnable(load_suite(f"{whole}/"))
        except SuiteError as error:
            raise OwnWorkloadError(
                _OF_SUITE.sub("", error.what), where="--script", hint=error.hint
            ) from error
        shutil.rmtree(folder, ignore_errors=True)
        whole.rename(folder)
    return folder


def _files_in(folder: Path) -> dict[str, bytes]:
    """Return the content of all files in and below a folder by their paths in it."""
    inside = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in inside}


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
    files = _files_in(suite.folder)
    named = f"\nname = {quoted(suite.name)}\n".encode(), f"\nname = {quoted(name)}\n".encode()
    return _write_suite(name, {**files, "suite.toml": files["suite.toml"].replace(*named, 1)})
