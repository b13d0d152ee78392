"""The kinds of scripts that people have: which load generator runs them, and the steps that they make."""

import argparse
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from build.errors import TidemarkError
from build.version import Engine
from suites.keys.generator_rules import GeneratorName
from suites.keys.pgbench_scripts import PROTOCOLS, WeightedScript
from suites.keys.sysbench_scripts import files_of_script

_SCALE = """
[scale]
unit = "branch"
tables.pgbench_accounts = { rows = 100_000, bytes_per_row = 150 }
"""


class OwnWorkloadError(TidemarkError):
    """The options that describe a user's own workload contradict each other, or a file cannot be read."""


@dataclass(frozen=True)
class ScriptKind:
    """How scripts of one kind become a suite."""

    generator: GeneratorName
    engines: tuple[Engine, ...]
    steps: Callable[[argparse.Namespace, Sequence[WeightedScript]], str]
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


def _step(title: str, keys: Sequence[str]) -> str:
    return "\n".join(["[[steps]]", 'name = "own"', f"title = {quoted(title)}", *keys, ""])


def _rate(arguments: argparse.Namespace) -> list[str]:
    return [f"rate = {arguments.rate}"] if arguments.rate else []


# --- pgbench


def _scale_of(arguments: argparse.Namespace) -> int | None:
    return arguments.scale or (None if arguments.setup or arguments.load else 1)


def _pgbench_keys(arguments: argparse.Namespace, scripts: Sequence[WeightedScript]) -> str:
    load = f"load = {quoted(Path(arguments.load).absolute().name)}\n" if arguments.load else ""
    return load + _initialize(arguments) + (_SCALE if _scale_of(arguments) else "")


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


def _pgbench_steps(arguments: argparse.Namespace, scripts: Sequence[WeightedScript]) -> str:
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


def _sysbench_steps(arguments: argparse.Namespace, scripts: Sequence[WeightedScript]) -> str:
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
        "--load": "it is of pgbench; a sysbench script makes its tables itself, or by --setup",
        "--partitions": _OF_PGBENCH,
        "--partition-method": _OF_PGBENCH,
        "--protocol": _OF_PGBENCH,
        "--connect": _OF_PGBENCH,
    },
)


def kind_of(arguments: argparse.Namespace, scripts: Sequence[WeightedScript]) -> ScriptKind:
    """Return the kind of the scripts. Raises OwnWorkloadError if they do not go together."""
    lua = [script for script in scripts if script.name.endswith(".lua")]
    if not lua:
        return PGBENCH
    if len(scripts) > 1 or lua[0].weight != 1:
        raise OwnWorkloadError(
            "sysbench runs one script, and knows no weights",
            where="--script",
            hint="measure each script with a command of its own; pgbench draws scripts by weight",
        )
    return SYSBENCH
