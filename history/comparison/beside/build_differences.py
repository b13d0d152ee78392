"""How the builds of an install prefix and of another version differ: compiler, flags, configure options."""

import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

MAX_OPTIONS = 8
"""The most options of each kind that are named."""

MAX_CHARACTERS = 200
"""Of a value, such as a line of compiler flags."""

_COMPILER = re.compile(r"(gcc|clang)\b.*?(?:version |\) )(\d+(?:\.\d+)*)", re.IGNORECASE)
"""Name and number in `GCC: (Debian 12.2.0-14) 12.2.0`, which programs hold, and in what compilers say."""

_PLACES = frozenset(
    {"--prefix", "--bindir", "--libdir", "--datadir", "--mandir", "--docdir", "--sysconfdir", "--infodir"}
    | {"--includedir", "--localstatedir", "--cache-file", "CC", "CXX", "CMAKE_INSTALL_PREFIX"}
)
"""Options that say where something lies; the compiler is compared by what it says of itself."""

_BUILD_INFO = re.compile(r"^(?:-D)?([A-Z][A-Z0-9_]*)(?::[A-Z]+)?\s*=\s*(.*)$", re.MULTILINE)
"""A line of INFO_BIN, which MySQL and MariaDB install: `CXX_FLAGS = -O2`, `WITH_LZ4:STRING=bundled`."""


def build_differences(base: Mapping[str, Any], contender: Mapping[str, Any]) -> list[str]:
    """Return a sentence for each way in which two builds were compiled differently, by their manifests.

    What a manifest does not say is no difference: both must know it.
    """
    return [
        f"compiled differently: {what}"
        for what in (*_compilers(base, contender), *_flags(base, contender), *_options(base, contender))
    ]


def _compilers(base: Mapping[str, Any], contender: Mapping[str, Any]) -> Iterator[str]:
    old, new = _compiler(base), _compiler(contender)
    if old and new and _plain(old) != _plain(new):
        yield f"compiler {old} (base), {new} (new)"


def _compiler(manifest: Mapping[str, Any]) -> str:
    compiler = manifest.get("compiler")
    version = compiler.get("version") if isinstance(compiler, dict) else ""
    return str(version or "").strip()[:MAX_CHARACTERS]


def _plain(compiler: str) -> str:
    found = _COMPILER.search(compiler)
    return f"{found[1]} {found[2]}".casefold() if found else compiler


def _flags(base: Mapping[str, Any], contender: Mapping[str, Any]) -> Iterator[str]:
    """Yield the flags of Postgres' compiler if they differ, as pg_config has them or configure got them."""
    recipes = [_recipe(manifest) for manifest in (base, contender)]
    whole = [str(recipe.get("cflags") or "") for recipe in recipes]
    given = [_configured(recipe).get("CFLAGS", "") for recipe in recipes]
    old, new = whole if all(whole) else given
    if old and new and old.split() != new.split():
        yield f"CFLAGS {_without(old, new)} (base), {_without(new, old)} (new)"


def _without(flags: str, others: str) -> str:
    """Return the flags that the others do not have, or that there are none."""
    own = " ".join(word for word in flags.split() if word not in others.split())
    return own[:MAX_CHARACTERS] or "without these"


def _options(base: Mapping[str, Any], contender: Mapping[str, Any]) -> Iterator[str]:
    old, new = (_configured(_recipe(manifest)) for manifest in (base, contender))
    if not old or not new:
        return
    for side, own, others in (("base", old, new), ("new", new, old)):
        words = [
            f"{name}={value}" if value else name
            for name, value in own.items()
            if name != "CFLAGS" and others.get(name) != value
        ]
        if words:
            more = f" and {len(words) - MAX_OPTIONS} more" if len(words) > MAX_OPTIONS else ""
            named = ", ".join(word[:MAX_CHARACTERS] for word in words[:MAX_OPTIONS])
            yield f"{named}{more} only of the {side}"


def _recipe(manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    recipe = manifest.get("recipe")
    return recipe if isinstance(recipe, dict) else {}


def _configured(recipe: Mapping[str, Any]) -> dict[str, str]:
    """Return the options of a build by name: those of configure, or what INFO_BIN says."""
    told = recipe.get("info_bin")
    if isinstance(told, str):
        return {name: value.strip() for name, value in _BUILD_INFO.findall(told) if name not in _PLACES}
    words = (word.partition("=") for word in _words(recipe))
    return {name: value for name, _, value in words if name not in _PLACES}


def _words(recipe: Mapping[str, Any]) -> list[str]:
    configure = recipe.get("configure")
    if isinstance(configure, str):
        try:
            return shlex.split(configure)
        except ValueError:
            return configure.split()
    if isinstance(configure, list):
        return [str(word) for word in configure]
    stages = recipe.get("stages")
    first = stages[0] if isinstance(stages, list) and stages else None
    command = first.get("command") if isinstance(first, dict) else None
    return [str(word) for word in command[1:]] if isinstance(command, list) else []
