"""Suite definitions, which are read from `suites/*/suite.toml` and validated.

Each load generator has a model of its suites: the keys that it does not take, and what else it needs of them.
"""

import json
import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, ValidationError, model_validator

from build.errors import TidemarkError, did_you_mean
from build.files import toml_value
from build.home import locate
from build.version import Engine
from suites.control_groups.declared import DiskSpeed
from suites.digests import digest, file_digests
from suites.keys.check import DataCheck
from suites.keys.durability import Isolation
from suites.keys.levels import LEVEL, MAX_CLIENTS
from suites.keys.loaded_file import kind_of
from suites.keys.pgbench_scripts import MAX_PARTITIONS, PROTOCOLS, require_scripts, weighted_script
from suites.keys.profile import BOUNDED, Mode, Profile, SizedBy
from suites.keys.sql_statements import require_statements
from suites.keys.step import Levels, Step
from suites.keys.sysbench_scripts import require_free_options
from suites.keys.values import MAX_ROWS, MAX_SHARE, Count, Name, Number, Strict, TableName
from suites.layers.choice import NONE, LayerError, Layers, layers_of
from suites.metrics import CONNECTION_KIB, PRIMARY

SUITES = Path(__file__).resolve().parent

PROFILES = SUITES / "profiles.toml"
"""The profiles of all suites, in which a suite.toml states only what differs."""

LUA_MODULES = SUITES / "generators"
"""The folder of the shared Lua module, which sysbench scripts load with `require("tidemark")`."""


class SuiteError(TidemarkError):
    """A suite, profile or step does not exist, or a suite file has a mistake."""


SettingName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_.-]*$")]
MAX_SEED = 10**9
"""Steps and rounds add to it, and sysbench's seeds are 32-bit integers."""


class GeneratorName(StrEnum):
    """The load generators that a suite.toml can name."""

    SYSBENCH = "sysbench"
    PGBENCH = "pgbench"
    CONNECTIONS = "connections"
    """sysbench, which holds connections instead of working."""
    QUERIES = "queries"
    PLAIN_SYSBENCH = "plain-sysbench"
    """sysbench with a script that people have, which it runs once in each slice."""


class Initialize(Strict):
    """Options of `pgbench --initialize`."""

    partitions: Annotated[Count, Field(ge=1, le=MAX_PARTITIONS)] | None = None
    """The partitions of pgbench_accounts; None for a table without."""
    partition_method: Literal["range", "hash"] | None = None
    """How the rows are divided among them; None for pgbench's own choice, by range."""

    @model_validator(mode="after")
    def _of_partitions(self) -> "Initialize":
        if self.partition_method is not None and self.partitions is None:
            raise ValueError("partition_method: needs partitions")
        return self

    @property
    def words(self) -> tuple[str, ...]:
        """The options as pgbench takes them."""
        given = (("partitions", self.partitions), ("partition-method", self.partition_method))
        return tuple(f"--{name}={value}" for name, value in given if value is not None)


class TableBeside(Strict):
    """Tables that a script makes beside the equal ones, one for each of them or one for all."""

    rows: Number = Field(gt=0, le=MAX_ROWS)
    """Rows for each loaded row of the equal tables, such as 0.1; in total if the size is fixed."""
    bytes_per_row: Number = Field(ge=1, le=MAX_ROWS)
    """Size of a loaded row, including its index entries."""
    fixed: bool = Field(default=False, strict=True)
    """Whether the size is independent of the loaded rows."""


class ScaledTable(Strict):
    """One table, or several that are described together, of a suite with a scale."""

    rows: Count = Field(gt=0, le=MAX_ROWS)
    """Rows per unit of the scale; in total if the table is fixed."""
    bytes_per_row: Number = Field(ge=1, le=MAX_ROWS)
    """Size of a loaded row, including its index entries."""
    fixed: bool = Field(default=False, strict=True)
    """Whether the size is independent of the scale."""

    @property
    def bytes(self) -> float:
        """Size of the rows of one unit; of all rows if the table is fixed."""
        return self.rows * self.bytes_per_row


class Scale(Strict):
    """The scale to which sizes of a suite's tables are proportional, such as a number of warehouses."""

    unit: Name
    """The name of one unit, such as `warehouse`."""
    tables: dict[TableName, ScaledTable] = Field(min_length=1)
    """Every table that is loaded."""

    @model_validator(mode="after")
    def _grows(self) -> "Scale":
        if all(table.fixed for table in self.tables.values()):
            raise ValueError("tables: all of them are fixed, so that nothing grows with the scale")
        return self


