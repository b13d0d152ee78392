"""What a suite.toml has to hold for its load generator; suites.definition applies these rules."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Protocol


class GeneratorName(StrEnum):
    """The load generators that a suite.toml can name."""

    SYSBENCH = "sysbench"
    PGBENCH = "pgbench"


LUA_MODULES = Path(__file__).resolve().parent / "generators"
"""The folder where `require("tidemark")` of a suite's sysbench script finds the shared module."""


class StepKeys(Protocol):
    """The keys of a step that a rule reads."""

    @property
    def name(self) -> str:
        """What the step is called."""

    @property
    def options(self) -> Mapping[str, str | int | float | bool]:
        """What is handed to the load generator."""

    @property
    def most_work_to_rows(self) -> float | None:
        """The limit of its work over the loaded rows."""


class SuiteKeys(Protocol):
    """The keys of a suite that a rule reads."""

    @property
    def folder(self) -> Path:
        """Where suite.toml and its scripts lie."""

    @property
    def script(self) -> str | None:
        """The name of the script beside suite.toml."""

    @property
    def steps(self) -> Sequence[StepKeys]:
        """All steps in order."""


@dataclass(frozen=True)
class GeneratorRules:
    """What one load generator asks of a suite."""

    check: Callable[[SuiteKeys], None]
    """Raises ValueError with key and reason when the generator could not run the suite."""
    shared_files: tuple[Path, ...] = ()
    """Files of Tidemark that are part of what is run, beside those of the suite's folder."""


def _check_sysbench(suite: SuiteKeys) -> None:
    if suite.script is None:
        raise ValueError("script: sysbench needs the Lua script that holds the steps")


def _check_pgbench(suite: SuiteKeys) -> None:
    """Require one script for each step: one that pgbench has, or a file of the suite."""
    for step in suite.steps:
        if step.options.keys() not in ({"builtin"}, {"file"}):
            raise ValueError(f"steps.{step.name}.options: pgbench takes either builtin or file")
        if step.most_work_to_rows is not None:
            raise ValueError(
                f"steps.{step.name}.most_work_to_rows: pgbench works for a time, whatever it does"
            )
        file = step.options.get("file")
        if file is not None and not (suite.folder / str(file)).is_file():
            raise ValueError(f"steps.{step.name}.options.file: there is no file {file} beside suite.toml")


RULES: Mapping[GeneratorName, GeneratorRules] = {
    GeneratorName.SYSBENCH: GeneratorRules(_check_sysbench, shared_files=(LUA_MODULES / "tidemark.lua",)),
    GeneratorName.PGBENCH: GeneratorRules(_check_pgbench),
}
"""One entry for every load generator; suites/generators/registry.py says how it is made."""
