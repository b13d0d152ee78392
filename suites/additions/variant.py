"""What a variant gets beside its version, and the table of the keys that say so.

A key is read and told everywhere by its row in KEYS: a command line has `--with mem:setting.work_mem=8MB`,
a plan `settings.work_mem = "8MB"` below `[variants.mem]`, and the JSON of a session the same table. The dot
before a name is that of TOML; with a second `=` in its place, as in `set=work_mem=8MB`, one could not see
where a value with an `=` begins.

Nothing here needs a package: command lines are parsed, and histories read, without any.
"""

import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, Generic, TypeVar

from build.errors import TidemarkError
from build.extension import EXTENSION_DIGITS, Extension, ExtensionError, described_extension, parse_extension
from build.recipes.recipe import KEYS as BUILD_KEYS
from build.recipes.recipe import PLAIN, BuildChoices
from suites.layers.choice import LayerName, require_value
from suites.postgres.initdb_options import OPTIONS, require_option

OPTION = "--with"
"""The option of a command line, `--with [VARIANT:]KEY=VALUE`."""

MAX_LENGTH = 300
"""Characters of the description of an index."""

EXTENSIONS = "extensions"
"""The field with extensions: the commit of one may be in the name of its variant instead."""

_INDEX = re.compile(r"([a-z_*][a-z0-9_*]{0,62})(\([^;]*\)[^;]*)", re.ASCII)

T = TypeVar("T")


class VariantError(TidemarkError):
    """A variant is not defined, is the same as another one, or its definition is not well-formed."""


class ExtraIndexError(TidemarkError):
    """The description of an index is not well-formed, or fits no table."""


class CompanionName(StrEnum):
    """A companion; suites.additions.registry has an entry for each."""

    PGBOUNCER = "pgbouncer"
    """PgBouncer in transaction mode, between clients and Postgres."""

    LOGICAL_CONSUMER = "logical-consumer"
    """pg_recvlogical, which reads a logical replication slot of Postgres."""

    PHYSICAL_CONSUMER = "physical-consumer"
    """pg_receivewal, which reads a physical replication slot of Postgres."""

    BINLOG_CONSUMER = "binlog-consumer"
    """A stream of the binary log of MySQL or MariaDB."""


@dataclass(frozen=True)
class ExtraIndex:
    """An index on every table whose name fits `tables`."""

    tables: str
    """A name in which * stands for any characters."""

    columns: str
    """What CREATE INDEX takes behind the table, from the parenthesis on."""


def parse_index(text: str) -> ExtraIndex:
    """Return the index that a text like `sbtest*(c)` describes. Raises ExtraIndexError."""
    match = _INDEX.fullmatch(text) if len(text) <= MAX_LENGTH and text.isprintable() else None
    if match is None:
        raise ExtraIndexError(
            f"'{text[:80]}' describes no index",
            where="index",
            hint="write tables and columns, such as 'sbtest*(id) INCLUDE (c, pad)'",
        )
    return ExtraIndex(match[1], match[2])


