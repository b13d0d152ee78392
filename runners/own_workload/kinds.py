"""The kinds of scripts that people have: which load generator runs them, and the steps that they make."""

import argparse
import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from build.errors import TidemarkError
from build.version import Engine
from suites.definition import GeneratorName
from suites.keys.pgbench_scripts import PROTOCOLS, WeightedScript
from suites.keys.sql_statements import statements_in
from suites.keys.sysbench_scripts import files_of_script

_SCALE = """
[scale]
unit = "branch"
tables.pgbench_accounts = { rows = 100_000, bytes_per_row = 150 }
"""


class OwnWorkloadError(TidemarkError):
    """The options that describe a user's own workload contradict each other, or a file cannot be read."""


Files = Mapping[str, Path]
"""All files by their names in the folder of the suite."""


@dataclass(frozen=True)
class ScriptKind:
    """How scripts of one kind become a suite."""

    generator: GeneratorName
    engines: tuple[Engine, ...]
    steps: Callable[[argparse.Namespace, Sequence[WeightedScript], Files], str]
    """Returns the steps as TOML; the names of the scripts are those of the files beside suite.toml."""
    keys: Callable[[argparse.Namespace, Sequence[WeightedScript]], str] = lambda arguments, scripts: ""
    """Returns further keys of the suite as TOML."""
    bounds: Callable[[argparse.Namespace], str] = lambda arguments: ""
    """Returns the key of each profile with the bounds of the data."""
    files: Callable[[Path], Sequence[Path]] = lambda script: [script]
    """Returns a script and the files that it needs, in or below its folder. May raise OSError."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """Options that are not for these scripts, and what to do instead."""


def defined(arguments: argparse.Namespace, pattern: str) -> dict[str, str]:
    """Return what --define sets by name, which matches `pattern`. Raises OwnWorkloadError."""
    values = {}
    for text in arguments.define:
        name, equals, value = text.partition("=")
        if not equals or not re.fullmatch(pattern, name):
            raise OwnWorkloadError(f"'{text}' must be NAME=VALUE", where="--define")
        values[name] = value
    return values


def quoted(text: str) -> str:
    """Return a basic string of TOML, whose escapes JSON has, too."""
    return json.dumps(text).replace("\x7f", "\\u007f")


def _step(title: str, keys: Sequence[str], name: str = "own") -> str:
    return "\n".join(["[[steps]]", f"name = {quoted(name)}", f"title = {quoted(title)}", *keys, ""])


def _rate(arguments: argparse.Namespace) -> list[str]:
    return [f"rate = {arguments.rate}"] if arguments.rate else []


# --- pgbench


def _scale_of(arguments: argparse.Namespace) -> int | None:
    return arguments.scale or (None if arguments.setup or arguments.load else 1)


def _pgbench_keys(arguments: argparse.Namespace, scripts: Sequence[WeightedScript]) -> str:
    return _initialize(arguments) + (_SCALE if _scale_of(arguments) else "")


def _initialize(arguments: argparse.Namespace) -> str:
    """Return the key for the options of pgbench's own tables; empty without any."""
    if not arguments.partitions:
        if arguments.partition_method:
            raise OwnWorkloadError("--partition-method needs --partitions N", where="--partition-method")
        return ""
    if not _scale_of(arguments):
        raise OwnWorkloadError(
            "the tables that are partitioned are pgbench's own", where="--partitions", hint="add --scale N"
        )
    given = [f"partitions = {arguments.partitions}"]
    if arguments.partition_method:
        given.append(f"partition_method = {quoted(arguments.partition_method)}")
    return f"initialize = {{ {', '.join(given)} }}\n"


def _pgbench_bounds(arguments: argparse.Namespace) -> str:
    scale = _scale_of(arguments)
    return f"scale = [{scale}, {scale}]\n" if scale else ""


def _pgbench_steps(arguments: argparse.Namespace, scripts: Sequence[WeightedScript], files: Files) -> str:
    weighted = [f"{script.name}@{script.weight}" for script in scripts]
    variables = defined(arguments, "[A-Za-z_][A-Za-z0-9_]*")
    protocol, connect = arguments.protocol or PROTOCOLS[-1], str(arguments.connect).lower()
    return _step(
        ", ".join(weighted),
        [
            f"scripts = [{', '.join(map(quoted, weighted))}]",
            f"options = {{ protocol = {quoted(protocol)}, connect = {connect} }}",
            *_rate(arguments),
            *(["", "[steps.variables]"] if variables else []),
            *(f"{name} = {quoted(value)}" for name, value in variables.items()),
        ],
    )


# --- sysbench

_OF_PGBENCH = "it is of pgbench; options of a sysbench script are --define NAME=VALUE"


