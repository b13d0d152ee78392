"""Hostile sources, compiled as root: they run as a user without rights, in folders of that user."""

import json
import os
import pwd
import shutil
import subprocess
import time
from collections.abc import Collection
from pathlib import Path

import psutil
import pytest

from build import accounts
from build.accounts import compiling
from build.cache import store
from build.compile_commands import CompileError
from build.errors import TidemarkError
from build.home import Home
from build.progress import Silent
from build.provide import provide
from build.request import BuildRequest
from build.sources.download import sha256_of
from build.version import parse_version
from tests.build.stand import Pins, Stand

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root has rights to drop")

RELEASE = parse_version("postgres@18.99")
TARBALL = "postgresql-18.99.tar.bz2"
PREFIX = "$(DESTDIR)/usr/local/tidemark/postgres"


def packed(
    stand: Stand, home: Home, *, configure: str = "", install: str = "", release: str = "18.99"
) -> None:
    """Pack the stand-in with more lines in its configure script, and in what its makefile installs."""
    stand.write(release)
    script, makefile = stand.folder / "configure", stand.folder / "contrib/pgstattuple/Makefile"
    script.write_text(f"{script.read_text()}\n{configure}\n")
    makefile.write_text(
        makefile.read_text()
        .replace("\n.PHONY", "\n.PHONY")
        .replace("install: all\n", f"install: all\n\t{install or '@true'}\n")
    )
    home.sources.mkdir(parents=True, exist_ok=True)
    tarball = home.sources / f"postgresql-{release}.tar.bz2"
    subprocess.run(["tar", "-cjf", tarball, "-C", stand.folder.parent, stand.folder.name], check=True)
    pins = home.sources / "pins.json"
    known = json.loads(pins.read_text())["postgres"] if pins.exists() else {}
    pins.write_text(json.dumps({"postgres": {**known, release: sha256_of(tarball)}}))


def of_compiles(words: Collection[str]) -> list[psutil.Process]:
    """The living processes of the user that compiles with one of these words; other tests compile, too."""
    user = pwd.getpwnam(accounts.COMPILE_USER).pw_uid
    return [
        process
        for process in psutil.process_iter(["uids", "status", "cmdline"])
        if process.info["uids"].real == user
        and process.info["status"] != psutil.STATUS_ZOMBIE
        and not {*words}.isdisjoint(process.info["cmdline"] or ())
    ]


def test_no_stage_has_the_rights_of_root(
    home: Home, progress: Silent, stand: Stand, versions: Pins, open_folder: Path
) -> None:
    versions()
    who = f"(id -u; id -G; grep NoNewPrivs /proc/self/status) >{open_folder}/as-%s"
    stand.write(before=f"@test -e {open_folder}/as-make || {who % 'make'}")
    packed_with = {"configure": who % "configure", "install": who % "install"}
    packed(stand, home, **packed_with)
    provide(BuildRequest(RELEASE), home, progress)
    account = pwd.getpwnam(accounts.COMPILE_USER)
    said = f"{account.pw_uid}\n{account.pw_gid}\nNoNewPrivs:\t1\n"
    assert {(open_folder / f"as-{stage}").read_text() for stage in ("configure", "install")} == {said}


def test_it_reads_and_writes_nothing_of_roots(
    home: Home, progress: Silent, stand: Stand, versions: Pins, open_folder: Path, server_folder: Path
) -> None:
    versions()
    secret = server_folder / "secret"
    secret.write_text("hunter2")
    secret.chmod(0o600)
    places = [home.path, home.builds, home.sources, home.logs, home.scratch, home.answers, server_folder]
    for place in places:
        place.mkdir(parents=True, exist_ok=True)
    packed(
        stand,
        home,
        configure=f"cat {secret} >{open_folder}/read\n"
        + "\n".join(f"touch {place}/x && echo {place} >>{open_folder}/written" for place in places)
        + f'\ntouch ../x && echo .. >>{open_folder}/written\necho "$HOME $TMPDIR" >{open_folder}/variables',
    )
    provide(BuildRequest(RELEASE), home, progress)
    assert (open_folder / "read").read_text() == ""
    assert not (open_folder / "written").exists()
    folder, temporary = (open_folder / "variables").read_text().split()
    assert (folder, Path(temporary).parent.parent) == ("/nonexistent", home.scratch)


def test_what_it_leaves_running_is_ended(
    home: Home, progress: Silent, stand: Stand, versions: Pins, open_folder: Path
) -> None:
    versions()
    # One that has left group and session, and one that is another process every few milliseconds.
    chain, asleep = f"{open_folder}/chain", f"3600.{time.time_ns()}"
    packed(
        stand,
        home,
        configure=f"""
        (setsid sleep {asleep} &) </dev/null >/dev/null 2>&1
        printf '#!/bin/sh\\ntrap "" TERM HUP\\nsleep 0.005\\nsetsid {chain} &\\n' >{chain}
        chmod 755 {chain}
        (setsid {chain} &) </dev/null >/dev/null 2>&1
        """,
    )
    provide(BuildRequest(RELEASE), home, progress)
    assert of_compiles({chain, asleep}) == []


def test_what_a_killed_tidemark_left_running_is_ended_before_the_next_compile(
    home: Home, progress: Silent, stand: Stand, versions: Pins, open_folder: Path
) -> None:
    versions()
    with compiling(home.path, lambda: None) as account:
        pass
    left = subprocess.Popen([*accounts.become(account), "sleep", "3600"])
    packed(
        stand, home, configure=f"cut --delimiter=' ' --fields=3 /proc/{left.pid}/stat >{open_folder}/state"
    )
    provide(BuildRequest(RELEASE), home, progress)
    assert left.wait(10) == -9
    assert (open_folder / "state").read_text() == "Z\n", "it had ended"


