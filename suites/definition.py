"""Suite definitions, which are read from `suites/*/suite.toml` and validated."""

import hashlib
from collections.abc import Mapping
from enum import StrEnum
from itertools import pairwise
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from build.errors import TidemarkError
from build.files import toml_value
from build.version import Engine
from suites.durability import Isolation
from suites.generator_rules import RULES, GeneratorName
from suites.slices import (
    LONGEST_BUDGET_MINUTES,
    LONGEST_SECONDS,
    MOST_ROUNDS,
    SHORTEST_SLICE,
    ScheduleError,
    require_few_slices,
)

SUITES = Path(__file__).resolve().parent

Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]*$")]
SettingName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_.-]*$")]
TableName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
Option = str | int | float | bool
# Strict, so that "5" and true are not accepted as numbers. TOML has inf and nan, which are not sizes.
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Count = Annotated[int, Field(strict=True)]
MOST_ROWS, MOST_TABLES = 10**12, 1000
"""The most rows, bytes of a row, or units of a scale that a suite can ask for, and the most equal tables."""
MOST_SHARE = 1e6
"""The most that data may be of the memory, that a table may grow by, or that a step may do of the rows."""
MOST_COUNTED = 1_000_000
"""The most transactions of a counted pass."""
MOST_CLIENTS = 10_000
"""The most clients of a level."""
LEVEL = "@"
"""What stands between the name of a step and the clients of a level of it: `read-write@8`."""
MOST_SEED = 10**9
"""Steps and rounds add to it, and sysbench's seeds are 32-bit integers."""
Levels = tuple[Annotated[Count, Field(ge=1, le=MOST_CLIENTS)], ...]
"""Numbers of clients, each of which makes a step of its own; empty if the machine's cores decide."""
Bounds = tuple[Annotated[Count, Field(gt=0, le=MOST_ROWS)], Annotated[Count, Field(gt=0, le=MOST_ROWS)]]
"""Minimum and maximum, both inclusive."""


class SuiteError(TidemarkError):
    """A suite, profile or step does not exist, or a suite file has a mistake."""


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Mode(StrEnum):
    """How the runs of several versions are interleaved."""

    ROUNDS = "rounds"
    """Each round of a step starts from the same loaded data."""
    LONG = "long"
    """The servers stay up for the whole suite, and each step inherits the data of the step before."""


class SizedBy(StrEnum):
    """How the data of a suite are sized; the value is the profile's key for the bounds."""

    ROWS = "rows"
    """Equal tables, with `bytes_per_row` in the suite."""
    SCALE = "scale"
    """Tables whose sizes are proportional to a scale, with `[scale]` in the suite."""

    @property
    def suite_key(self) -> str:
        """The key that the suite must have."""
        return _SUITE_KEYS[self]


_SUITE_KEYS = {SizedBy.ROWS: "bytes_per_row", SizedBy.SCALE: "scale"}