def _sysbench_keys(arguments: argparse.Namespace, scripts: Sequence[WeightedScript]) -> str:
    return f"script = {quoted(scripts[0].name)}\n"


def _sysbench_steps(arguments: argparse.Namespace, scripts: Sequence[WeightedScript], files: Files) -> str:
    options = defined(arguments, "[A-Za-z_][A-Za-z0-9_-]*")
    return _step(
        scripts[0].name,
        [
            *_rate(arguments),
            *(["", "[steps.options]"] if options else []),
            *(f"{name} = {_number_or_text(value)}" for name, value in options.items()),
        ],
    )


def _number_or_text(value: str) -> str:
    return value if re.fullmatch(r"0|[1-9][0-9]{0,17}", value) else quoted(value)


# --- queries


def _query_steps(arguments: argparse.Namespace, scripts: Sequence[WeightedScript], files: Files) -> str:
    names: dict[str, WeightedScript] = {}
    for script in scripts:
        name = re.sub("[^a-z0-9]+", "-", Path(script.name).stem.lower()).strip("-")
        name = name if re.match("[a-z]", name) else f"q{name}"
        if name in names:
            raise OwnWorkloadError(
                f"{names[name].name} and {script.name} are steps of one name", where="--script", hint="rename"
            )
        names[name] = script
    return "\n".join(
        _step(
            script.name,
            [
                f"options = {{ file = {quoted(script.name)} }}",
                f"reads_only = {str(_reads_only(files[script.name].read_bytes())).lower()}",
            ],
            name,
        )
        for name, script in names.items()
    )


def _reads_only(content: bytes) -> bool:
    text = content.decode(errors="replace")
    return all(statement.reads_only for engine in Engine for statement in statements_in(text, engine))


PGBENCH = ScriptKind(
    GeneratorName.PGBENCH, (Engine.POSTGRES,), _pgbench_steps, _pgbench_keys, _pgbench_bounds
)
SYSBENCH = ScriptKind(
    GeneratorName.PLAIN_SYSBENCH,
    tuple(Engine),
    _sysbench_steps,
    _sysbench_keys,
    files=files_of_script,
    refused={
        "--scale": "it is of pgbench; a sysbench script has --define NAME=VALUE, such as --define tables=4",
        "--partitions": _OF_PGBENCH,
        "--partition-method": _OF_PGBENCH,
        "--protocol": _OF_PGBENCH,
        "--connect": _OF_PGBENCH,
    },
)


QUERIES = ScriptKind(
    GeneratorName.QUERIES,
    tuple(Engine),
    _query_steps,
    lambda arguments, scripts: "plans = true\n",
    lambda arguments: "warm_seconds = 1\nlimit_seconds = 600\n",
    refused={
        **dict.fromkeys(
            ("--scale", "--partitions", "--partition-method", "--protocol", "--connect", "--rate"),
            "it is of pgbench: omit it",
        ),
        "--define": "SQL has no variables: write their values into the file",
    },
)


def kind_of(
    arguments: argparse.Namespace, scripts: Sequence[WeightedScript], engines: Collection[Engine]
) -> ScriptKind:
    """Return the kind of the scripts, for versions of `engines`.

    Raises OwnWorkloadError if they do not go together.
    """
    if any(script.name.endswith(".lua") for script in scripts):
        return _sysbench_of(arguments, scripts)
    if arguments.generator != "queries" and set(engines) <= set(PGBENCH.engines):
        return PGBENCH
    if arguments.generator == "pgbench":
        raise OwnWorkloadError(
            "pgbench runs scripts on Postgres alone", where="--generator", hint="use --generator queries"
        )
    for script in scripts:
        if script.weight != 1:
            raise OwnWorkloadError(
                f"{script.name} has a weight, but each file of SQL is a step of its own",
                where="--script",
                hint="omit the weight; pgbench draws scripts by weight, on Postgres",
            )
    if not arguments.setup and not arguments.load:
        raise OwnWorkloadError(
            f"{scripts[0].name} needs tables",
            where="--script",
            hint="add --setup FILE or --load FILE, which makes them",
        )
    return QUERIES


def _sysbench_of(arguments: argparse.Namespace, scripts: Sequence[WeightedScript]) -> ScriptKind:
    if len(scripts) > 1 or scripts[0].weight != 1:
        raise OwnWorkloadError(
            "sysbench runs one script, and knows no weights",
            where="--script",
            hint="measure each script with a command of its own; pgbench draws scripts by weight",
        )
    if arguments.generator is not None:
        raise OwnWorkloadError(
            f"{scripts[0].name} is of sysbench", where="--generator", hint="omit --generator"
        )
    return SYSBENCH