def test_a_finished_build_belongs_to_root_who_alone_writes_to_it(
    home: Home, progress: Silent, stand: Stand, versions: Pins
) -> None:
    versions()
    program = f"{PREFIX}/bin/more"
    packed(
        stand,
        home,
        install=f"touch {program}; chmod 6777 {program}; mkdir -p {PREFIX}/all; chmod 1777 {PREFIX}/all",
    )
    build = provide(BuildRequest(RELEASE), home, progress)
    entries = [build.prefix, *build.prefix.rglob("*")]
    assert {(entry.lstat().st_uid, entry.lstat().st_gid) for entry in entries} == {(0, 0)}
    assert not [entry for entry in entries if not entry.is_symlink() and entry.stat().st_mode & 0o7022]
    assert (build.prefix / "bin/more").is_file()


@pytest.mark.parametrize(
    ("install", "says"),
    [
        (f"ln -s /etc {PREFIX}/etc", "links to the absolute path /etc"),
        (f"ln -s ../../../../.. {PREFIX}/bin/up", "outside the tree"),
        (f"mkfifo {PREFIX}/bin/pipe", "neither a file nor a folder nor a link"),
        (f"echo '{{}}' >{PREFIX}/imported.json", "it installs imported.json"),
        (f"ln -s bin/psql {PREFIX}/build.json", "it installs build.json"),
    ],
    ids=["absolute link", "link upwards", "pipe", "imported", "manifest"],
)
def test_what_no_build_contains_is_refused(
    home: Home, progress: Silent, stand: Stand, versions: Pins, install: str, says: str
) -> None:
    versions()
    packed(stand, home, install=install)
    with pytest.raises(CompileError, match=says):
        provide(BuildRequest(RELEASE), home, progress)
    assert store.all_builds(home) == []


def test_a_failed_configure_gives_no_file_of_roots_away(
    home: Home, progress: Silent, stand: Stand, versions: Pins, server_folder: Path
) -> None:
    versions()
    secret = server_folder / "secret"
    secret.write_text("hunter2")
    secret.chmod(0o600)
    packed(
        stand,
        home,
        configure=f"ln -s {secret} config.log; mkdir -p a/CMakeFiles\n"
        f"ln -s {secret} a/CMakeFiles/CMakeError.log; exit 1",
    )
    with pytest.raises(CompileError):
        provide(BuildRequest(RELEASE), home, progress)
    assert not [path for path in home.logs.iterdir() if "hunter2" in path.read_text()]


def test_answers_that_are_a_link_are_not_kept(
    home: Home, progress: Silent, stand: Stand, versions: Pins, server_folder: Path
) -> None:
    versions()
    secret = server_folder / "secret"
    secret.write_text("hunter2")
    secret.chmod(0o600)
    packed(stand, home, configure=f'rm -f "$cache_file"; ln -s {secret} "$cache_file"')
    provide(BuildRequest(RELEASE, slim=()), home, progress)
    assert not home.answers.exists() or not list(home.answers.iterdir())


def test_a_patch_cannot_change_what_later_compiles_take_from_ccache(
    home: Home, progress: Silent, stand: Stand, versions: Pins, open_folder: Path, tmp_path: Path
) -> None:
    if shutil.which("ccache") is None:
        pytest.skip("ccache is not installed")
    versions()
    writes = (
        f'touch "$CCACHE_DIR/x" && echo "$CCACHE_READONLY" >>{open_folder}/written; rm -f "$CCACHE_DIR/x"'
    )
    packed(stand, home, configure=writes)
    provide(BuildRequest(RELEASE), home, progress)
    assert (open_folder / "written").read_text() == "\n"
    before = {path for path in home.ccache.rglob("*") if path.is_file()}
    patch = tmp_path / "a.patch"
    patch.write_text("--- a/src/part.c\n+++ b/src/part.c\n@@ -1 +1,2 @@\n int part;\n+int patched;\n")
    provide(BuildRequest(RELEASE, patches=(patch,)), home, progress)
    assert (open_folder / "written").read_text() == "\n", "the patched one could not"
    assert {path for path in home.ccache.rglob("*") if path.is_file()} == before
    packed(stand, home, configure=writes, release="18.98")
    provide(BuildRequest(parse_version("postgres@18.98")), home, progress)
    assert (open_folder / "written").read_text() == "\n\n", "the next release can again"


def test_servers_cannot_enter_ccache_or_the_folders_of_a_compile(
    home: Home, progress: Silent, stand: Stand, versions: Pins, open_folder: Path
) -> None:
    versions()
    packed(stand, home, configure=f"stat -c '%a %n' ../../build-* >{open_folder}/mode")
    provide(BuildRequest(RELEASE), home, progress)
    server = accounts.become(accounts.server_account())
    for words in (["ls", str(home.ccache)], ["touch", str(home.ccache / "x")]):
        assert subprocess.run([*server, *words], capture_output=True, check=False).returncode != 0
    assert (open_folder / "mode").read_text().startswith("710 ")


def test_a_folder_that_the_user_cannot_reach_is_named(
    progress: Silent, stand: Stand, versions: Pins, tmp_path: Path
) -> None:
    versions(r18_99=stand.tarball(tmp_path / "home/sources" / TARBALL))
    (tmp_path / "home").chmod(0o700)
    with pytest.raises(TidemarkError) as caught:
        provide(BuildRequest(RELEASE), Home(tmp_path / "home"), progress)
    assert "the user tidemark-build has no access to" in caught.value.what
    assert "chmod o+x" in caught.value.hint


def test_the_user_of_compiles_runs_no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEMARK_USER", accounts.COMPILE_USER)
    with pytest.raises(accounts.AccountError, match="the server user is the one that compiles"):
        accounts.server_account()