class Suite(Strict):
    """A named list of steps that run in order on the same data, with keys that agree with each other."""

    name: Name
    title: str
    generator: GeneratorName
    script: str | None = None
    load: str | None = None
    """The dump, program or SQL file that fills the database, after the tables of a size."""
    setup: str | None = None
    """The SQL file that makes tables and fills them, after `load`."""
    initialize: Initialize | None = None
    """How pgbench's own tables are made."""
    engines: tuple[Engine, ...] = Field(min_length=1)
    seed: Count = Field(default=20260101, gt=0, le=MAX_SEED)
    bytes_per_row: Number | None = Field(default=None, ge=1, le=MAX_ROWS)
    """Size of a loaded row, including its index entries; for suites with equal tables."""
    beside: dict[TableName, TableBeside] = Field(default={})
    """Further tables that the script makes beside the equal ones, whose size they add to."""
    scale: Scale | None = None
    """The scale that determines the sizes of the tables; for suites whose tables differ."""
    isolation: Isolation | None = None
    """The isolation of every session, the same on all engines; None for each engine's own."""
    plans: bool = Field(default=False, strict=True)
    """Whether the plan of every statement is stored, which the script then prints (docs/suites.md)."""
    finish: bool = Field(default=False, strict=True)
    """Whether the script has a command that is called once, after everything is loaded."""
    checks: tuple[DataCheck, ...] = ()
    """What must be true of the data."""
    server: dict[Engine, dict[SettingName, str]] = Field(default={})
    """Server settings that the suite needs, by engine; those of a session override them."""
    layers: dict[str, str] = Field(default={})
    """How clients reach the servers, by the names of suites.layers.choice; a variant's override them."""
    growth: Number = Field(default=2.0, ge=1, le=MAX_SHARE)
    profiles: dict[Name, Profile] = Field(default={})
    """Those of PROFILES, with what this suite has in place of their keys, and its own."""
    without: dict[Name, str] = Field(default={})
    """The profiles of PROFILES that it does not have -> why."""
    steps: tuple[Step, ...] = Field(min_length=1)
    folder: Path
    files: dict[str, str]
    """The digest of each file of the folder, and of the shared modules that its script uses."""

    primary: ClassVar[str] = PRIMARY
    """The metric that verdicts are about, unless another one is asked for."""
    refused: ClassVar[Mapping[str, str]] = {}
    """The keys of a suite that its generator does not take -> why; empty if it just has no use for them."""
    refused_of_steps: ClassVar[Mapping[str, str]] = {}
    """The same of the keys of a step."""
    needed_script: ClassVar[str] = ""
    """What the script is without which its generator does nothing; empty if it needs none."""
    is_loaded_by_script: ClassVar[bool] = False
    """Whether the script makes and fills tables of its own, whose sizes are known to it alone."""
    protocols: ClassVar[tuple[str, ...]] = ()
    """The ways in which its clients can send statements to servers with other layers; empty if they have no
    layers."""
    has_short_slices: ClassVar[bool] = False
    """Whether slices can be of milliseconds, because clients stay connected from one to the next."""
    restarts: ClassVar[bool] = False
    """Whether each slice is a run of its own, which connects anew."""
    holds_connections: ClassVar[bool] = False
    """Whether its connections idle while memory is read: a round is no slices, and a step has all levels of
    clients. Else every level is a step of its own."""

    @staticmethod
    def shared_files(script: Path | None) -> tuple[Path, ...]:
        """Return the files of Tidemark that a script uses, in addition to those in the suite's folder."""
        del script
        return ()

    @staticmethod
    def clients_of(step: Step) -> int | None:
        """Return the clients of a step; None for those that follow from its levels and the cores."""
        del step
        return None

    @property
    def sized_by(self) -> SizedBy:
        """How the data of the suite are sized."""
        if self.scale is not None:
            return SizedBy.SCALE
        return SizedBy.FILES if self.bytes_per_row is None else SizedBy.ROWS

    @property
    def has_files(self) -> bool:
        """Whether files of the suite fill the database, by `load` or `setup`."""
        return self.load is not None or self.setup is not None

    @model_validator(mode="after")
    def _consistent(self) -> "Suite":
        self._require_names()
        self._require_files()
        try:
            layers_of(self.layers)
        except TidemarkError as error:
            raise ValueError(f"layers: {error.what}; {error.hint}") from error
        self._require_sizes()
        self._require_known()
        self._require_taken()
        self._check()
        return self

    def _check(self) -> None:
        """Raise ValueError, with key and reason, for what else the generator could not run."""

    def _require_taken(self) -> None:
        """Raise ValueError for a key that the generator does not take, and for the lack of its script."""
        parts: list[tuple[str, Strict, Mapping[str, str]]] = [("", self, self.refused)]
        parts += [(f"steps.{step.name}.", step, self.refused_of_steps) for step in self.steps]
        for where, part, refused in parts:
            for key, reason in refused.items():
                if getattr(part, key) != type(part).model_fields[key].default:
                    raise ValueError(f"{where}{key}: {reason or f'not supported by {self.generator}'}")
        if self.needed_script and self.script is None:
            raise ValueError(f"script: {self.generator} needs {self.needed_script}")

    def _require_names(self) -> None:
        """Raise ValueError for two steps, or two checks, of one name."""
        for what, names in (
            ("steps", [step.name for step in self.steps]),
            ("checks", [check.name for check in self.checks]),
        ):
            twice = {name for name in names if names.count(name) > 1}
            if twice:
                raise ValueError(f"{what}: two {what} are called {', '.join(sorted(twice))}")

    def _require_files(self) -> None:
        """Raise ValueError unless script, setup and load are there, and the latter are data."""
        for key, file in (("script", self.script), ("setup", self.setup)):
            if file is not None and not (self.folder / file).is_file():
                raise ValueError(f"{key}: there is no file {file} beside suite.toml")
        if self.load is None:
            return
        if not (self.folder / self.load).exists():
            raise ValueError(f"load: there is no file {self.load} beside suite.toml")
        try:
            kind = kind_of(self.folder / self.load)
        except ValueError as error:
            raise ValueError(f"load: {error}") from error
        if not set(self.engines) <= set(kind.engines):
            raise ValueError(f"load: {self.load} is for pg_restore, which fills Postgres alone")

    def _require_sizes(self) -> None:
        """Raise ValueError unless suite, profiles and steps agree on how the data are sized."""
        if not self.profiles:
            raise ValueError("profiles: a suite with a scale states the units that each profile may have")
        given = (self.bytes_per_row is not None) + (self.scale is not None)
        if given and self.is_loaded_by_script:
            raise ValueError(f"bytes_per_row, scale: neither with {self.generator}, whose script decides")
        if self.beside and self.bytes_per_row is None:
            raise ValueError("beside: only with bytes_per_row; a scale lists all tables")
        if given > 1 or (not given and not self.has_files and not self.is_loaded_by_script):
            raise ValueError("bytes_per_row, scale: a suite needs one of the two, and not both")
        key = self.sized_by.suite_key
        for name, profile in self.profiles.items():
            for other in BOUNDED:
                is_given = getattr(profile, other) is not None
                if other is self.sized_by and not is_given:
                    raise ValueError(f"profiles.{name}.{other}: required in a suite with {key}")
                if other is not self.sized_by and is_given:
                    raise ValueError(f"profiles.{name}.{other}: not a key of a suite with {key}")
        for step in self.steps:
            self._require_rows_of(step)

    def _require_rows_of(self, step: Step) -> None:
        if self.scale is None or step.most_work_to_rows is None:
            if step.rows_of is not None:
                raise ValueError(
                    f"steps.{step.name}.rows_of: only for most_work_to_rows in a suite with a scale"
                )
        elif step.rows_of not in self.scale.tables:
            raise ValueError(
                f"steps.{step.name}.rows_of: most_work_to_rows needs the table whose rows it counts, one of "
                + ", ".join(self.scale.tables)
            )

    def _require_known(self) -> None:
        """Raise ValueError unless the steps and profiles that others name exist."""
        for name in self.without.keys() & self.profiles.keys():
            raise ValueError(f"without.{name}: the suite has this profile")
        closed = [step.name for step in self.steps if not step.is_open]
        for step in self.steps:
            if step.rate_of is not None and (step.rate is None or step.rate_of not in closed):
                raise ValueError(f"steps.{step.name}.rate_of: needs rate, and a step that has none")
        for check in self.checks:
            if set(check.tables) - set(self.scale.tables if self.scale else ()):
                raise ValueError(f"checks.{check.name}.sql: {{rows:TABLE}} needs a table of the scale")
        for what, name, steps, profiles in (
            *(("steps", step.name, (), step.profiles) for step in self.steps),
            *(("checks", check.name, check.steps, check.profiles) for check in self.checks),
        ):
            for key, given, known in (
                ("steps", steps, [step.name for step in self.steps]),
                ("profiles", profiles, list(self.profiles)),
            ):
                if set(given) - set(known):
                    raise ValueError(f"{what}.{name}.{key}: the suite has only {', '.join(known)}")

    def with_declared(self, memory: int | None, disk: DiskSpeed | None) -> "Suite":
        """Return the suite with the memory in bytes, and the disk, of each server in all profiles.

        What is None is as the profiles have it.
        """
        values = {"memory": memory, "disk": disk}
        changed = {name: value for name, value in values.items() if value is not None}
        if not changed:
            return self
        profiles = {name: profile.model_copy(update=changed) for name, profile in self.profiles.items()}
        return self.model_copy(update={"profiles": profiles})

    def require_layers(self, layers: Layers, *, is_pooled: bool = False) -> None:
        """Raise LayerError unless clients of the suite's generator can have the layers.

        `is_pooled` says whether a pooler is between them and the server.
        """
        if layers != NONE and not self.protocols:
            raise LayerError(
                f"clients of the generator {self.generator} connect in one way only",
                where="layer",
                hint="use a suite for sysbench or pgbench",
            )
        if layers.protocol and layers.protocol not in self.protocols:
            raise LayerError(
                f"{self.generator} does not send statements in the protocol {layers.protocol}",
                where="layer",
                hint=f"with {self.generator}, protocol is one of: {', '.join(self.protocols)}",
            )
        if is_pooled and layers != NONE:
            raise LayerError(
                "clients connect to PgBouncer, whose connections have no layers",
                where="layer",
                hint="omit the companion pgbouncer, or all layers",
            )

    def profile(self, name: str) -> Profile:
        """Return the profile called `name`. Raises SuiteError, which lists the profiles, if there is none."""
        if name not in self.profiles:
            why = self.without.get(name, "")
            raise SuiteError(
                f"suite {self.name} has no profile '{name}'{why and f': {why}'}",
                where=str(self.folder / "suite.toml"),
                hint=_choose(name, "its profiles", self.profiles),
            )
        return self.profiles[name]

    def select(
        self, names: tuple[str, ...], profile: str | None = None, clients: Levels = ()
    ) -> tuple[Step, ...]:
        """Return the steps called `names` in the suite's order; all of them when `names` is empty.

        `read-write@8` names one level of a step. Other steps have the levels `clients`, else their own, else
        those of `profile`. Raises SuiteError, which lists the steps, if there is none of a name.
        """
        known, apart = [step.name for step in self.steps], not self.holds_connections
        levels: dict[str, list[int]] = {}
        for name in names:
            plain, at, level = name.partition(LEVEL)
            if plain not in known or (at and not (apart and _is_level(level))):
                raise SuiteError(
                    f"suite {self.name} has no step '{name}'",
                    where=str(self.folder / "suite.toml"),
                    hint=_choose(plain, "its steps", known),
                )
            levels.setdefault(plain, []).extend([int(level)] if at else [])
        defined = self.profile(profile) if profile else None
        usual, own = (defined.clients, defined.options) if defined else ((), {})
        steps: list[Step] = []
        for step in self.steps:
            is_usual = profile is None or not step.profiles or profile in step.profiles
            if step.name in levels or (not names and is_usual):
                chosen = levels.get(step.name) or clients or step.clients or usual
                options = {key: own.get(key, value) for key, value in step.options.items()}
                whole = step.model_copy(update={"clients": tuple(chosen), "options": options})
                steps += ([whole.at(count) for count in chosen] if apart else []) or [whole]
        return tuple(steps)

    def work_digests(self, profile: str, steps: Iterable[Step]) -> str:
        """Return what a session records of the work that it asks for, an object of JSON.

        It has `data`, the digest of what is loaded (generator, files, seed, sizes, server settings), and
        `steps`, one of each step by its name, which covers the data, too. A step that does something else is
        never taken for the old one; a comment of a Lua script, a title, or another profile changes none.
        """
        data = self.data_digest(profile)
        chosen = self.profile(profile).model_dump(mode="json", include=set(_OF_STEPS))
        common = {"data": data, "profile": chosen, "isolation": self.isolation, "layers": self.layers}
        done = {step.name: digest({**common, "step": self._work_of(step)}) for step in steps}
        return json.dumps({"data": data, "steps": done}, sort_keys=True)

    def data_digest(self, profile: str) -> str:
        """Return the digest of everything that the loaded data follow from, besides build and machine."""
        of_steps = {name for step in self.steps for name in _files_of(step)}
        return digest(
            {
                **self.model_dump(mode="json", include=set(_OF_DATA)),
                "files": {name: known for name, known in self.files.items() if name not in of_steps},
                "sizes": self.profile(profile).model_dump(mode="json", include=set(_SIZES)),
            }
        )

    def _work_of(self, step: Step) -> Mapping[str, object]:
        keys = step.model_dump(mode="json", exclude={"title", "group", "profiles"})
        return {**keys, "files": {name: self.files.get(name) for name in _files_of(step)}}


