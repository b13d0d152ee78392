"""`./tidemark build`: compile versions; export, import, list and delete compiled ones."""

import argparse
import sys
from pathlib import Path

from build.cache.pruning import mark_used
from build.errors import TidemarkError
from build.home import Home, locate_for_writing
from build.progress import Progress
from build.provide import find, provide, require_known
from build.request import BuildRequest
from build.sources.source import resolved
from build.version import Version, parse_revision, parse_version
from runners.console import progress


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
    requests = [_request(version, arguments) for version in versions]
    cached = [find(request, home) for request in requests]
    if all(cached):
        # Nothing is compiled, so that the progress display need not be loaded.
        for build in cached:
            assert build is not None
            mark_used(home, build)
            print(build.prefix)
        return 0
    code = 0
    with progress() as shown:
        for request in requests:
            try:
                build = provide(request, home, shown, again=True)
            except TidemarkError as error:
                print(f"tidemark: {error}", file=sys.stderr)
                code = 2
            else:
                print(build.prefix)
    return code


def _request(version: Version, arguments: argparse.Namespace) -> BuildRequest:
    """Return which build of a version is asked for: as every version of the command, and as its variant.

    Raises VariantError.
    """
    # Loaded only here: a ref that does not exist is refused before, within a second.
    from runners.measuring.variants import EVERY, definition_of, read_variants, require_defined

    variants = read_variants(arguments.variants, ("build", "patch"))
    require_defined((version,), {name: variants[name] for name in {EVERY, version.variant} & variants.keys()})
    definition = definition_of(version, variants)
    return BuildRequest(version.plain, definition.patches, definition.build, arguments.git)


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
        requests = [_request(parse_version(text), arguments) for text in words[1:]]
        builds = [provide(request, home, shown) for request in requests]
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
