"""A Postgres server of a test's own for a history, a network to it that can be cut, and boxes."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from benchmarks.scale.history_server import HistoryServer
from build.finished_build import Build
from build.home import Home
from tests.history.spool.proxy import Proxy


@pytest.fixture
def server(server_folder: Path, postgres_18: Build) -> Iterator[HistoryServer]:
    """A server that only this test uses, so that it may be killed."""
    made = HistoryServer(postgres_18, server_folder / "1")
    made.begin()
    yield made
    made.destroy()


@pytest.fixture
def proxy(server: HistoryServer) -> Iterator[Proxy]:
    """The network to it."""
    made = Proxy(server.socket)
    yield made
    made.close()


@pytest.fixture
def new_home(tmp_path: Path) -> Callable[[str], Home]:
    """Makes the home of a box."""
    return lambda name: Home(tmp_path / name)