_OF_DATA = (
    *("generator", "script", "load", "setup", "initialize", "seed", "bytes_per_row", "beside", "scale"),
    *("finish", "server"),
)
"""The keys of a suite that decide on the loaded data."""

_SIZES = ("data_to_memory", "rows", "scale", "tables")
"""The keys of a profile that do."""

_OF_STEPS = (
    *("mode", "seconds", "slice_seconds", "warm_seconds", "block_seconds", "warm_limit_seconds"),
    *("buffer_to_memory", "settle_seconds", "limit_seconds"),
)
"""The keys of a profile that decide on what a step does; others say how often it is measured."""


class SysbenchSuite(Suite):
    """A suite for sysbench with a script that has Tidemark's module."""

    refused: ClassVar[Mapping[str, str]] = dict.fromkeys(("load", "setup", "initialize"), "")
    refused_of_steps: ClassVar[Mapping[str, str]] = dict.fromkeys(("scripts", "variables"), "")
    needed_script = "the Lua script that implements the steps"
    protocols = ("simple", "prepared")
    has_short_slices = True

    @staticmethod
    def shared_files(script: Path | None) -> tuple[Path, ...]:
        """Return the module that every script uses, the others that this one requires, and what they do."""
        found: dict[Path, None] = {}
        waiting = [LUA_MODULES / "tidemark.lua", *_required(script)]
        while waiting:
            module = waiting.pop(0)
            if module not in found and module.is_file():
                found[module] = None
                waiting += _required(module)
        return tuple(found)

    def _check(self) -> None:
        timed = [step.name for step in self.steps if step.timed]
        for name, profile in self.profiles.items():
            if timed and profile.mode is not Mode.ROUNDS:
                raise ValueError(
                    f"profiles.{name}.mode: {timed[0]} is timed, which needs the loaded data each time"
                )


