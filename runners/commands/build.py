"""`./tidemark build`: compile versions; export, import, list and delete compiled ones."""

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from build.cache.pruning import mark_used
from build.errors import TidemarkError
from build.home import Home, locate_for_writing
from build.make import lookup, provide, require_known
from build.progress import Progress
from build.sources.source import resolved
from build.version import Version, parse_revision, parse_version
from runners.console import progress

if TYPE_CHECKING:
    from runners.measuring.variants import Variant


def main(arguments: argparse.Namespace) -> int:
    """Print the install prefix of each version; return 2 when one could not be built, else 0."""
    home = locate_for_writing()
    first, *rest = arguments.what
    if first == "export":
        return _export(rest, arguments, home)
    if first == "import":
        return _import(rest, home)
    if first in ("list", "prune"):
        return _kept(first, rest, home)
    with progress() as shown:
        versions = [resolved(parse_revision(text), home, shown, arguments.git) for text in arguments.what]
        for version in versions:
            require_known(version, home, arguments.git)
    return _build(versions, arguments, home)


def _build(versions: list[Version], arguments: argparse.Namespace, home: Home) -> int:
    chosen = [_definition(version, arguments) for version in versions]
    cached = [
        lookup(
            version.plain,
            home,
            patches=definition.patches,
            choices=definition.choices,
            git_source=arguments.git,
        )
        for version, definition in zip(versions, chosen, strict=True)
    ]
    if all(cached):
        # Nothing is compiled, so that the progress display need not be loaded.
        for build in cached:
            assert build is not None
            mark_used(home, build)
            print(build.prefix)
        return 0
    code = 0
    with progress() as shown:
        for version, definition in zip(versions, chosen, strict=True):
            try:
                build = provide(
                    version.plain,
                    home,
                    shown,
                    patches=definition.patches,
                    choices=definition.choices,
                    git_source=arguments.git,
                    again=True,
                )
            except TidemarkError as error:
                print(f"tidemark: {error}", file=sys.stderr)
                code = 2
            else:
                print(build.prefix)
    return code


def _definition(version: Version, arguments: argparse.Namespace) -> "Variant":
    """Return how a version is compiled: as every version of the command, and as its variant.

    A patch without a variant is for every version here. Raises VariantError.
    """
    # Loaded only here: a ref that does not exist is refused before, within a second.
    from runners.measuring.variants import EVERY, definition_of, read_variants, require_defined

    everywhere = [Path(text) for text in arguments.patch if "=" not in text]
    variants = read_variants((), arguments.build, [text for text in arguments.patch if "=" in text])
    require_defined((version,), {name: variants[name] for name in {EVERY, version.variant} & variants.keys()})
    definition = definition_of(version, variants)
    return replace(definition, patches=(*everywhere, *definition.patches))


def _kept(what: str, words: list[str], home: Home) -> int:
    from runners.retention.builds import list_builds, prune_builds

    if what == "list" and words:
        raise TidemarkError(f"'{words[0]}' follows build list, which takes no words")
    print("\n".join(list_builds(home) if what == "list" else prune_builds(words, home)))
    return 0


def _export(words: list[str], arguments: argparse.Namespace, home: Home) -> int:
    from build.cache.archives import export

    if len(words) < 2:
        raise TidemarkError(
            "export needs a folder and versions", hint="./tidemark build export FOLDER VERSION..."
        )
    with progress() as shown:
        versions = [parse_version(text) for text in words[1:]]
        chosen = [_definition(version, arguments) for version in versions]
        builds = [
            provide(
                version.plain,
                home,
                shown,
                patches=definition.patches,
                choices=definition.choices,
                git_source=arguments.git,
            )
            for version, definition in zip(versions, chosen, strict=True)
        ]
        for path in export(builds, Path(words[0])):
            print(path)
    return 0


def _import(arguments: list[str], home: Home) -> int:
    if not arguments:
        raise TidemarkError("import needs archives", hint="./tidemark build import FILE...")
    with progress() as shown:
        for name in arguments:
            print(_import_archive(Path(name), home, shown))
    return 0


def _import_archive(path: Path, home: Home, shown: Progress) -> Path:
    from build.cache.archives import import_

    return import_(path, home, shown).prefix
