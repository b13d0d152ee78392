"""What is uncommitted in a clone, as a commit that only the mirror has."""

import tempfile
from pathlib import Path

from build.programs.environment import NO_GIT_SETTINGS
from build.sources import git_command
from build.sources.git import Commit, Mirror
from build.sources.git_command import GitError
from build.sources.patching import APPLY

_NAME = "Tidemark"


def committed(mirror: Mirror, head: Commit, patch: Path) -> str:
    """Return the commit, 40 hex digits, that a patch on `head` makes; the clone it comes from stays as it is.

    The same patch on the same commit makes the same one. Raises GitError if it cannot be made.
    """
    date = f"@{mirror.query('show', '--no-patch', '--format=%ct', head.commit).strip()} +0000"
    with tempfile.TemporaryDirectory() as folder:
        variables = {"GIT_INDEX_FILE": f"{folder}/index", **NO_GIT_SETTINGS}
        for who in ("AUTHOR", "COMMITTER"):
            variables |= {f"GIT_{who}_NAME": _NAME, f"GIT_{who}_EMAIL": "", f"GIT_{who}_DATE": date}

        def git(*words: str) -> str:
            try:
                return git_command.run(*words, git_dir=head.mirror, variables=variables).strip()
            except GitError as error:
                raise GitError(
                    "what is uncommitted cannot be taken over", where=f"{mirror.shown}: {error.where[-500:]}"
                ) from error

        git("read-tree", head.commit)
        git(*APPLY, "--cached", "--", str(patch.resolve()))
        tree = git("write-tree")
        return git("commit-tree", tree, "-p", head.commit, "-m", "What is uncommitted")