@dataclass(frozen=True)
class Variant:
    """What distinguishes a variant from its version; without anything it is the version itself."""

    settings: Mapping[str, str] = field(default_factory=dict)
    """Server settings that override those of the session; `postgres.NAME` is for one engine."""

    build: BuildChoices = PLAIN
    """How it is compiled differently."""

    patches: tuple[Path, ...] = ()
    """The patches of its source, in order."""

    extensions: tuple[Extension, ...] = ()
    """The extensions of Postgres that are compiled for it and created in its database, in order."""

    layers: Mapping[str, str] = field(default_factory=dict)
    """How clients reach its server, by the names of suites.layers.choice."""

    initdb: Mapping[str, str] = field(default_factory=dict)
    """What its initdb is told, by the names of suites.postgres.initdb_options."""

    indexes: tuple[str, ...] = ()
    """The indexes that its loaded tables get, as `parse_index` reads them."""

    companions: tuple[CompanionName, ...] = ()
    """The companions of its server."""

    def plus(self, key: "VariantKey[Any]", name: str, value: str) -> "Variant":
        """Return the variant with one more word of a key, whose `name` is empty where it has none.

        Raises the error of what the key is about.
        """
        if key.field == EXTENSIONS and name in {extension.name for extension in self.extensions}:
            raise ExtensionError(f"{name} is named twice", where=f"{key.name} {name}")
        return replace(self, **{key.field: key.join(getattr(self, key.field), key.read(name, value))})

    def with_(self, own: "Variant") -> "Variant":
        """Return this definition, of every version, with what a variant of its own adds or replaces."""
        fields = [(key, getattr(self, key.field), getattr(own, key.field)) for key in KEYS.values()]
        return Variant(**{key.field: key.join(every, also) for key, every, also in fields})

    def to_json(self) -> dict[str, Any]:
        """Return the definition as a session records it: patches by the names of their files."""
        values = {key.field: _stored(getattr(self, key.field)) for key in KEYS.values()}
        return {name: value for name, value in values.items() if value}


@dataclass(frozen=True)
class VariantKey(Generic[T]):
    """A key of a variant: how it is written, read, joined and told."""

    name: str
    """What stands in a word of `--with`."""

    field: str
    """The field of Variant, and the key of plans and of sessions, where it has all that was given."""

    names: str
    """What can stand behind a dot, as a placeholder; empty for a key that has only values."""

    values: str
    """The placeholder of its values."""

    help: str

    read: Callable[[str, str], T]
    """Returns the field of a variant with nothing but one name and value. Raises a TidemarkError."""

    join: Callable[[T, T], T]
    """Returns the field with what comes later, and takes precedence."""

    told: str = "{}"
    """What is said of it in a sentence, around all entries."""

    between: str = ", "
    """What stands between its entries."""

    equals: str = "="

    needs_variant: bool = False
    """Whether what is measured under the name of a version cannot have it."""

    @property
    def form(self) -> str:
        """How it is written: `setting.NAME=VALUE`."""
        return f"{self.name}{'.' if self.names else ''}{self.names}={self.values}"

    @property
    def is_table(self) -> bool:
        """Whether plans and sessions have it as a table by name; otherwise it is a list."""
        return not isinstance(getattr(UNCHANGED, self.field), tuple)

    def entries(self, kept: object) -> Iterator[tuple[str, str]]:
        """Yield names and values of what a plan or a session has at this key; of anything else nothing.

        The ref of an extension that a session recorded is its commit, for a branch is another tomorrow.
        """
        for name, given in kept.items() if isinstance(kept, dict) else ():
            yield from ((str(name), str(value)) for value in (given if isinstance(given, list) else [given]))
        for entry in kept if isinstance(kept, list) else ():
            if isinstance(entry, dict):
                ref = str(entry.get("commit", ""))[:EXTENSION_DIGITS] or entry.get("ref")
                yield str(entry.get("name")), f"{entry.get('repository')}@{ref}"
            elif self.names:
                name, _, value = str(entry).partition("=")
                yield name, value
            else:
                yield "", str(entry)

    def sentence(self, kept: object) -> str:
        """Return what is said of what a session has at this key; empty without anything."""
        entries: list[str] = []
        if isinstance(kept, dict):
            entries = [f"{name}{self.equals}{_spaced(value)}" for name, value in kept.items()]
        elif isinstance(kept, list):
            entries = [
                described_extension(entry) if isinstance(entry, dict) else str(entry) for entry in kept
            ]
        return self.told.format(self.between.join(entries)) if entries else ""


UNCHANGED = Variant()
"""The definition of a plain version."""


def _replaced(every: tuple[Extension, ...], own: tuple[Extension, ...]) -> tuple[Extension, ...]:
    names = {extension.name for extension in own}
    return (*(other for other in every if other.name not in names), *own)


def _layer(name: str, value: str) -> dict[str, str]:
    require_value(name, value)
    return {name: value}


def _initdb(name: str, value: str) -> dict[str, str]:
    require_option(name, value)
    return {name: value}


