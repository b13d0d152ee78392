"""An install prefix as a version: which build it is, and what is refused."""

import os
import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from build import installs
from build.accounts import AccountError
from build.home import Home
from build.installs import (
    PrefixError,
    digest_of,
    prefix_of,
    recorded_install,
    recorded_version,
    require_unchanged,
)
from build.progress import Silent
from build.provide import find, provide
from build.recipes.recipe import PLAIN
from build.request import BuildRequest
from build.sources.source import resolved
from build.version import Engine, parse_revision, parse_version
from tests.build.pretended import pretended_prefix


@pytest.fixture
def prefix(tmp_path: Path) -> Path:
    """A prefix whose programs are one that exists everywhere and says what Postgres says."""
    return pretended_prefix(tmp_path / "pg")


@pytest.fixture
def says(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    def say(text: str) -> None:
        monkeypatch.setattr(installs, "said_with", lambda *command: text)

    say("postgres (PostgreSQL) 18.6 (Mine 18.6-1)\n")
    return say


def test_a_prefix_is_what_its_files_are_not_where_or_when(
    prefix: Path, tmp_path: Path, says: Callable[[str], None]
) -> None:
    build = recorded_install(parse_revision(f"postgres@good={prefix}"), Home(tmp_path))
    assert (build.release, build.prefix, build.numbers) == ("18.6", prefix, (18, 6))
    assert str(build.version) == f"postgres@good={build.key[:12]}"
    elsewhere = shutil.copytree(prefix, tmp_path / "copy", copy_function=shutil.copyfile)
    assert digest_of(elsewhere, Engine.POSTGRES) == build.key
    (elsewhere / "include").mkdir()
    (elsewhere / "include" / "pg_config.h").touch()
    (elsewhere / "lib" / "libpq.a").touch()
    assert digest_of(elsewhere, Engine.POSTGRES) == build.key
    (elsewhere / "lib" / "plpgsql.so").write_bytes(b"MODULE")
    assert digest_of(elsewhere, Engine.POSTGRES) != build.key


def test_a_digest_names_the_prefix_until_it_holds_something_else(
    prefix: Path, tmp_path: Path, says: Callable[[str], None]
) -> None:
    home, progress = Home(tmp_path / "home"), Silent()
    version = resolved(parse_revision(f"postgres@good={prefix}#v"), home, progress)
    assert progress.notes == [f"postgres@good={prefix}#v: 18.6, recorded as {version}"]
    assert version.variant == "v"
    assert prefix_of(version, home) == prefix
    assert recorded_version(f"postgres@good={prefix}#v") == version
    build = provide(BuildRequest(version.plain), home, progress)
    assert find(BuildRequest(version.plain), home) == build

    module = prefix / "lib" / "plpgsql.so"
    module.write_bytes(b"module")
    require_unchanged(build)  # installed once more, and the same
    module.write_bytes(b"MODULE")
    with pytest.raises(PrefixError, match=f"has changed: it was {version.plain}, now it is "):
        require_unchanged(build)
    with pytest.raises(PrefixError, match="any more: its programs have the digest") as refused:
        provide(BuildRequest(version.plain), home, progress)
    again = str(refused.value.hint).rpartition(" ")[2]
    assert resolved(parse_revision(again), home, progress).installed != version.installed
    with pytest.raises(PrefixError, match="no install prefix with the digest 0123456789ab was read"):
        provide(BuildRequest(parse_version("postgres@good=0123456789ab")), home, progress)


def test_what_is_installed_is_not_compiled_otherwise(
    prefix: Path, tmp_path: Path, says: Callable[[str], None]
) -> None:
    home = Home(tmp_path / "home")
    version = resolved(parse_revision(f"postgres@good={prefix}"), home, Silent())
    for wish in (
        BuildRequest(version, choices=PLAIN.plus("CFLAGS", "-O3")),
        BuildRequest(version, relinks=True),
        BuildRequest(version, (prefix / "x.patch",)),
    ):
        with pytest.raises(PrefixError, match="neither patched, compiled otherwise nor linked"):
            provide(wish, home, Silent())


@pytest.mark.parametrize(
    ("said", "engine", "number"),
    [
        ("postgres (PostgreSQL) 19devel", "postgres", "19devel"),
        ("postgres (PostgreSQL) 18beta2-mine", "postgres", "18beta2"),
        ("mysqld  Ver 9.7.2 for Linux on x86_64 (Source distribution)", "mysql", "9.7.2"),
        ("mysqld  Ver 8.0.45-debug for Linux on x86_64 (Source distribution)", "mysql", "8.0.45"),
        ("mariadbd  Ver 11.8.6-MariaDB-log for Linux on x86_64", "mariadb", "11.8.6"),
        ("mysqld  Ver 10.11.18-MariaDB for Linux on x86_64", "mysql", None),
        ("postgres (EnterpriseDB)", "postgres", None),
    ],
)
def test_the_number_is_that_of_the_programs(
    prefix: Path, tmp_path: Path, says: Callable[[str], None], said: str, engine: str, number: str | None
) -> None:
    for name in ("mysqld", "mariadbd"):
        shutil.copy(prefix / "bin" / "postgres", prefix / "bin" / name)
    says(said)
    version = parse_revision(f"{engine}@x={prefix}")
    if number is None:
        with pytest.raises(PrefixError, match="says that it is"):
            recorded_install(version, Home(tmp_path))
    else:
        assert recorded_install(version, Home(tmp_path)).release == number


def test_a_folder_that_is_no_prefix_is_refused_with_what_to_name(server_folder: Path) -> None:
    prefix = pretended_prefix(server_folder / "pg")

    def refusal(path: Path, engine: str = "postgres") -> str:
        with pytest.raises(PrefixError) as refused:
            recorded_version(f"{engine}@x={path}")
        return f"{refused.value.what}; {refused.value.hint}"

    assert refusal(prefix / "none").startswith(f"there is no folder {prefix}/none")
    assert "it has no bin/postgres; name the folder that has bin/postgres in it" in refusal(prefix / "bin")
    assert "is no install prefix of MySQL: it has no bin/mysqld" in refusal(prefix, "mysql")
    server = prefix / "bin" / "postgres"
    header = server.read_bytes()
    server.write_bytes(header[:18] + struct.pack("<H", 22) + header[20:])  # for s390x
    assert "bin/postgres cannot be started" in refusal(prefix)
    assert "must run on this machine" in refusal(prefix)


@pytest.mark.parametrize("open_to_all", [".", "..", "bin", "bin/postgres", "lib/plpgsql.so"])
def test_a_prefix_that_everybody_may_change_is_refused(
    tmp_path: Path, says: Callable[[str], None], open_to_all: str
) -> None:
    prefix = pretended_prefix(tmp_path / "opt" / "pg")
    path = (prefix / open_to_all).resolve()
    path.chmod(0o777)
    version = parse_revision(f"postgres@good={prefix}")
    with pytest.raises(PrefixError) as refused:
        recorded_install(version, Home(tmp_path))
    assert f"everybody may write to {path}" in refused.value.what
    path.chmod(0o1777)
    if open_to_all != "..":
        with pytest.raises(PrefixError):
            recorded_install(version, Home(tmp_path))
    path.chmod(0o755)
    assert recorded_install(version, Home(tmp_path)).prefix == prefix


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_who_else_may_change_a_prefix_is_said(
    prefix: Path, tmp_path: Path, says: Callable[[str], None]
) -> None:
    os.chown(prefix / "bin", 65534, 65534)
    progress = Silent()
    resolved(parse_revision(f"postgres@good={prefix}"), Home(tmp_path), progress)
    assert progress.notes[1:] == [f"{prefix} belongs to nobody, who may change it while it is measured"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has rights to drop")
def test_programs_of_a_prefix_are_asked_without_the_rights_of_root(server_folder: Path) -> None:
    script = server_folder / "postgres"
    script.write_text("#!/bin/sh\nid -u\n")
    script.chmod(0o755)
    assert int(installs.said_with(script, "--version")) != 0
    server_folder.chmod(0o700)
    with pytest.raises(AccountError, match="the user tidemark has no access to") as refused:
        installs.said_with(script, "--version")
    assert f"chmod o+x {server_folder}" in refused.value.hint
