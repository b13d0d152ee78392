"""`./tidemark build`: compile versions, or carry compiled ones between boxes."""

import argparse
import sys
from pathlib import Path

from build.errors import TidemarkError
from build.home import Home, locate
from build.make import lookup, provide
from build.progress import Progress
from build.version import Version, parse_version
from runners.console import progress


def main(arguments: argparse.Namespace) -> int:
    """Print the install prefix of each version; 2 when one could not be built."""
    home = locate()
    word, *rest = arguments.what
    if word == "export":
        return _export(rest, home)
    if word == "import":
        return _import(rest, home)
    return _build([parse_version(text) for text in arguments.what], arguments, home)


def _build(versions: list[Version], arguments: argparse.Namespace, home: Home) -> int:
    patches = [Path(name) for name in arguments.patch]
    found = [lookup(version, home, patches=patches, git_source=arguments.git) for version in versions]
    if all(found):
        # The quick way: nothing to show, so nothing that shows is loaded.
        print("\n".join(str(build.prefix) for build in found if build))
        return 0
    worst = 0
    with progress() as shown:
        for version in versions:
            try:
                build = provide(version, home, shown, patches=patches, git_source=arguments.git)
            except TidemarkError as error:
                print(f"tidemark: {error}", file=sys.stderr)
                worst = 2
            else:
                print(build.prefix)
    return worst


def _export(words: list[str], home: Home) -> int:
    from build.cache.archives import export

    if len(words) < 2:
        raise TidemarkError("export needs a folder and versions", hint="build export FOLDER VERSION...")
    with progress() as shown:
        builds = [provide(parse_version(text), home, shown) for text in words[1:]]
        for path in export(builds, Path(words[0])):
            print(path)
    return 0


def _import(words: list[str], home: Home) -> int:
    if not words:
        raise TidemarkError("import needs the archives to take in", hint="build import FILE...")
    with progress() as shown:
        for word in words:
            print(_taken_in(Path(word), home, shown))
    return 0


def _taken_in(path: Path, home: Home, shown: Progress) -> Path:
    from build.cache.archives import import_

    return import_(path, home, shown).prefix
