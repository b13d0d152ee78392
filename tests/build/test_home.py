"""Root and output folders that belong to others."""

import os
from pathlib import Path

import pytest

from build.home import HomeError, locate_for_writing
from runners.cli import main

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs two users")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "home"
    path.mkdir(mode=0o755)
    monkeypatch.setenv("TIDEMARK_HOME", str(path))
    return path


def test_root_writes_into_its_own(home: Path) -> None:
    assert locate_for_writing().path == home
    home.rmdir()
    assert locate_for_writing().path == home


def test_root_does_not_write_where_another_user_could_put_links(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    os.chown(home, 65534, 65534)
    assert main(["run", "postgres@17.11", "postgres@18.6"]) == 2
    said = capsys.readouterr().err
    assert "root does not write into an output folder of nobody" in said
    assert f"sudo -u nobody env TIDEMARK_HOME={home} ./tidemark" in said
    assert list(home.iterdir()) == []


@pytest.mark.parametrize(("mode", "group"), [(0o777, 0), (0o1777, 0), (0o775, 65534)])
def test_root_does_not_write_where_everybody_may(mode: int, group: int, home: Path) -> None:
    os.chown(home, 0, group)
    home.chmod(mode)
    with pytest.raises(HomeError, match="others may put links"):
        locate_for_writing()


def test_a_user_writes_where_the_rights_allow_it(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.chown(home, 65534, 65534)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert locate_for_writing().path == home