class ConnectionsSuite(SysbenchSuite):
    """A suite for sysbench, which holds connections instead of working."""

    primary = CONNECTION_KIB
    refused: ClassVar[Mapping[str, str]] = {
        **SysbenchSuite.refused,
        "plans": "not with connections, which are measured while they idle",
    }
    refused_of_steps: ClassVar[Mapping[str, str]] = {
        **SysbenchSuite.refused_of_steps,
        "background": "",
        "timed": "",
    }
    holds_connections = True

    def _check(self) -> None:
        for name, profile in self.profiles.items():
            if not profile.clients:
                raise ValueError(
                    f"profiles.{name}.clients: connections needs the levels at which memory is read"
                )
            if profile.mode is not Mode.ROUNDS:
                raise ValueError(f"profiles.{name}.mode: connections needs a fresh server in every round")


class PlainSysbenchSuite(Suite):
    """A suite for sysbench with a script that people have, without Tidemark's module."""

    refused: ClassVar[Mapping[str, str]] = {
        "initialize": "",
        "plans": "a script without Tidemark's module cannot print its statements",
        "finish": "prepare is all that is asked of a script without Tidemark's module",
    }
    refused_of_steps: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("scripts", "variables", "background", "timed"), ""),
        "most_work_to_rows": "how many rows the script loads is known to it alone",
    }
    needed_script = "the Lua script that people run"
    is_loaded_by_script = True
    protocols = SysbenchSuite.protocols
    restarts = True

    def _check(self) -> None:
        for step in self.steps:
            try:
                require_free_options(step.options)
            except ValueError as error:
                raise ValueError(f"steps.{step.name}.options.{error}") from error


