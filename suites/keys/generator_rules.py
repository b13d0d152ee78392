"""The requirements of the load generators for a suite.toml, which suites.definition checks."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from suites.keys.pgbench_scripts import PROTOCOLS, require_scripts
from suites.keys.sql_statements import require_statements
from suites.keys.step import Step
from suites.keys.suite_keys import GeneratorName, SuiteKeys
from suites.keys.sysbench_scripts import require_free_options
from suites.metrics import CONNECTION_KIB, PRIMARY

LUA_MODULES = Path(__file__).resolve().parents[1] / "generators"
"""The folder of the shared Lua module, which sysbench scripts load with `require("tidemark")`."""


@dataclass(frozen=True)
class GeneratorRules:
    """The requirements of one load generator for a suite."""

    check: Callable[[SuiteKeys], None]
    """Raises ValueError with key and reason if the generator could not run the suite."""
    shared_files: Callable[[Path | None], tuple[Path, ...]] = lambda script: ()
    """Returns files of Tidemark that a script uses, in addition to those in the suite's folder."""
    primary: str = PRIMARY
    """The metric that verdicts are about, unless another one is asked for."""
    takes_files: bool = False
    """Whether it loads the files of `load` and `setup`."""
    takes_scripts: bool = False
    """Whether it runs `scripts` with `variables`, on tables of `initialize`."""
    protocols: tuple[str, ...] = ()
    """The ways in which it can send statements to servers with other layers; empty if it takes no layers."""
    is_loaded_by_script: bool = False
    """Whether the script makes and fills tables of its own, whose sizes are known to it alone."""
    has_short_slices: bool = False
    """Whether slices can be of milliseconds, because clients stay connected from one to the next."""
    restarts: bool = False
    """Whether each slice is a run of its own, which connects anew."""
    clients: Callable[[Step], int | None] = lambda step: None
    """Returns the clients of a step without levels; None for those that follow from the cores."""
    levels_are_steps: bool = True
    """Whether every level of clients is a step of its own; else a step has all of them."""


def _check_sysbench(suite: SuiteKeys) -> None:
    if suite.script is None:
        raise ValueError("script: sysbench needs the Lua script that implements the steps")
    timed = [step.name for step in suite.steps if step.timed]
    for name, profile in suite.profiles.items():
        if timed and profile.mode != "rounds":
            raise ValueError(
                f"profiles.{name}.mode: {timed[0]} is timed, which needs the loaded data each time"
            )


def _require_plain_steps(suite: SuiteKeys, generator: str) -> None:
    """Raise ValueError for a step with what only sysbench's scripts can do."""
    for step in suite.steps:
        for key, given in (("background", bool(step.background)), ("timed", step.timed)):
            if given:
                raise ValueError(f"steps.{step.name}.{key}: not supported by {generator}")


def _check_pgbench(suite: SuiteKeys) -> None:
    """Raise ValueError unless every step has a script that is built into pgbench, or files of the suite."""
    _require_plain_steps(suite, "pgbench")
    if suite.plans:
        raise ValueError("plans: pgbench cannot print the statements of a script")
    if suite.finish:
        raise ValueError("finish: pgbench finishes the load by itself")
    for step in suite.steps:
        _check_pgbench_options(step)
        if step.most_work_to_rows is not None:
            raise ValueError(
                f"steps.{step.name}.most_work_to_rows: not supported by pgbench, which runs for a fixed time"
            )
        try:
            require_scripts(suite.folder, step.scripts, step.variables)
        except ValueError as error:
            raise ValueError(f"steps.{step.name}.scripts: {error}") from error


def _check_pgbench_options(step: Step) -> None:
    """Raise ValueError for options that pgbench does not take, and for a rate that it cannot keep."""
    where = f"steps.{step.name}"
    unknown = step.options.keys() - {"builtin", "protocol", "connect"}
    if unknown:
        raise ValueError(f"{where}.options.{min(unknown)}: pgbench takes builtin, protocol and connect")
    if ("builtin" in step.options) == bool(step.scripts):
        raise ValueError(f"{where}.options: pgbench takes either builtin or the key scripts of the step")
    if step.options.get("protocol", PROTOCOLS[0]) not in PROTOCOLS:
        raise ValueError(f"{where}.options.protocol: must be one of {', '.join(PROTOCOLS)}")
    if not isinstance(step.options.get("connect", True), bool):
        raise ValueError(f"{where}.options.connect: must be true or false")


def _check_plain_sysbench(suite: SuiteKeys) -> None:
    """Raise ValueError for what only a script with Tidemark's module can do."""
    if suite.script is None:
        raise ValueError("script: plain-sysbench needs the Lua script that people run")
    _require_plain_steps(suite, "plain-sysbench")
    if suite.plans:
        raise ValueError("plans: a script without Tidemark's module cannot print its statements")
    if suite.finish:
        raise ValueError("finish: prepare is all that is asked of a script without Tidemark's module")
    for step in suite.steps:
        if step.most_work_to_rows is not None:
            raise ValueError(
                f"steps.{step.name}.most_work_to_rows: how many rows the script loads is known to it alone"
            )
        try:
            require_free_options(step.options)
        except ValueError as error:
            raise ValueError(f"steps.{step.name}.options.{error}") from error


