"""Which Tidemark this is."""

from build.home import ROOT
from build.sources.git import GitError, run


def own_version() -> str:
    """Return the commit of this checkout, or `unknown` without git."""
    try:
        # By its name, so that no repository around the checkout is taken for it, and whoever owns it.
        return run("describe", "--always", "--dirty", git_dir=ROOT / ".git", work_tree=ROOT).strip()
    except GitError:
        return "unknown"
