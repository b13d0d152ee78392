"""What is uncommitted in a clone, as a commit that only the mirror has."""

import os
import subprocess
import tempfile
from pathlib import Path

from build.sources import git_command
from build.sources.git import Commit, Mirror
from build.sources.git_command import LOCAL_SECONDS, GitError
from build.sources.patching import APPLY

_NAME = "Tidemark"


def committed(mirror: Mirror, head: Commit, patch: Path) -> str:
    """Return the commit, 40 hex digits, that a patch on `head` makes; the clone it comes from stays as it is.

    The same patch on the same commit makes the same one. Raises GitError if it cannot be made.
    """
    date = f"@{mirror.query('show', '--no-patch', '--format=%ct', head.commit).strip()} +0000"
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "LC_ALL": "C", "GIT_INDEX_FILE": f"{folder}/index"}
        for who in ("AUTHOR", "COMMITTER"):
            environment |= {f"GIT_{who}_NAME": _NAME, f"GIT_{who}_EMAIL": "", f"GIT_{who}_DATE": date}

        def git(*words: str) -> str:
            done = subprocess.run(
                [*git_command.BASE, "--git-dir", str(head.mirror), *words],
                check=False,
                env=environment,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=LOCAL_SECONDS,
            )
            if done.returncode != 0:
                raise GitError(
                    "what is uncommitted cannot be taken over",
                    where=f"{mirror.shown}: {done.stderr.strip()[-500:]}",
                )
            return done.stdout.strip()

        git("read-tree", head.commit)
        git(*APPLY, "--cached", "--", str(patch.resolve()))
        tree = git("write-tree")
        words = ("-c", "commit.gpgSign=false", "commit-tree", tree, "-p", head.commit)
        return git(*words, "-m", "What is uncommitted")