class PgbenchSuite(Suite):
    """A suite for pgbench: each step has a script that is built into it, or files of the suite."""

    refused: ClassVar[Mapping[str, str]] = {
        "plans": "pgbench cannot print the statements of a script",
        "finish": "pgbench finishes the load by itself",
    }
    refused_of_steps: ClassVar[Mapping[str, str]] = {
        "background": "",
        "timed": "",
        "most_work_to_rows": "not supported by pgbench, which runs for a fixed time",
    }
    protocols = PROTOCOLS
    restarts = True

    def _check(self) -> None:
        if self.initialize is not None and self.sized_by is SizedBy.FILES:
            raise ValueError("initialize: of pgbench's own tables, which need scale or bytes_per_row")
        for step in self.steps:
            self._require_options(step)
            try:
                require_scripts(self.folder, step.scripts, step.variables)
            except ValueError as error:
                raise ValueError(f"steps.{step.name}.scripts: {error}") from error

    def _require_options(self, step: Step) -> None:
        where = f"steps.{step.name}.options"
        unknown = step.options.keys() - {"builtin", "protocol", "connect"}
        if unknown:
            raise ValueError(f"{where}.{min(unknown)}: pgbench takes builtin, protocol and connect")
        if ("builtin" in step.options) == bool(step.scripts):
            raise ValueError(f"{where}: pgbench takes either builtin or the key scripts of the step")
        if step.options.get("protocol", PROTOCOLS[0]) not in PROTOCOLS:
            raise ValueError(f"{where}.protocol: must be one of {', '.join(PROTOCOLS)}")
        if not isinstance(step.options.get("connect", True), bool):
            raise ValueError(f"{where}.connect: must be true or false")


