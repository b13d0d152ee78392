"""Recipes: how one release is compiled on one host, determined before anything runs, and choices besides."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Protocol

from build.engines import ENGINES
from build.errors import TidemarkError
from build.version import Engine, release_numbers

CONFIGURE = "configure"
"""The name of the stage that configures the source; the words of a variant are added to its command."""

JOBS = "{jobs}"
"""What stands for the number of parallel processes in a command."""


MAX_OPTIONS = 20
"""The most configure options of one variant."""

_FLAGS = re.compile(r"-[A-Za-z0-9_+=.,:/-]+( +-[A-Za-z0-9_+=.,:/-]+)*")


class RecipeError(TidemarkError):
    """There is no recipe for a version, or its source tree names no release."""


class ChoiceError(TidemarkError):
    """A choice of how to compile is not one, or is not well-formed."""


@dataclass(frozen=True)
class BuildChoices:
    """How a build differs from the recipe of its version. Without any choice it is the recipe's build."""

    compiler: str = ""
    """The command of the C compiler, such as `clang`; empty for `$CC` or gcc."""

    flags: str = ""
    """Compiler flags after those of the recipe, so that `-O3` replaces its `-O2`."""

    linker_flags: str = ""
    """Flags of the linker."""

    options: tuple[str, ...] = ()
    """Options of configure or CMake, after those of the recipe."""

    def to_json(self) -> dict[str, Any]:
        """Return the choices as a manifest and a session record them, by key; empty without any."""
        values: dict[str, Any] = {
            "CC": self.compiler,
            "CFLAGS": self.flags,
            "LDFLAGS": self.linker_flags,
            "configure": list(self.options),
        }
        return {key: value for key, value in values.items() if value}

    def with_(self, other: "BuildChoices") -> "BuildChoices":
        """Return these choices with those of `other`, which come later and so take precedence.

        Raises ChoiceError for more options of configure than MAX_OPTIONS.
        """
        if len(self.options) + len(other.options) > MAX_OPTIONS:
            raise ChoiceError(f"more than {MAX_OPTIONS} configure options")
        return BuildChoices(
            other.compiler or self.compiler,
            f"{self.flags} {other.flags}".strip(),
            f"{self.linker_flags} {other.linker_flags}".strip(),
            (*self.options, *other.options),
        )

    def with_options(self, options: Sequence[str]) -> "BuildChoices":
        """Return these choices with options of configure that they do not have yet, before their own."""
        return replace(self, options=(*(new for new in options if new not in self.options), *self.options))

    def plus(self, key: str, value: str) -> "BuildChoices":
        """Return these choices with one more; `configure` and flags add to what is there.

        Raises ChoiceError if there is no such key, or if its value is not well-formed.
        """
        if key not in KEYS:
            raise ChoiceError(
                f"'{key[:40]}' is not a choice of a build", hint=f"it is one of: {', '.join(KEYS)}"
            )
        if not KEYS[key].pattern.fullmatch(value):
            raise ChoiceError(f"'{value[:80]}' cannot be the {key} of a build", hint=KEYS[key].hint)
        return self.with_(KEYS[key].read(value))


@dataclass(frozen=True)
class ChoiceKey:
    """One key of `--with build.KEY=VALUE`."""

    pattern: re.Pattern[str]
    """What its values look like."""

    read: Callable[[str], BuildChoices]
    """Makes the choice of a value."""

    hint: str
    """What to write, for error messages."""


KEYS = {
    "CC": ChoiceKey(
        re.compile(r"[A-Za-z0-9/][A-Za-z0-9/._+-]*"),
        lambda value: BuildChoices(compiler=value),
        "name a command, such as clang",
    ),
    "CFLAGS": ChoiceKey(
        _FLAGS,
        lambda value: BuildChoices(flags=value),
        "write flags separated by spaces, such as '-O3 -march=native'",
    ),
    "LDFLAGS": ChoiceKey(
        _FLAGS,
        lambda value: BuildChoices(linker_flags=value),
        "write flags separated by spaces, such as -Wl,-O1",
    ),
    "configure": ChoiceKey(
        re.compile(r"-{1,2}[A-Za-z][A-Za-z0-9_+=.,:/-]*"),
        lambda value: BuildChoices(options=(value,)),
        "write one option, such as --with-llvm or -DWITH_LTO=ON; repeat the option for another",
    ),
}
"""The keys of choices, by what a command line and a plan call them."""

PLAIN = BuildChoices()
"""No choice: the recipe's own build."""


@dataclass(frozen=True)
class Stage:
    """One command of a compile; its name appears in progress, in the log and in errors.

    Words of `command` may contain the placeholders `{jobs}` (number of parallel processes), `{compiler}`,
    `{source}` (the unpacked tree, in which the command runs) and `{staging}` (the root folder of the
    installation). They are replaced when the command runs, so that their values do not change the build key.
    """

    name: str
    command: tuple[str, ...]


@dataclass(frozen=True)
class Recipe:
    """Everything that determines how one release is compiled, apart from source, patches and compiler."""

    engine: Engine
    release: str
    stages: tuple[Stage, ...]
    flags: str
    """The compiler flags in the configure command, after which those of a variant come."""

    environment: Mapping[str, str]
    """Variables that are added to the minimal environment of compiles."""

    prefix: str
    """The absolute install prefix that is compiled in. The finished tree is elsewhere, and relocatable."""

    installs: tuple[str, ...]
    """Files that must exist below the prefix afterwards; otherwise the compile has failed."""

    counted: str
    """A regular expression that matches each line of the log that announces a run of the compiler."""

    commands: int
    """The approximate number of such lines: the length of the progress bar of a first compile."""

    scratch_bytes: int
    """The approximate disk space that the compile needs, install tree included."""

    slim_programs: tuple[str, ...] = ()
    """The programs in `bin/` of a slim build, which has nothing else to run; empty for a whole build."""

    takes_answers: bool = False
    """Whether its configure takes over the answers of an earlier run: see build/cache/earlier_compiles.py."""

    @property
    def is_slim(self) -> bool:
        """Whether it makes a server and the few programs that measuring it needs, and no more."""
        return bool(self.slim_programs)

    def identity(self) -> dict[str, Any]:
        """Return the part of the recipe that can change the binaries, and therefore enters the build key."""
        whole = asdict(self)
        slim = {"slim": True} if self.is_slim else {}
        return {name: whole[name] for name in ("engine", "release", "stages", "environment", "prefix")} | slim


