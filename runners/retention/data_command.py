"""`./tidemark data`: list the kept copies of loaded data, or delete those that nothing can use."""

import argparse
from collections.abc import Sequence

from build.errors import TidemarkError
from build.home import locate, locate_for_writing
from runners.measuring.machine_lock import measuring_alone
from suites.data_copies.store import DataCopies, KeptCopy


def main(arguments: argparse.Namespace) -> int:
    """Print the copies, or what was deleted; return 0."""
    if arguments.what == "list":
        for line in rows(DataCopies(locate().copies).all()):
            print(line)
        return 0
    home = locate_for_writing()
    # A session may be reading a copy, or making one.
    with measuring_alone(home):
        copies = DataCopies(home.copies)
        builds = {path.name for path in home.builds.iterdir()} if home.builds.is_dir() else set()
        builds |= {path.stem for path in home.installs.glob("*.json")}
        for kept in chosen(copies.all(), arguments.names, builds, everything=arguments.all):
            copies.remove(kept)
            print(f"deleted: {kept.name}, {kept.bytes / 1e9:.2f} GB")
    return 0


def chosen(
    copies: Sequence[KeptCopy], names: Sequence[str], builds: set[str], *, everything: bool
) -> list[KeptCopy]:
    """Return the copies to delete: all, those called `names`, or those that no session could use.

    Nothing can use a damaged one, or one whose build is not among the folders `builds` of the build cache.
    Raises TidemarkError for a name that there is not.
    """
    known = {kept.name: kept for kept in copies}
    for name in names:
        if name not in known:
            raise TidemarkError(f"there is no copy '{name}'", hint="./tidemark data list shows them")
    if everything:
        return list(copies)
    if names:
        return [known[name] for name in dict.fromkeys(names)]
    # The name of a build's folder ends with the beginning of its key.
    ends = {folder.rpartition("-")[2] for folder in builds}
    return [
        kept for kept in copies if kept.damage or not any(end and kept.build.startswith(end) for end in ends)
    ]


def rows(copies: Sequence[KeptCopy]) -> list[str]:
    """Return one line for each copy, and one for all of them."""
    lines = []
    for kept in copies:
        what = kept.damage or f"{kept.version}, {kept.suite} {kept.profile}, kept {kept.kept_at}"
        state = "unusable: " if kept.damage else ""
        lines.append(f"{kept.name}  {kept.bytes / 1e9:6.2f} GB  {state}{what}")
    total = sum(kept.bytes for kept in copies)
    return [*lines, f"{len(copies)} {'copy' if len(copies) == 1 else 'copies'}, {total / 1e9:.2f} GB"]