class QueriesSuite(Suite):
    """A suite of long queries: each step has a file of statements; the tables have a scale or a setup."""

    refused: ClassVar[Mapping[str, str]] = {"initialize": ""}
    refused_of_steps: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("scripts", "variables", "background", "timed", "most_work_to_rows", "rate", "rate_per_core"), ""
    )

    @staticmethod
    def clients_of(step: Step) -> int | None:
        """Return one client without levels, whatever the cores: what people time by hand, they time alone."""
        return step.clients[0] if step.clients else 1

    def _check(self) -> None:
        if (self.scale is None) != self.has_files:
            raise ValueError(
                "scale, load, setup: queries needs either scale, for the tables of TPC-H in hundredths of "
                "its scale factor, or files that make tables"
            )
        if self.scale is not None:
            for name in ("schema.sql", "indexes.sql"):
                if not (self.folder / name).is_file():
                    raise ValueError(f"generator: queries needs {name} beside suite.toml")
        for step in self.steps:
            self._require_query(step)

    def _require_query(self, step: Step) -> None:
        where = f"steps.{step.name}.options"
        if step.options.keys() != {"file"}:
            raise ValueError(f"{where}: queries takes file, the name of a file of SQL, and nothing else")
        file = self.folder / str(step.options["file"])
        if not file.is_file():
            raise ValueError(f"{where}.file: there is no file {step.options['file']} beside suite.toml")
        try:
            require_statements(file.read_text(encoding="utf-8"), self.engines)
        except ValueError as error:
            raise ValueError(f"{where}.file: {file.name}, {error}") from error


MODELS: Mapping[GeneratorName, type[Suite]] = {
    GeneratorName.SYSBENCH: SysbenchSuite,
    GeneratorName.PGBENCH: PgbenchSuite,
    GeneratorName.CONNECTIONS: ConnectionsSuite,
    GeneratorName.QUERIES: QueriesSuite,
    GeneratorName.PLAIN_SYSBENCH: PlainSysbenchSuite,
}
"""The model of each load generator's suites; suites/generators/registry.py says how the generator is made."""


def _model_of(text: Mapping[str, object]) -> type[Suite]:
    """Return the model of a suite.toml; without a load generator that there is, Suite, which says so."""
    return next((model for name, model in MODELS.items() if name == text.get("generator")), Suite)


def _required(script: Path | None) -> list[Path]:
    """Return the modules of Tidemark that a script requires."""
    text = script.read_text(encoding="utf-8") if script is not None and script.is_file() else ""
    names = re.findall(r'require\("([a-z_.]+)"\)', text)
    return [LUA_MODULES / f"{name.replace('.', '/')}.lua" for name in names]


