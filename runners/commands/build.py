"""`./tidemark build`: compile versions, or export and import compiled ones."""

import argparse
import sys
from pathlib import Path

from build.errors import TidemarkError
from build.home import Home, locate_for_writing
from build.make import lookup, provide
from build.progress import Progress
from build.sources.source import resolved
from build.version import Version, parse_revision, parse_version
from runners.console import progress


def main(arguments: argparse.Namespace) -> int:
    """Print the install prefix of each version; return 2 when one could not be built, else 0."""
    home = locate_for_writing()
    first, *rest = arguments.what
    if first == "export":
        return _export(rest, home)
    if first == "import":
        return _import(rest, home)
    with progress() as shown:
        versions = [resolved(parse_revision(text), home, shown, arguments.git) for text in arguments.what]
    return _build(versions, arguments, home)


def _build(versions: list[Version], arguments: argparse.Namespace, home: Home) -> int:
    patches = [Path(name) for name in arguments.patch]
    cached = [lookup(version, home, patches=patches, git_source=arguments.git) for version in versions]
    if all(cached):
        # Nothing is compiled, so that the progress display need not be loaded.
        print("\n".join(str(build.prefix) for build in cached if build))
        return 0
    code = 0
    with progress() as shown:
        for version in versions:
            try:
                build = provide(version, home, shown, patches=patches, git_source=arguments.git)
            except TidemarkError as error:
                print(f"tidemark: {error}", file=sys.stderr)
                code = 2
            else:
                print(build.prefix)
    return code


def _export(arguments: list[str], home: Home) -> int:
    from build.cache.archives import export

    if len(arguments) < 2:
        raise TidemarkError(
            "export needs a folder and versions", hint="./tidemark build export FOLDER VERSION..."
        )
    with progress() as shown:
        builds = [provide(parse_version(text), home, shown) for text in arguments[1:]]
        for path in export(builds, Path(arguments[0])):
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
