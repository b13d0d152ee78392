"""A real Gitea for tests of what reaches it; where it was not compiled, they are skipped."""

from collections.abc import Iterator

import pytest

from tests.runners.alerting.trackers.real_gitea import RealGitea


@pytest.fixture(scope="session")
def gitea(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealGitea]:
    """One for all tests, each of which finds it running."""
    gitea = RealGitea(tmp_path_factory.mktemp("gitea"))
    yield gitea
    gitea.stop()