class Profile(_Strict):
    """How long and at what size a suite is run."""

    title: str
    mode: Mode = Mode.ROUNDS
    seconds: Number = Field(gt=0, le=LONGEST_SECONDS)
    """How long each version works on a step in a round; in mode long, in total."""
    slice_seconds: Number = Field(ge=SHORTEST_SLICE)
    """How long a version works before the next version takes its turn."""
    warm_seconds: Number = Field(default=0, ge=0, le=LONGEST_SECONDS)
    """How long each version warms up at the beginning of a round; rounded up to whole slices."""
    perf_seconds: Number = Field(default=2, gt=0, le=LONGEST_SECONDS)
    """With --perf, how long each version is profiled at the end of a round."""
    repetitions: Count = Field(ge=1, le=MOST_ROUNDS)
    """Rounds of each step; in mode long, the length of the step determines them."""
    most_rounds: Count = Field(default=20, ge=3, le=MOST_ROUNDS)
    """With --until-decided, the most rounds of a step that has no verdict yet."""
    budget_minutes: Number = Field(default=30, gt=0, le=LONGEST_BUDGET_MINUTES)
    """With --until-decided, for how long after its first round a session starts further rounds."""
    data_to_memory: Number = Field(gt=0, le=MOST_SHARE)
    """Size of the loaded data as a share of the machine's memory."""
    rows: Bounds | None = None
    """Bounds of the rows over all tables, whatever the memory; for suites with `bytes_per_row`."""
    scale: Bounds | None = None
    """Bounds of the units of the scale, whatever the memory; for suites with a `[scale]`."""
    tables: Count | None = Field(default=None, ge=1, le=MOST_TABLES)
    """Number of equal tables; None if it follows from the client threads."""
    clients: Levels = ()
    """The levels of steps that have none of their own."""
    options: dict[str, Option] = {}
    """Options in place of those of the same name that a step has."""
    buffer_to_memory: Number = Field(gt=0, le=0.8)
    """Size of the server's buffer cache as a share of the machine's memory."""
    settle_seconds: Number = Field(ge=0, le=LONGEST_SECONDS)
    """Idle time after each reset."""
    counted_passes: Count = Field(default=0, ge=0, le=MOST_ROUNDS)
    """How many of the first rounds of a step have a counted pass, unless the session says otherwise."""

    @model_validator(mode="after")
    def _ordered(self) -> "Profile":
        for key, bounds in (("rows", self.rows), ("scale", self.scale)):
            if bounds is not None and bounds[0] > bounds[1]:
                raise ValueError(f"{key} = [least, most]: least is larger than most")
        require_levels(self.clients)
        if self.slice_seconds > self.seconds:
            raise ValueError("slice_seconds: a slice is longer than the step")
        if self.mode is Mode.ROUNDS:
            try:
                require_few_slices(1, self.seconds, self.slice_seconds, self.warm_seconds)
            except ScheduleError as error:
                raise ValueError(f"slice_seconds: {error.what}") from error
        return self


class ScaledTable(_Strict):
    """One table, or several that are described together, of a suite with a scale."""

    rows: Count = Field(gt=0, le=MOST_ROWS)
    """Rows per unit of the scale; in total if the table is fixed."""
    bytes_per_row: Number = Field(ge=1, le=MOST_ROWS)
    """Size of a loaded row, including its index entries."""
    fixed: bool = Field(default=False, strict=True)
    """Whether the size is independent of the scale."""

    @property
    def bytes(self) -> float:
        """Size of the rows of one unit; of all rows if the table is fixed."""
        return self.rows * self.bytes_per_row


class Scale(_Strict):
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


class Step(_Strict):
    """One workload of a suite."""

    name: Name
    title: str
    group: Name | None = None
    """Comparisons show a geometric mean for the steps of a group."""
    options: dict[str, Option] = {}
    """Options of the load generator: `--name=value` of a sysbench script, `builtin` or `file` of pgbench."""
    queries: Number = Field(default=1, gt=0, le=MOST_SHARE)
    """Queries in a transaction, for generators that count transactions only."""
    most_work_to_rows: Number | None = Field(default=None, gt=0, le=MOST_SHARE)
    """The maximum number of transactions, relative to the loaded rows; for steps that use rows up."""
    rows_of: TableName | None = None
    """The table whose rows `most_work_to_rows` counts; only in suites with a `[scale]`."""
    counted: Count = Field(default=400, gt=0, le=MOST_COUNTED)
    """The transactions of a counted pass, under a server that is some fifty times slower."""
    clients: Levels = ()
    """The levels of the step. A step of a session has one, as part of its name, or measures all of them."""

    @model_validator(mode="after")
    def _ordered(self) -> "Step":
        require_levels(self.clients)
        return self

    @property
    def plain_name(self) -> str:
        """The name without a level."""
        return self.name.partition(LEVEL)[0]

    @property
    def level(self) -> int | None:
        """The clients of a step that is one level of several; None for other steps."""
        return self.clients[0] if LEVEL in self.name else None

    def at(self, clients: int) -> "Step":
        """Return the step at one level: a step with a name, and so with series, of its own."""
        return self.model_copy(update={"name": f"{self.plain_name}{LEVEL}{clients}", "clients": (clients,)})