def _index(_: str, value: str) -> tuple[str, ...]:
    parse_index(value)
    return (value,)


def _companion(_: str, value: str) -> tuple[CompanionName, ...]:
    if value not in set(CompanionName):
        raise VariantError(
            f"there is no companion '{value[:40]}'",
            where="companion",
            hint=f"the companions are: {', '.join(CompanionName)}",
        )
    return (CompanionName(value),)


KEYS: Mapping[str, VariantKey[Any]] = {
    key.name: key
    for key in (
        VariantKey(
            "setting",
            "settings",
            names="NAME",
            values="VALUE",
            help="a server setting; setting.ENGINE.NAME for one engine",
            read=lambda name, value: {name: value},
            join=operator.or_,
            equals=" = ",
        ),
        VariantKey(
            "build",
            "build",
            names="KEY",
            values="VALUE",
            help=f"compiled with another {', '.join(BUILD_KEYS)}, such as build.CFLAGS=-O3",
            read=PLAIN.plus,
            join=BuildChoices.with_,
            told="compiled with {}",
        ),
        VariantKey(
            "patch",
            "patches",
            names="",
            values="FILE",
            help="applied to the source",
            read=lambda _, value: (Path(value),),
            join=operator.add,
            told="patched with {}",
            needs_variant=True,
        ),
        VariantKey(
            "extension",
            EXTENSIONS,
            names="NAME",
            values="REPO@REF",
            help="an extension of Postgres from its git repository, compiled by PGXS",
            read=lambda name, value: (parse_extension(f"{name}={value}"),),
            join=_replaced,
            told="with {}",
            between=" and ",
        ),
        VariantKey(
            "layer",
            "layers",
            names="LAYER",
            values="VALUE",
            help=f"how clients reach the server: {', '.join(LayerName)}",
            read=_layer,
            join=operator.or_,
            told="clients with {}",
        ),
        VariantKey(
            "initdb",
            "initdb",
            names="OPTION",
            values="VALUE",
            help=f"what the initdb of Postgres is told: {', '.join(OPTIONS)}",
            read=_initdb,
            join=operator.or_,
            told="initdb with {}",
        ),
        VariantKey(
            "index",
            "indexes",
            names="",
            values="INDEX",
            help="an index on the loaded tables, such as 'sbtest*(id) INCLUDE (c, pad)'",
            read=_index,
            join=operator.add,
            told="with indexes on {}",
            between=" and ",
        ),
        VariantKey(
            "companion",
            "companions",
            names="",
            values="NAME",
            help=f"a process beside the server: {', '.join(CompanionName)}",
            read=_companion,
            join=operator.add,
            told="beside {}",
            between=" and ",
        ),
    )
}
"""Every key by its name, in the order in which a definition is told."""

SETTING = KEYS["setting"]


def option_words(name: str, definition: Mapping[str, Any]) -> list[str]:
    """Return the words of a command line that define a variant again, such as `--with mem:setting.jit=on`.

    `definition` is that of a session. An empty name defines what every version gets.
    """
    of = f"{name}:" if name else ""
    return [
        word
        for key in KEYS.values()
        for within, value in key.entries(definition.get(key.field))
        for word in (OPTION, f"{of}{key.name}{'.' if key.names else ''}{within}={value}")
    ]


def described(definition: Mapping[str, Any]) -> str:
    """Return the definition of a session in words: `work_mem = 8MB; compiled with CFLAGS=-O3`.

    What else stands there is left out.
    """
    sentences = (key.sentence(definition.get(key.field)) for key in KEYS.values())
    return "; ".join(sentence for sentence in sentences if sentence)


def _stored(value: object) -> Any:
    if isinstance(value, (BuildChoices, Extension)):
        return value.to_json()
    if isinstance(value, tuple):
        return [_stored(entry) for entry in value]
    if isinstance(value, Path):
        return value.name
    return dict(value) if isinstance(value, Mapping) else value


def _spaced(value: object) -> str:
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)
