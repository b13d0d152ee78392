"""The entry of `./tidemark try`: a ref that does not exist is refused before what measures is loaded."""

import argparse
from importlib import import_module
from pathlib import Path

from build.engines import git_ref
from build.home import locate_for_writing
from build.sources.git import mirror
from build.sources.repository import repository_address
from build.version import Engine, parse_revision
from runners.trying.own_clone import engine_here
from runners.trying.series import SUFFIXES, is_series


def main(arguments: argparse.Namespace) -> int:
    """Try, print the answer, and return the exit code that `--help` documents."""
    # What a script of one's own gets wrong is said first, before any source is asked.
    has_own = arguments.script or arguments.extension or arguments.server
    if not (arguments.box or arguments.check or has_own):
        require_refs(arguments)
    command = import_module("runners.trying.command")  # half of the second in which a ref is refused
    return int(command.main(arguments))


def require_refs(arguments: argparse.Namespace) -> None:
    """Raise VersionError, NoSuchRefError or GitError unless the git source has what is named.

    Patches, install prefixes and releases are not looked at.
    """
    named = arguments.what if len(arguments.what) == 1 and not is_series(arguments.what) else []
    refs = [word for word in (*named, arguments.against) if word and "=" not in word]
    if not refs or any(Path(ref).suffix in SUFFIXES for ref in refs):
        return
    engine = Engine(arguments.engine or engine_here(arguments.git) or Engine.POSTGRES)
    home = locate_for_writing()
    for ref in refs:
        has_engine = ref.partition("@")[0] in set(Engine)
        version = parse_revision(ref if has_engine else f"{engine}@{ref}")
        if not version.is_release:
            address = repository_address(version.engine, arguments.git)
            mirror(address, version.engine, home).require(git_ref(version))