def _files_of(step: Step) -> list[str]:
    """Return the names of the files that a step names: its scripts, or its queries."""
    file = step.options.get("file")
    return [weighted_script(name).name for name in step.scripts] + ([str(file)] if file is not None else [])


def _is_level(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 5 and 1 <= int(text) <= MAX_CLIENTS


def suite_names() -> dict[str, Path]:
    """Return the folders of the suites that are part of Tidemark, by name."""
    folders = sorted(path.parent for path in SUITES.glob("*/suite.toml"))
    return {folder.name.replace("_", "-"): folder for folder in folders}


def own_suites() -> dict[str, Path]:
    """Return the folders of the suites below the home, by name; those of Tidemark come before them."""
    folders = sorted(path.parent for path in locate().suites.glob("*/suite.toml"))
    return {folder.name: folder for folder in folders if not folder.name.startswith(".")}


def load_suite(name: str) -> Suite:
    """Read the suite called `name`, or the one in the folder `name` when that is a path with a slash.

    Raises SuiteError with the file, the key and the reason.
    """
    known = suite_names()
    if name not in known:
        known = {**own_suites(), **known}
    # A name of a history can hold anything, and no path holds a NUL.
    folder = Path(name).resolve() if "/" in name and "\0" not in name else known.get(name)
    if folder is None or not (folder / "suite.toml").is_file():
        raise SuiteError(
            f"there is no suite '{name}'",
            hint=f"{_choose(name, 'the suites', known)}; or give the path of a folder with a suite.toml",
        )
    file = folder / "suite.toml"
    try:
        text = toml_value(file.read_text(encoding="utf-8"))
        ours = {"folder": folder, "files": file_digests(folder, _shared_files(folder, text))}
        for name in ours.keys() & text.keys():
            raise SuiteError(f"this suite has a mistake: {name}: not a key of a suite", where=str(file))
        return _model_of(text).model_validate({**text, "profiles": _profiles(text), **ours})
    except ValidationError as error:
        raise SuiteError(f"this suite has a mistake: {_explain(error)}", where=str(file)) from error
    except OSError as error:
        raise SuiteError(f"this suite cannot be read: {error}", where=str(file)) from error
    except ValueError as error:
        raise SuiteError(f"this suite is not valid TOML: {error}", where=str(file)) from error


def _profiles(text: Mapping[str, Any]) -> object:
    """Return the profiles of a suite.toml with the keys of PROFILES that it does not state.

    A suite without sizes has no `io`, for data of a multiple of the memory; one with a scale has the profiles
    for which it states how many units they may have. What is no table is left for the validation.
    """
    stated, without = text.get("profiles", {}), text.get("without", {})
    if not (isinstance(stated, dict) and all(isinstance(own, dict) for own in [without, *stated.values()])):
        return stated
    common = toml_value(PROFILES.read_text(encoding="utf-8"))
    longer = common.pop("longer_slices")
    model = _model_of(text)
    has_rows = "bytes_per_row" in text
    profiles: dict[str, object] = {}
    for name, keys in common.items():
        if name not in stated and (name in without or "scale" in text or (name == "io" and not has_rows)):
            continue
        slices = longer.get(name, {}) if not model.has_short_slices else {}
        sizes = {} if has_rows else {"rows": None}
        profiles[name] = keys | slices | sizes | stated.get(name, {})
    return profiles | {name: own for name, own in stated.items() if name not in common}


def _choose(name: str, what: str, known: Iterable[str]) -> str:
    names = list(known)
    meant = did_you_mean(name, names)
    return f"{meant} " * bool(meant) + f"{what} are: {', '.join(names)}"


def _explain(error: ValidationError) -> str:
    """Return key and reason of every mistake."""
    lines = []
    for detail in error.errors():
        key = ".".join(str(part) for part in detail["loc"])
        reason = detail["msg"].removeprefix("Value error, ")
        lines.append(f"{key}: {reason}" if key else reason)
    return "; ".join(lines)


def _shared_files(folder: Path, text: Mapping[str, object]) -> tuple[Path, ...]:
    """Return the files of Tidemark that the script of a suite uses; empty for an unknown generator."""
    script = text.get("script")
    return _model_of(text).shared_files(folder / script if isinstance(script, str) else None)
