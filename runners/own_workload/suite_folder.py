"""A suite from a user's own files: `run --setup FILE --script FILE@WEIGHT`, and what keeps it under a name.

The suite is a folder below the home whose name follows from its content, so that the same files are the same
suite again: for a session that is resumed, for comparisons, and for commands that measure again.
"""

import argparse
import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from build.accounts import server_account
from build.files import make_folder
from build.home import locate_for_writing
from build.version import Engine
from runners.own_workload.arguments import USUAL_SUITE
from runners.own_workload.kinds import Files, OwnWorkloadError, ScriptKind, kind_of, quoted
from suites.definition import SuiteError, load_suite, own_suites, suite_names
from suites.generators.registry import require_runnable
from suites.keys.loaded_file import kind_of as load_kind_of
from suites.keys.pgbench_scripts import WeightedScript, weighted_script

_TOML_NAME = "suite.toml"

_TOML = """# Made by ./tidemark run from files of its user.
name = {name}
title = {title}
generator = {generator}
engines = [{engines}]
{keys}
[profiles.smoke]
counted_passes = 2
data_to_memory = 0.01
{bounds}buffer_to_memory = 0.2

[profiles.short]
title = "minutes"
seconds = 30
slice_seconds = 5
counted_passes = 2
data_to_memory = 0.01
{bounds}settle_seconds = 2

[profiles.long]
title = "2 hours on the same data"
data_to_memory = 0.01
{bounds}
{steps}"""

_OF_SUITE = re.compile(
    r"this suite has a mistake: (?:steps\.[a-z0-9-]+\.(?:scripts: |options\.(?:file: )?))?"
)
"""How errors begin about a file that the user has not written."""


_BESIDE_SCRIPTS = (
    *(
        "load",
        "setup",
        "generator",
        "scale",
        "partitions",
        "partition_method",
        "protocol",
        "connect",
        "define",
        "rate",
    ),
)
"""The options that say more of a workload, which needs --script."""


