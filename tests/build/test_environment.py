"""Which variables of a hostile caller reach which programs."""

import os
import subprocess
from pathlib import Path

import pytest

from build import environment, host
from build.home import Home
from build.progress import Silent
from build.provide import provide
from build.request import BuildRequest
from build.sources import git
from build.version import Engine, parse_version
from tests.build.stand import Pins, Repository, Stand

SECRETS = {
    "PGPASSWORD": "hunter2-a",
    "AWS_SECRET_ACCESS_KEY": "hunter2-b",
    "http_proxy": "http://me:hunter2-c@proxy:3128",
    "MYSQL_PWD": "hunter2-d",
}

FLAGS = ("CFLAGS", "CXXFLAGS", "LDFLAGS", "MAKEFLAGS", "CPATH", "LIBRARY_PATH", "PKG_CONFIG_PATH")
CCACHE = ("CCACHE_COMPILER", "CCACHE_PREFIX", "CCACHE_IGNOREOPTIONS", "CCACHE_SLOPPINESS")
"""With which ccache runs another compiler, or takes an object that was compiled with other options."""


@pytest.fixture(autouse=True)
def hostile(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    for name in (*FLAGS, *CCACHE):
        monkeypatch.setenv(name, "--no-such-flag")


def test_measured_programs_get_next_to_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PGOPTIONS", "LD_PRELOAD", "MALLOC_ARENA_MAX", "TMPDIR", "LANG", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, "x")
    monkeypatch.setenv("TZ", "Asia/Kathmandu")
    monkeypatch.delenv("TIDEMARK_BURN_NS", raising=False)
    assert environment.measured({"LUA_PATH": "?.lua"}) == {
        "PATH": os.environ["PATH"],
        "HOME": "/nonexistent",
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "LUA_PATH": "?.lua",
    }


def test_compiles_get_what_cannot_change_their_result(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CCACHE_DIR", "/somewhere")
    given = environment.compiling()
    assert given.keys() <= {
        *environment.COMPILING,
        "HOME",
        "LC_ALL",
        "TZ",
        "GIT_CONFIG_GLOBAL",
        "GIT_CONFIG_NOSYSTEM",
    }
    assert (given["CCACHE_DIR"], given["LC_ALL"]) == ("/somewhere", "C")
    assert given["HOME"] == environment.NO_HOME


def test_the_names_of_what_was_left_out_are_known_and_no_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEMARK_LOCK", "/x")
    names = environment.left_out(environment.COMPILING)
    assert {*SECRETS, *FLAGS, *CCACHE} <= {*names}
    assert not {"PATH", "CCACHE_DIR", "TIDEMARK_LOCK"} & {*names}
    assert not any("hunter2" in name for name in names)
    assert {*FLAGS, *CCACHE, "PGPASSWORD"} <= {*environment.without_effect(names)}
    assert "AWS_SECRET_ACCESS_KEY" not in environment.without_effect(names)


def test_what_no_argument_overrides_leaves_the_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PGSERVICE", "nights")
    with environment.kept_from_process():
        monkeypatch.setenv("PGTZ", "Asia/Kathmandu")
        with environment.kept_from_process():
            assert not {"PGSERVICE", "PGTZ"} & os.environ.keys()
            assert environment.caller_value("PGSERVICE") == "nights"
            assert {"PGSERVICE", "PGTZ"} <= {*environment.left_out(environment.MEASURED)}
        assert (os.environ["PGTZ"], "PGSERVICE" in os.environ) == ("Asia/Kathmandu", False)
    assert os.environ["PGSERVICE"] == environment.caller_value("PGSERVICE") == "nights"
    assert os.environ["PGPASSWORD"] == "hunter2-a", "a history on a server needs it"


# --- compiles


def test_the_manifest_names_what_a_compile_did_not_get(
    home: Home, progress: Silent, stand: Stand, versions: Pins
) -> None:
    tarball = home.sources / "postgresql-18.99.tar.bz2"
    versions(r18_99=stand.tarball(tarball, before="@! env | grep hunter2"))
    build = provide(BuildRequest(parse_version("postgres@18.99")), home, progress)
    assert {*SECRETS, *FLAGS} <= {*build.manifest.left_out}
    assert "hunter2" not in (build.prefix / "build.json").read_text()
    (note,) = [note for note in progress.notes if "without these environment variables" in note]
    assert "CFLAGS" in note
    assert "AWS_SECRET" not in note
    (log,) = home.logs.glob("build-*.log")
    assert "hunter2" not in log.read_text()


def test_libraries_are_looked_for_as_configure_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    (tmp_path / "made-up.pc").write_text("Name: made-up\nDescription: x\nVersion: 1\n")
    monkeypatch.setenv("PKG_CONFIG_PATH", str(tmp_path))
    assert subprocess.run(["pkg-config", "--exists", "made-up"], check=False).returncode == 0
    assert not host.has_library("made-up")


def test_settings_of_a_persons_git_do_not_change_a_source(
    home: Home, repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.commit("one line\nand another\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".gitconfig").write_text("[core]\n\tautocrlf = true\n\teol = crlf\n")
    mirror = git.mirror(str(repository.path), Engine.POSTGRES, home)
    with git.archive(mirror.fetch("main")) as stream:
        assert stream.stdout is not None
        archived = stream.stdout.read()
    assert b"one line\nand another\n" in archived
