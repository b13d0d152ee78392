"""Suites as data: `suites/*/suite.toml`, read and checked."""

import hashlib
import tomllib
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from build.errors import TidemarkError
from build.version import Engine

SUITES = Path(__file__).resolve().parent

Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]*$")]
Option = str | int | float | bool
# Strict, so that "5" and true are not taken for numbers; TOML has inf and nan, which are no sizes.
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Count = Annotated[int, Field(strict=True)]


class SuiteError(TidemarkError):
    """A suite, profile or step that does not exist, or a suite file with a mistake."""


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Mode(StrEnum):
    """How the runs of several versions are interleaved."""

    ROUNDS = "rounds"
    """Each round of a step begins from the same loaded data."""
    LONG = "long"
    """The servers stay up for the whole suite, and each step inherits what the one before left."""


class Profile(_Strict):
    """How long and how large a suite is run."""

    title: str
    mode: Mode = Mode.ROUNDS
    seconds: Number = Field(gt=0)
    """How long each version works on a step in a round; in mode long, altogether."""
    slice_seconds: Number = Field(gt=0)
    """How long a version works before the next one takes its turn."""
    warm_seconds: Number = Field(default=0, ge=0)
    """How long each version warms up at the beginning of a round; rounded up to whole slices."""
    perf_seconds: Number = Field(default=2, gt=0)
    """How long each version is profiled at the end of a round, with --perf."""
    repetitions: Count = Field(ge=1)
    """Rounds of each step. In mode long the length of a step decides that."""
    most_rounds: Count = Field(default=20, ge=3)
    """The most rounds of a step whose verdict is open, with --until-decided."""
    budget_minutes: Number = Field(default=30, gt=0)
    """How long after its first round a session with --until-decided begins further rounds."""
    data_to_memory: Number = Field(gt=0)
    """Size of the loaded data as a share of the machine's memory."""
    rows: tuple[Annotated[Count, Field(gt=0)], Annotated[Count, Field(gt=0)]]
    """Least and most rows over all tables, whatever the memory."""
    buffer_to_memory: Number = Field(gt=0, le=0.8)
    """Size of the server's buffer cache as a share of the machine's memory."""
    settle_seconds: Number = Field(ge=0)
    """Idle time after each reset."""

    @model_validator(mode="after")
    def _ordered(self) -> "Profile":
        if self.rows[0] > self.rows[1]:
            raise ValueError("rows = [least, most]: least is larger than most")
        if self.slice_seconds > self.seconds:
            raise ValueError("slice_seconds: a slice is longer than the step")
        return self


class Step(_Strict):
    """One workload of a suite."""

    name: Name
    title: str
    group: Name | None = None
    """Steps of one group get a geometric mean of their own."""
    options: dict[str, Option] = {}
    """Handed to the load generator: `--name=value` of a sysbench script, `builtin` or `file` of pgbench."""
    queries: Number = Field(default=1, gt=0)
    """Queries in a transaction, for generators that count transactions only."""
    most_work_to_rows: Number | None = Field(default=None, gt=0)
    """The most transactions in the step, as a share of the loaded rows; for steps that use rows up."""


class Suite(_Strict):
    """A named list of steps that run in order on one data set."""

    name: Name
    title: str
    generator: Literal["sysbench", "pgbench"]
    script: str | None = None
    engines: tuple[Engine, ...] = Field(min_length=1)
    seed: Count = Field(gt=0)
    bytes_per_row: Number = Field(gt=0)
    growth: Number = Field(default=2.0, ge=1)
    profiles: dict[Name, Profile] = Field(min_length=1)
    steps: tuple[Step, ...] = Field(min_length=1)
    folder: Path
    digest: str
    """SHA-256 over all files of the suite's folder: what was run."""

    @model_validator(mode="after")
    def _consistent(self) -> "Suite":
        names = [step.name for step in self.steps]
        twice = {name for name in names if names.count(name) > 1}
        if twice:
            raise ValueError(f"steps: two steps are called {', '.join(sorted(twice))}")
        if self.generator == "sysbench" and self.script is None:
            raise ValueError("script: sysbench needs the Lua script that holds the steps")
        if self.script is not None and not (self.folder / self.script).is_file():
            raise ValueError(f"script: there is no file {self.script} beside suite.toml")
        if self.generator == "pgbench":
            self._check_pgbench_options()
        return self

    def _check_pgbench_options(self) -> None:
        """pgbench takes one script per step: one of its own, or a file of the suite."""
        for step in self.steps:
            if step.options.keys() not in ({"builtin"}, {"file"}):
                raise ValueError(f"steps.{step.name}.options: pgbench takes either builtin or file")
            if step.most_work_to_rows is not None:
                raise ValueError(
                    f"steps.{step.name}.most_work_to_rows: pgbench works for a time, whatever it does"
                )
            file = step.options.get("file")
            if file is not None and not (self.folder / str(file)).is_file():
                raise ValueError(f"steps.{step.name}.options.file: there is no file {file} beside suite.toml")

    def profile(self, name: str) -> Profile:
        """The profile called `name`. Raises SuiteError with the names that there are."""
        if name not in self.profiles:
            raise SuiteError(
                f"suite {self.name} has no profile '{name}'",
                where=str(self.folder / "suite.toml"),
                hint="its profiles are: " + ", ".join(self.profiles),
            )
        return self.profiles[name]

    def select(self, names: tuple[str, ...]) -> tuple[Step, ...]:
        """The steps called `names`, in the suite's order; all of them when `names` is empty."""
        known = [step.name for step in self.steps]
        for name in names:
            if name not in known:
                raise SuiteError(
                    f"suite {self.name} has no step '{name}'",
                    where=str(self.folder / "suite.toml"),
                    hint="its steps are: " + ", ".join(known),
                )
        return tuple(step for step in self.steps if not names or step.name in names)


def suite_names() -> dict[str, Path]:
    """The suites that come with Tidemark: name and folder."""
    folders = sorted(path.parent for path in SUITES.glob("*/suite.toml"))
    return {folder.name.replace("_", "-"): folder for folder in folders}


def load_suite(name: str) -> Suite:
    """Read the suite called `name`, or the one in the folder `name` when that is a path with a slash.

    Raises SuiteError with file, key and reason.
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
        text: dict[str, Any] = tomllib.loads(file.read_text(encoding="utf-8"))
        ours = {"folder": folder, "digest": _digest(folder)}
        for name in ours.keys() & text.keys():
            raise SuiteError(
                "this suite has a mistake", where=str(file), hint=f"{name}: not a key of a suite"
            )
        return Suite.model_validate({**text, **ours})
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SuiteError("this suite is not valid TOML", where=str(file), hint=str(error)) from error
    except ValidationError as error:
        raise SuiteError("this suite has a mistake", where=str(file), hint=_explain(error)) from error


def _explain(error: ValidationError) -> str:
    """Key and reason of each mistake, one line each."""
    lines = []
    for detail in error.errors():
        key = ".".join(str(part) for part in detail["loc"])
        reason = detail["msg"].removeprefix("Value error, ")
        lines.append(f"{key}: {reason}" if key else reason)
    return "; ".join(lines)


def _digest(folder: Path) -> str:
    digest = hashlib.sha256()
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        digest.update(str(file.relative_to(folder)).encode() + b"\0")
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()