class Suite(_Strict):
    """A named list of steps that run in order on the same data."""

    name: Name
    title: str
    generator: GeneratorName
    script: str | None = None
    engines: tuple[Engine, ...] = Field(min_length=1)
    seed: Count = Field(gt=0, le=MOST_SEED)
    bytes_per_row: Number | None = Field(default=None, ge=1, le=MOST_ROWS)
    """Size of a loaded row, including its index entries; for suites with equal tables."""
    scale: Scale | None = None
    """The scale that determines the sizes of the tables; for suites whose tables differ."""
    isolation: Isolation | None = None
    """The isolation of every session, the same on all engines; None for each engine's own."""
    plans: bool = Field(default=False, strict=True)
    """Whether the plan of every statement is stored, which the script then prints (docs/suites.md)."""
    read_only: bool = Field(default=False, strict=True)
    """Whether no step changes the data: servers then start from the loaded data once in a round."""
    server: dict[Engine, dict[SettingName, str]] = {}
    """Server settings that the suite needs, by engine; those of a session override them."""
    growth: Number = Field(default=2.0, ge=1, le=MOST_SHARE)
    profiles: dict[Name, Profile] = Field(min_length=1)
    steps: tuple[Step, ...] = Field(min_length=1)
    folder: Path
    digest: str
    """Hex SHA-256 of all files in the suite's folder and of the shared module that its script uses."""

    @model_validator(mode="after")
    def _consistent(self) -> "Suite":
        names = [step.name for step in self.steps]
        twice = {name for name in names if names.count(name) > 1}
        if twice:
            raise ValueError(f"steps: two steps are called {', '.join(sorted(twice))}")
        if self.script is not None and not (self.folder / self.script).is_file():
            raise ValueError(f"script: there is no file {self.script} beside suite.toml")
        self._check_sizes()
        RULES[self.generator].check(self)
        return self

    @property
    def sized_by(self) -> SizedBy:
        """How the data of the suite are sized."""
        return SizedBy.ROWS if self.scale is None else SizedBy.SCALE

    def _check_sizes(self) -> None:
        """Raise ValueError unless suite, profiles and steps agree on how the data are sized."""
        if (self.bytes_per_row is None) == (self.scale is None):
            raise ValueError("bytes_per_row, scale: a suite needs one of the two, and not both")
        key = self.sized_by.suite_key
        for name, profile in self.profiles.items():
            for other in SizedBy:
                given = getattr(profile, other) is not None
                if other is self.sized_by and not given:
                    raise ValueError(f"profiles.{name}.{other}: required in a suite with {key}")
                if other is not self.sized_by and given:
                    raise ValueError(f"profiles.{name}.{other}: not a key of a suite with {key}")
        for step in self.steps:
            self._check_rows_of(step)

    def _check_rows_of(self, step: Step) -> None:
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

    @property
    def primary(self) -> str:
        """The metric that verdicts are about."""
        return RULES[self.generator].primary

    def profile(self, name: str) -> Profile:
        """Return the profile called `name`. Raises SuiteError, which lists the profiles, if there is none."""
        if name not in self.profiles:
            raise SuiteError(
                f"suite {self.name} has no profile '{name}'",
                where=str(self.folder / "suite.toml"),
                hint="its profiles are: " + ", ".join(self.profiles),
            )
        return self.profiles[name]

    def select(
        self, names: tuple[str, ...], profile: str | None = None, clients: Levels = ()
    ) -> tuple[Step, ...]:
        """Return the steps called `names` in the suite's order; all of them when `names` is empty.

        `read-write@8` names one level of a step. Other steps have the levels `clients`, else their own, else
        those of `profile`. Raises SuiteError, which lists the steps, if there is none of a name.
        """
        known, apart = [step.name for step in self.steps], RULES[self.generator].levels_are_steps
        levels: dict[str, list[int]] = {}
        for name in names:
            plain, at, level = name.partition(LEVEL)
            if plain not in known or (at and not (apart and _is_level(level))):
                raise SuiteError(
                    f"suite {self.name} has no step '{name}'",
                    where=str(self.folder / "suite.toml"),
                    hint="its steps are: " + ", ".join(known),
                )
            levels.setdefault(plain, []).extend([int(level)] if at else [])
        its = self.profile(profile) if profile else None
        usual, own = (its.clients, its.options) if its else ((), {})
        steps: list[Step] = []
        for step in self.steps:
            if not names or step.name in levels:
                chosen = levels.get(step.name) or clients or step.clients or usual
                options = {key: own.get(key, value) for key, value in step.options.items()}
                whole = step.model_copy(update={"clients": tuple(chosen), "options": options})
                steps += ([whole.at(count) for count in chosen] if apart else []) or [whole]
        return tuple(steps)


