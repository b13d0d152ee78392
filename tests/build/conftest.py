"""A home of its own for every test, and the stand-ins as fixtures."""

import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from build import host
from build.engines import ENGINES
from build.home import Home
from build.progress import Silent
from build.sources import releases
from build.version import Engine
from tests.build.stand import Pins, Repository, Stand, Web, served_at


@pytest.fixture
def home(server_folder: Path) -> Home:
    return Home(server_folder / "home")


@pytest.fixture
def progress() -> Silent:
    return Silent()


@pytest.fixture
def open_folder(server_folder: Path) -> Path:
    """A folder in which everybody may write, for what a compile is to tell a test."""
    folder = server_folder / "open"
    folder.mkdir()
    folder.chmod(0o777)
    return folder


@pytest.fixture
def stand(tmp_path: Path, open_folder: Path) -> Stand:
    return Stand(tmp_path / "stand" / "postgresql", open_folder / "configure-runs")


@pytest.fixture
def web(tmp_path: Path) -> Iterator[Web]:
    served = Web(tmp_path / "web")
    served.root.mkdir()

    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 # the base class's name
            del format, args
            served.asked.append(self.path)

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(served.root)))
    served.address = f"http://127.0.0.1:{server.server_address[1]}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield served
    server.shutdown()
    server.server_close()


@pytest.fixture
def repository(stand: Stand) -> Repository:
    stand.folder.mkdir(parents=True)
    made = Repository(stand.folder, stand)
    made.git("init", "--quiet", "--initial-branch=main")
    return made


@pytest.fixture
def versions(tmp_path: Path, web: Web, monkeypatch: pytest.MonkeyPatch) -> Pins:
    """Write a versions.toml with these pins and use it; upstream is then the test's web server."""

    def write(**pins: str) -> Path:
        lines = [
            f'"{release.lstrip("r").replace("_", ".")}" = "{digest}"' for release, digest in pins.items()
        ]
        path = tmp_path / f"versions-{len(list(tmp_path.glob('versions-*')))}.toml"
        path.write_text("[postgres]\n" + "\n".join(lines) + "\n")
        monkeypatch.setattr(releases, "VERSIONS", path)
        monkeypatch.setitem(ENGINES, Engine.POSTGRES, served_at(f"{web.address}/up", tmp_path))
        return path

    return write


@pytest.fixture(autouse=True)
def plain_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Nothing of the machine's own settings; its apt-get prints the file `apt-addresses`."""
    for name in ("TIDEMARK_GIT_POSTGRES", "TIDEMARK_NO_CCACHE", "CC", "CCACHE_DIR"):
        monkeypatch.delenv(name, raising=False)
    if request.node.get_closest_marker("compile"):
        return
    monkeypatch.setenv("http_proxy", "")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    programs = tmp_path / "programs"
    programs.mkdir()
    apt = programs / "apt-get"
    apt.write_text(f'#!/bin/sh\ncase "$*" in *Packages) cat "{tmp_path}/apt-addresses" 2>/dev/null ;; esac\n')
    apt.chmod(0o755)
    monkeypatch.setenv("PATH", str(programs), prepend=":")
    monkeypatch.setattr(host, "has_library", lambda name: False)