def _check_connections(suite: SuiteKeys) -> None:
    """Raise ValueError unless every profile has levels, and rounds on servers that are fresh."""
    _check_sysbench(suite)
    _require_plain_steps(suite, "connections")
    if suite.plans:
        raise ValueError("plans: not with connections, which are measured while they idle")
    for name, profile in suite.profiles.items():
        if not profile.clients:
            raise ValueError(f"profiles.{name}.clients: connections needs the levels at which memory is read")
        if profile.mode != "rounds":
            raise ValueError(f"profiles.{name}.mode: connections needs a fresh server in every round")


def _check_queries(suite: SuiteKeys) -> None:
    """Raise ValueError unless the tables have a scale or a setup, and every step has a file of statements."""
    _require_plain_steps(suite, "queries")
    if (suite.scale is None) != suite.has_files:
        raise ValueError(
            "scale, load, setup: queries needs either scale, for the tables of TPC-H in hundredths of its "
            "scale factor, or files that make tables"
        )
    if suite.scale is not None:
        for name in ("schema.sql", "indexes.sql"):
            if not (suite.folder / name).is_file():
                raise ValueError(f"generator: queries needs {name} beside suite.toml")
    for step in suite.steps:
        _check_query(suite, step)
        if step.most_work_to_rows is not None:
            raise ValueError(f"steps.{step.name}.most_work_to_rows: not supported by queries")
        if step.is_open:
            raise ValueError(f"steps.{step.name}.rate: not supported by queries")


def _check_query(suite: SuiteKeys, step: Step) -> None:
    where = f"steps.{step.name}"
    if step.options.keys() != {"file"}:
        raise ValueError(f"{where}.options: queries takes file, the name of a file of SQL, and nothing else")
    file = suite.folder / str(step.options["file"])
    if not file.is_file():
        raise ValueError(f"{where}.options.file: there is no file {step.options['file']} beside suite.toml")
    try:
        require_statements(file.read_text(encoding="utf-8"), suite.engines)
    except ValueError as error:
        raise ValueError(f"{where}.options.file: {file.name}, {error}") from error


def _lua_modules(script: Path | None) -> tuple[Path, ...]:
    """Return the module that every script uses, the others that this one requires, and what they require."""
    found: dict[Path, None] = {}
    waiting = [LUA_MODULES / "tidemark.lua", *_required(script)]
    while waiting:
        module = waiting.pop(0)
        if module not in found and module.is_file():
            found[module] = None
            waiting += _required(module)
    return tuple(found)


def _required(script: Path | None) -> list[Path]:
    text = script.read_text(encoding="utf-8") if script is not None and script.is_file() else ""
    names = re.findall(r'require\("([a-z_.]+)"\)', text)
    return [LUA_MODULES / f"{name.replace('.', '/')}.lua" for name in names]


def check_rules(generator: GeneratorName, suite: SuiteKeys) -> None:
    """Raise ValueError with key and reason if `generator` could not run the suite."""
    for key, value in (("setup", suite.setup), ("load", suite.load)):
        if value is not None and not RULES[generator].takes_files:
            raise ValueError(f"{key}: not supported by {generator}")
    if not RULES[generator].takes_scripts:
        if suite.initialize is not None:
            raise ValueError(f"initialize: not supported by {generator}")
        for step in suite.steps:
            for key, given in (("scripts", step.scripts), ("variables", step.variables)):
                if given:
                    raise ValueError(f"steps.{step.name}.{key}: not supported by {generator}")
    RULES[generator].check(suite)


_OF_SYSBENCH = ("simple", "prepared")

RULES: Mapping[GeneratorName, GeneratorRules] = {
    GeneratorName.SYSBENCH: GeneratorRules(
        _check_sysbench, shared_files=_lua_modules, protocols=_OF_SYSBENCH, has_short_slices=True
    ),
    GeneratorName.PGBENCH: GeneratorRules(
        _check_pgbench, takes_files=True, takes_scripts=True, protocols=PROTOCOLS, restarts=True
    ),
    GeneratorName.CONNECTIONS: GeneratorRules(
        _check_connections,
        shared_files=_lua_modules,
        primary=CONNECTION_KIB,
        protocols=_OF_SYSBENCH,
        levels_are_steps=False,
        has_short_slices=True,
    ),
    GeneratorName.QUERIES: GeneratorRules(
        _check_queries, takes_files=True, clients=lambda step: step.clients[0] if step.clients else 1
    ),
    GeneratorName.PLAIN_SYSBENCH: GeneratorRules(
        _check_plain_sysbench,
        takes_files=True,
        is_loaded_by_script=True,
        protocols=_OF_SYSBENCH,
        restarts=True,
    ),
}
"""One entry for every load generator; suites/generators/registry.py says how it is made."""