def require_levels(levels: Levels) -> None:
    """Raise ValueError unless every level has more clients than the one before."""
    if any(fewer >= more for fewer, more in pairwise(levels)):
        raise ValueError("clients: every level must have more clients than the one before")


def _is_level(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 5 and 1 <= int(text) <= MOST_CLIENTS


def suite_names() -> dict[str, Path]:
    """Return the folders of the suites that are part of Tidemark, by name."""
    folders = sorted(path.parent for path in SUITES.glob("*/suite.toml"))
    return {folder.name.replace("_", "-"): folder for folder in folders}


def load_suite(name: str) -> Suite:
    """Read the suite called `name`, or the one in the folder `name` when that is a path with a slash.

    Raises SuiteError with the file, the key and the reason.
    """
    known = suite_names()
    folder = Path(name).resolve() if "/" in name else known.get(name)
    if folder is None or not (folder / "suite.toml").is_file():
        raise SuiteError(
            f"there is no suite '{name}'",
            hint=f"the suites are: {', '.join(known)}; or give the path of a folder with a suite.toml",
        )
    file = folder / "suite.toml"
    try:
        text = toml_value(file.read_text(encoding="utf-8"))
        ours = {"folder": folder, "digest": _digest(folder, _shared_files(folder, text))}
        for name in ours.keys() & text.keys():
            raise SuiteError(
                "this suite has a mistake", where=str(file), hint=f"{name}: not a key of a suite"
            )
        return Suite.model_validate({**text, **ours})
    except ValidationError as error:
        raise SuiteError("this suite has a mistake", where=str(file), hint=_explain(error)) from error
    except OSError as error:
        raise SuiteError(f"this suite cannot be read: {error}", where=str(file)) from error
    except ValueError as error:
        raise SuiteError("this suite is not valid TOML", where=str(file), hint=str(error)) from error


def _explain(error: ValidationError) -> str:
    """Return key and reason of every mistake."""
    lines = []
    for detail in error.errors():
        key = ".".join(str(part) for part in detail["loc"])
        reason = detail["msg"].removeprefix("Value error, ")
        lines.append(f"{key}: {reason}" if key else reason)
    return "; ".join(lines)


def _shared_files(folder: Path, text: Mapping[str, object]) -> tuple[Path, ...]:
    """Return the shared files that the script of a suite uses; empty for an unknown generator."""
    names = [name for name in GeneratorName if name == text.get("generator")]
    script = text.get("script")
    return RULES[names[0]].shared_files(folder / script if isinstance(script, str) else None) if names else ()


def _digest(folder: Path, shared: tuple[Path, ...]) -> str:
    digest = hashlib.sha256()
    own = sorted(path for path in folder.rglob("*") if path.is_file())
    names = [*(str(path.relative_to(folder)) for path in own), *(path.name for path in shared)]
    for name, file in zip(names, (*own, *shared), strict=True):
        digest.update(name.encode() + b"\0")
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()