@dataclass(frozen=True)
class ServerLink:
    """How the server program alone is linked, once everything is compiled."""

    output: str
    """The program's path in the source tree, or an absolute one that begins with `{source}`."""

    command: tuple[str, ...]
    """The command, run in the source, that links the program if it is missing."""


@dataclass(frozen=True)
class VersionRange:
    """The versions that one row of a table applies to: from `first` up to the next row."""

    first: tuple[int, ...]
    """The first numbers of the oldest release in the range: (18,), (8, 3)."""

    flags: tuple[str, ...]
    """Flags of configure or CMake, in addition to those of all versions."""

    commands: int
    """The approximate number of compiler runs: the length of the progress bar of a first compile."""

    optional: tuple[tuple[str, str], ...] = ()
    """Pairs of a library's name in pkg-config and the flag that is added if the host has the library."""


def range_of(engine: Engine, release: str, table: Sequence[VersionRange]) -> VersionRange:
    """Return the row of `table` that applies to a release of `engine`; rows are ordered from the oldest.

    Raises RecipeError if the release is older than the first row.
    """
    rows = [row for row in table if row.first <= release_numbers(release)]
    if not rows:
        oldest = ".".join(map(str, table[0].first))
        raise RecipeError(
            f"there is no recipe for {ENGINES[engine].title} {release}",
            hint=f"the oldest version with a recipe is {oldest}",
        )
    return rows[-1]


def with_words(recipe: Recipe, words: tuple[str, ...]) -> Recipe:
    """Return a recipe whose configure command ends in `words`, the choices of a variant."""
    if not words:
        return recipe
    stages = tuple(
        replace(stage, command=(*stage.command, *words)) if stage.name == CONFIGURE else stage
        for stage in recipe.stages
    )
    return replace(recipe, stages=stages)


def words_of_cmake(choices: BuildChoices, flags: str) -> tuple[str, ...]:
    """Return the words that CMake takes for the choices of a variant; later ones replace earlier ones.

    MySQL and MariaDB are configured alike.

    `flags` are the recipe's own compiler flags, after which those of the variant come. The C++ compiler is
    the one that belongs to the C compiler: clang++-16 to clang-16.
    """
    words: list[str] = []
    if choices.compiler:
        words.append(f"-DCMAKE_CXX_COMPILER={_cxx_of(choices.compiler)}")
    if choices.flags:
        compiled = f"{flags} {choices.flags}"
        words += [f"-DCMAKE_{language}_FLAGS_RELWITHDEBINFO={compiled}" for language in ("C", "CXX")]
    if choices.linker_flags:
        kinds = ("EXE", "SHARED", "MODULE")
        words += [f"-DCMAKE_{kind}_LINKER_FLAGS={choices.linker_flags}" for kind in kinds]
    return (*words, *choices.options)


def _cxx_of(compiler: str) -> str:
    folder, slash, name = compiler.rpartition("/")
    for c, cxx in (("clang", "clang++"), ("gcc", "g++")):
        if name.startswith(c):
            return folder + slash + cxx + name.removeprefix(c)
    return compiler


def release_in(text: str, title: str, file: str) -> str:
    """Return the release (`9.7.2`) that `text`, the contents of `file`, names.

    MySQL and MariaDB, being of one descent, write it alike. Raises RecipeError, with the `title` of the
    engine, if it names none.
    """
    numbers = []
    for part in ("MAJOR", "MINOR", "PATCH"):
        match = re.search(rf"^MYSQL_VERSION_{part}=(\d+)\s*$", text, re.MULTILINE)
        if match is None:
            raise RecipeError(f"the source names no {title} release: {part} is missing", where=file)
        numbers.append(match[1])
    return ".".join(numbers)


class RecipeModule(Protocol):
    """The interface of an engine's module in build/recipes/."""

    VERSION_FILE: str
    """The file in a source tree that names its release."""

    PROGRAMS: tuple[str, ...]
    """The programs that a finished build must have in `bin/`."""

    LINK: ServerLink | None
    """How the server is linked, for builds that can be linked again; None where that was not tried."""

    TLS_OPTIONS: tuple[str, ...]
    """Options of configure without which servers and clients have no TLS; none where they always have it."""

    @property
    def release_of(self) -> Callable[[str], str]:
        """A function from the text of VERSION_FILE to the release. Raises RecipeError if it names none."""

    @property
    def recipe(self) -> Callable[[str, Callable[[str], bool]], Recipe]:
        """A function from a release and a test for libraries of the host to a recipe. Raises RecipeError."""

    @property
    def slim_recipe(self) -> Callable[[str, Callable[[str], bool], Sequence[str]], Recipe] | None:
        """The same for a slim build, with the programs that it needs besides; None where there is none."""

    @property
    def configure_words(self) -> Callable[[BuildChoices, str], tuple[str, ...]]:
        """A function from the choices of a variant and the recipe's flags to words for its configure command.

        They come last, and replace what the command says before. PLAIN gives none.
        """
