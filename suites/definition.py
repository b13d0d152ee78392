"""Suite definitions, which are read from `suites/*/suite.toml` and validated."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError, model_validator

from build.errors import TidemarkError, did_you_mean
from build.files import toml_value
from build.home import locate
from suites.control_groups.declared import DiskSpeed
from suites.digests import digest, file_digests
from suites.keys.generator_rules import RULES, check_rules
from suites.keys.levels import LEVEL, MAX_CLIENTS
from suites.keys.loaded_file import kind_of
from suites.keys.pgbench_scripts import weighted_script
from suites.keys.profile import BOUNDED, Profile, SizedBy
from suites.keys.step import Levels, Step
from suites.keys.suite_keys import GeneratorName, SuiteKeys
from suites.layers.choice import layers_of

SUITES = Path(__file__).resolve().parent


class SuiteError(TidemarkError):
    """A suite, profile or step does not exist, or a suite file has a mistake."""


PROFILES = SUITES / "profiles.toml"
"""The profiles of all suites, in which a suite.toml states only what differs."""


class Suite(SuiteKeys):
    """A suite whose keys agree with each other, and with its generator."""

    @model_validator(mode="after")
    def _consistent(self) -> "Suite":
        for what, names in (
            ("steps", [step.name for step in self.steps]),
            ("checks", [check.name for check in self.checks]),
        ):
            twice = {name for name in names if names.count(name) > 1}
            if twice:
                raise ValueError(f"{what}: two {what} are called {', '.join(sorted(twice))}")
        for key, file in (("script", self.script), ("setup", self.setup)):
            if file is not None and not (self.folder / file).is_file():
                raise ValueError(f"{key}: there is no file {file} beside suite.toml")
        self._check_load()
        try:
            layers_of(self.layers)
        except TidemarkError as error:
            raise ValueError(f"layers: {error.what}; {error.hint}") from error
        self._check_sizes()
        self._check_names()
        check_rules(self.generator, self)
        return self

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

    def _check_load(self) -> None:
        """Raise ValueError for data that are none, and for options of tables that are not loaded."""
        if self.load is not None:
            if not (self.folder / self.load).exists():
                raise ValueError(f"load: there is no file {self.load} beside suite.toml")
            try:
                kind = kind_of(self.folder / self.load)
            except ValueError as error:
                raise ValueError(f"load: {error}") from error
            if not set(self.engines) <= set(kind.engines):
                raise ValueError(f"load: {self.load} is for pg_restore, which fills Postgres alone")
        if self.initialize is not None and self.sized_by is SizedBy.FILES:
            raise ValueError("initialize: of pgbench's own tables, which need scale or bytes_per_row")

    def _check_sizes(self) -> None:
        """Raise ValueError unless suite, profiles and steps agree on how the data are sized."""
        if not self.profiles:
            raise ValueError("profiles: a suite with a scale states the units that each profile may have")
        given = (self.bytes_per_row is not None) + (self.scale is not None)
        rules = RULES[self.generator]
        if given and rules.is_loaded_by_script:
            raise ValueError(f"bytes_per_row, scale: neither with {self.generator}, whose script decides")
        if self.beside and self.bytes_per_row is None:
            raise ValueError("beside: only with bytes_per_row; a scale lists all tables")
        if given > 1 or (not given and not self.has_files and not rules.is_loaded_by_script):
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

    def _check_names(self) -> None:
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
        known, apart = [step.name for step in self.steps], RULES[self.generator].levels_are_steps
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
        return Suite.model_validate({**text, "profiles": _profiles(text), **ours})
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
    rules = [RULES[name] for name in GeneratorName if name == text.get("generator")]
    has_rows = "bytes_per_row" in text
    profiles: dict[str, object] = {}
    for name, keys in common.items():
        if name not in stated and (name in without or "scale" in text or (name == "io" and not has_rows)):
            continue
        slices = longer.get(name, {}) if rules and not rules[0].has_short_slices else {}
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
    """Return the shared files that the script of a suite uses; empty for an unknown generator."""
    names = [name for name in GeneratorName if name == text.get("generator")]
    script = text.get("script")
    return RULES[names[0]].shared_files(folder / script if isinstance(script, str) else None) if names else ()