def suite_of(arguments: argparse.Namespace, engines: Collection[Engine]) -> str:
    """Return the name of the suite of a command line, which is written if it has files of its own.

    `engines` are those of the versions.

    Raises OwnWorkloadError, with file and line of what is wrong in a script.
    """
    others = {f"--{name.replace('_', '-')}": vars(arguments)[name] for name in _BESIDE_SCRIPTS}
    given = [option for option, value in others.items() if value]
    if not arguments.script:
        if given:
            raise OwnWorkloadError(
                f"{given[0]} needs a workload",
                where=given[0],
                hint="add --script FILE, a script of pgbench or sysbench, or SQL",
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
    kind = kind_of(arguments, scripts, engines)
    for option in given:
        if option in kind.refused:
            raise OwnWorkloadError(
                f"{option} is not for {scripts[0].name}", where=option, hint=kind.refused[option]
            )
    files = _files(arguments, kind, scripts)
    named = [WeightedScript(Path(script.name).name, script.weight) for script in scripts]
    return _written(_toml(arguments, kind, named, files), files)


def _files(
    arguments: argparse.Namespace, kind: ScriptKind, scripts: Sequence[WeightedScript]
) -> dict[str, Path]:
    """Return all files, and the folder of a dump, by their names in the folder of the suite."""
    found: dict[str, Path] = {}

    def add(option: str, name: str, path: Path) -> None:
        if name in found:
            raise OwnWorkloadError(
                f"two files are called {name}", where=option, hint="rename one of them; use weights"
            )
        found[name] = path

    for option, given in (("--load", arguments.load), ("--setup", arguments.setup)):
        if given:
            path = Path(given).absolute()
            _require(option, given)
            add(option, path.name, path)
    for script in scripts:
        _require("--script", script.name)
        path = Path(script.name)
        for file in kind.files(path):
            _require("--script", str(file))
            add("--script", str(file.relative_to(path.parent)), file)
    return found


def _require(option: str, path: str) -> None:
    """Raise OwnWorkloadError unless a file can be read, and is of a kind that the option takes."""
    try:
        if option == "--load":
            load_kind_of(Path(path).absolute())
        else:
            Path(path).open("rb").close()
    except OSError as error:
        raise OwnWorkloadError(f"{path} cannot be read: {error.strerror}", where=option) from error
    except ValueError as error:
        raise OwnWorkloadError(str(error), where=option) from error


def _toml(
    arguments: argparse.Namespace, kind: ScriptKind, scripts: Sequence[WeightedScript], files: Files
) -> str:
    """Return a suite.toml, with `{name}` in place of the name."""
    setup = Path(arguments.setup) if arguments.setup else None
    load = Path(arguments.load).absolute() if arguments.load else None
    engines = [engine for engine in kind.engines if load is None or engine in load_kind_of(load).engines]
    named = [(key, path.name) for key, path in (("load", load), ("setup", setup)) if path is not None]
    titles = [f"{script.name}@{script.weight}" if len(scripts) > 1 else script.name for script in scripts]
    keys = kind.keys(arguments, scripts)
    return _TOML.format(
        name="{name}",
        title=quoted(", ".join([*(name for _, name in named), *titles])),
        generator=quoted(kind.generator),
        engines=", ".join(map(quoted, engines)),
        keys="".join(f"{key} = {quoted(name)}\n" for key, name in named) + keys,
        bounds=kind.bounds(arguments),
        steps=kind.steps(arguments, scripts, files),
    )


def _written(toml: str, files: Mapping[str, Path]) -> str:
    """Write a suite below the home unless it is there; return its name. Raises OwnWorkloadError."""
    digest = hashlib.sha256(toml.encode())
    for name, content in _digests(files).items():
        digest.update(name.encode() + b"\0" + content)
    name = f"own-{digest.hexdigest()[:8]}"
    _write_suite(name, toml.replace("{name}", quoted(name), 1), files)
    return name


def _digests(files: Mapping[str, Path]) -> dict[str, bytes]:
    """Return the SHA-256 of all files, those of folders included, by their names in the suite's folder."""
    found = {}
    for name, path in files.items():
        parts = sorted(part for part in path.rglob("*") if part.is_file()) if path.is_dir() else [path]
        for part in parts:
            with part.open("rb") as content:
                named = str(Path(name) / part.relative_to(path))
                found[named] = hashlib.file_digest(content, "sha256").digest()
    return found


def _write_suite(name: str, toml: str, files: Mapping[str, Path]) -> Path:
    """Write a suite.toml and the files beside it below the home, whole or not at all; return the folder."""
    suites = make_folder(locate_for_writing().suites)
    folder = suites / name
    wanted = {**_digests(files), _TOML_NAME: hashlib.sha256(toml.encode()).digest()}
    if folder.is_dir() and _digests({".": folder}) == wanted:
        _let_clients_read(folder)
        return folder
    with tempfile.TemporaryDirectory(dir=suites, prefix=".") as scratch:
        whole = make_folder(Path(scratch) / name)
        for file, path in files.items():
            make_folder((whole / file).parent)
            copy = shutil.copytree if path.is_dir() else shutil.copy
            copy(path, whole / file)
        (whole / _TOML_NAME).write_text(toml, encoding="utf-8")
        try:
            require_runnable(load_suite(f"{whole}/"))
        except SuiteError as error:
            raise OwnWorkloadError(
                _OF_SUITE.sub("", error.what), where="--script", hint=error.hint
            ) from error
        _let_clients_read(whole)
        shutil.rmtree(folder, ignore_errors=True)
        whole.rename(folder)
    return folder


def _let_clients_read(folder: Path) -> None:
    """Let the user of the clients read what is below a folder of root's, and by that nobody else."""
    account = server_account()
    if account is not None:
        for path in (folder, *folder.rglob("*")):
            os.chown(path, -1, account.pw_gid)
            path.chmod(path.stat().st_mode | (0o050 if path.is_dir() else 0o040))


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
    toml = (suite.folder / _TOML_NAME).read_text(encoding="utf-8")
    renamed = toml.replace(f"\nname = {quoted(suite.name)}\n", f"\nname = {quoted(name)}\n", 1)
    others = sorted(path for path in suite.folder.iterdir() if path.name != _TOML_NAME)
    return _write_suite(name, renamed, {path.name: path for path in others})
