"""From a version to a build, on the stand-in: once, whole, or not at all."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from build.cache import store
from build.compile_commands import CompileError
from build.home import ROOT, Home
from build.host import HostError
from build.progress import Silent
from build.provide import find, provide
from build.recipes.recipe import PLAIN
from build.request import BuildRequest
from build.sources.download import sha256_of
from build.sources.patching import PatchError
from build.version import parse_version
from tests.build.stand import Pins, Repository, Stand, Web

RELEASE = parse_version("postgres@18.99")
TARBALL = "postgresql-18.99.tar.bz2"

# In the background of a shell SIGINT is ignored; the program undoes that for itself.
CHILD = """
import signal
import sys
from pathlib import Path
from build import host
from build.request import BuildRequest
from build.sources import releases
from build.home import Home
from build.provide import provide
from build.progress import Silent
from build.version import parse_version
signal.signal(signal.SIGINT, signal.default_int_handler)
releases.VERSIONS = Path(sys.argv[1])
host.has_library = lambda name: False
progress = Silent()
request = BuildRequest(parse_version("postgres@18.99"))
build = provide(request, Home(Path(sys.argv[2])), progress, use_ccache=False)
print(build.prefix, *progress.notes, sep="\\n")
"""


def child(versions: Path, home: Home) -> subprocess.Popen[str]:
    """Another process that wants the same build."""
    command = [sys.executable, "-c", CHILD, str(versions), str(home.path)]
    return subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": "."}
    )


def written_pid(path: Path) -> int:
    """The process id that a compile under way writes into `path`."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        if path.exists() and (text := path.read_text()).endswith("\n"):
            return int(text)
        time.sleep(0.02)
    raise AssertionError("the compile did not start")


def leftovers(home: Home) -> list[Path]:
    """What a finished or failed compile must not leave."""
    folders = [*home.scratch.iterdir(), *home.builds.iterdir()]
    kept = (".locks", ".used")
    return [path for path in folders if path.name not in kept and not (path / store.MANIFEST).exists()]


def test_the_first_time_compiles_and_the_second_finds(
    home: Home, progress: Silent, stand: Stand, versions: Pins
) -> None:
    versions(r18_99=stand.tarball(home.sources / TARBALL))
    assert find(BuildRequest(RELEASE), home) is None
    first = provide(BuildRequest(RELEASE), home, progress)
    (home.sources / TARBALL).unlink()
    second = provide(BuildRequest(RELEASE), home, progress)
    assert find(BuildRequest(RELEASE), home) == first == second
    assert stand.times_configured() == 1
    assert first.release == "18.99"
    assert first.prefix.parent == home.builds
    assert first.prefix.name == f"postgres-18.99-{first.key[:12]}"
    assert first.program("psql").exists()
    assert progress.notes[-1].startswith("postgres@18.99: from the build cache")
    assert leftovers(home) == []


def test_the_manifest_says_how_the_build_came_about(
    home: Home, progress: Silent, stand: Stand, versions: Pins
) -> None:
    digest = stand.tarball(home.sources / TARBALL)
    versions(r18_99=digest)
    build = provide(BuildRequest(RELEASE), home, progress, use_ccache=False)
    manifest = json.loads((build.prefix / "build.json").read_text())
    assert manifest == build.manifest.to_json()
    assert manifest["source"] == {"kind": "cache", "location": TARBALL, "digest": f"sha256:{digest}"}
    assert manifest["key"] == build.key
    assert manifest["version"] == "postgres@18.99"
    assert manifest["compile_commands"] == 6  # src, config and four contrib modules.
    assert manifest["ccache"] is False
    assert set(manifest["host"]) == {"os", "architecture", "glibc"}
    assert manifest["compiler"]["target"]
    assert manifest["seconds"]["total"] >= manifest["seconds"]["configure"]


def test_everything_can_be_read_by_other_users(
    home: Home, progress: Silent, stand: Stand, versions: Pins
) -> None:
    versions(r18_99=stand.tarball(home.sources / TARBALL))
    before = os.umask(0o077)
    try:
        build = provide(BuildRequest(RELEASE), home, progress)
    finally:
        os.umask(before)
    assert all(path.stat().st_mode & 0o044 == 0o044 for path in [build.prefix, *build.prefix.rglob("*")])
    assert all(path.stat().st_mode & 0o001 for path in [home.path, home.builds, build.prefix / "bin"])


def test_flags_of_the_caller_do_not_leak_in(
    home: Home, progress: Silent, stand: Stand, versions: Pins, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("CFLAGS", "MAKEFLAGS", "LDFLAGS"):
        monkeypatch.setenv(name, "--no-such-flag")
    versions(r18_99=stand.tarball(home.sources / TARBALL, before='@test -z "$$CFLAGS$$LDFLAGS"'))
    provide(BuildRequest(RELEASE), home, progress)


@pytest.mark.parametrize(
    "before",
    [
        "@test -e tried || { touch tried; exit 3; }",
        '@case "$$MAKEFLAGS" in *-j2*) exit 3;; esac',
    ],
    ids=["once", "with two jobs"],
)
def test_a_compile_that_fails_where_its_parts_do_not_wait_for_each_other_is_repeated(
    home: Home, progress: Silent, stand: Stand, versions: Pins, before: str
) -> None:
    versions(r18_99=stand.tarball(home.sources / TARBALL, before=before))
    provide(BuildRequest(RELEASE), home, progress, jobs=2)


def test_an_install_that_leaves_something_out_has_failed(
    home: Home, progress: Silent, stand: Stand, versions: Pins
) -> None:
    stand.write()
    module = stand.folder / "contrib/pgstattuple/Makefile"
    module.write_text(module.read_text().replace("cp part.o", "true"))
    home.sources.mkdir(parents=True)
    command = ["tar", "-cjf", str(home.sources / TARBALL), "-C", str(stand.folder.parent), stand.folder.name]
    subprocess.run(command, check=True)
    versions(r18_99=sha256_of(home.sources / TARBALL))
    with pytest.raises(CompileError, match=r"not installed: lib/pgstattuple\.so"):
        provide(BuildRequest(RELEASE), home, progress)


def test_patches_are_applied_and_make_another_build(
    home: Home, progress: Silent, stand: Stand, versions: Pins, tmp_path: Path
) -> None:
    versions(r18_99=stand.tarball(home.sources / TARBALL))
    patch = tmp_path / "part.patch"
    patch.write_text("--- a/src/part.c\n+++ b/src/part.c\n@@ -1 +1 @@\n-int part;\n+#error patched\n")
    plain = provide(BuildRequest(RELEASE), home, progress)
    with pytest.raises(CompileError, match="#error patched"):
        provide(BuildRequest(RELEASE, patches=(patch,)), home, progress)
    patch.write_text("--- a/src/part.c\n+++ b/src/part.c\n@@ -1 +1 @@\n-int part;\n+int patched;\n")
    patched = provide(BuildRequest(RELEASE, patches=(patch,)), home, progress)
    assert patched.key != plain.key
    assert [patch.name for patch in patched.manifest.patches] == ["part.patch"]
    assert find(BuildRequest(RELEASE), home) == plain
    assert find(BuildRequest(RELEASE, patches=(patch,)), home) == patched


def test_choices_reach_configure_and_make_another_build(
    home: Home, progress: Silent, stand: Stand, versions: Pins
) -> None:
    versions(r18_99=stand.tarball(home.sources / TARBALL))
    plain = provide(BuildRequest(RELEASE), home, progress)
    choices = PLAIN.plus("CFLAGS", "-O3").plus("configure", "--with-llvm")
    chosen = provide(BuildRequest(RELEASE, choices=choices), home, progress)
    assert chosen.key != plain.key
    assert chosen.manifest.choices == {"CFLAGS": "-O3", "configure": ["--with-llvm"]}
    assert not plain.manifest.choices
    log = home.logs / f"build-postgres-18.99-{chosen.key[:12]}.log"
    assert "CFLAGS=-O2 -fno-omit-frame-pointer -g -O3 --with-llvm" in log.read_text()
    assert find(BuildRequest(RELEASE), home) == plain
    assert find(BuildRequest(RELEASE, choices=choices), home) == chosen


def test_the_compiler_of_a_choice_compiles(
    home: Home, progress: Silent, stand: Stand, versions: Pins
) -> None:
    versions(r18_99=stand.tarball(home.sources / TARBALL))
    build = provide(BuildRequest(RELEASE, choices=PLAIN.plus("CC", "cc")), home, progress)
    assert build.manifest.compiler.command == "cc"
    with pytest.raises(HostError, match="'no-such-cc' is missing"):
        provide(BuildRequest(RELEASE, choices=PLAIN.plus("CC", "no-such-cc")), home, progress)


def test_a_patch_that_does_not_apply_names_file_and_hunk(
    home: Home, progress: Silent, stand: Stand, versions: Pins, tmp_path: Path
) -> None:
    versions(r18_99=stand.tarball(home.sources / TARBALL))
    patch = tmp_path / "old.patch"
    patch.write_text("--- a/src/part.c\n+++ b/src/part.c\n@@ -1 +1 @@\n-int other;\n+int more;\n")
    with pytest.raises(
        PatchError, match=r"old\.patch does not apply to postgres@18\.99: the hunk at src/part\.c:1"
    ):
        provide(BuildRequest(RELEASE, patches=(patch,)), home, progress)
    assert leftovers(home) == []


def test_patches_apply_below_somebody_elses_git_checkout(
    home: Home, progress: Silent, stand: Stand, versions: Pins, tmp_path: Path
) -> None:
    subprocess.run(["git", "init", "--quiet", str(home.path.parent)], check=True)
    versions(r18_99=stand.tarball(home.sources / TARBALL))
    patch = tmp_path / "part.patch"
    patch.write_text("--- a/src/part.c\n+++ b/src/part.c\n@@ -1 +1 @@\n-int part;\n+#error patched\n")
    with pytest.raises(CompileError, match="#error patched"):
        provide(BuildRequest(RELEASE, patches=(patch,)), home, progress)


def test_a_patch_cannot_write_outside_the_tree(
    home: Home, progress: Silent, stand: Stand, versions: Pins, tmp_path: Path
) -> None:
    versions(r18_99=stand.tarball(home.sources / TARBALL))
    patch = tmp_path / "evil.patch"
    patch.write_text("--- /dev/null\n+++ b/../../escaped\n@@ -0,0 +1 @@\n+x\n")
    with pytest.raises(PatchError):
        provide(BuildRequest(RELEASE, patches=(patch,)), home, progress)


@pytest.mark.deep("hundreds of texts that hypothesis draws")
def test_two_processes_make_one_build(home: Home, stand: Stand, versions: Pins) -> None:
    path = versions(r18_99=stand.tarball(home.sources / TARBALL, before="@sleep 0.5"))
    both = [child(path, home), child(path, home)]
    said = [process.communicate(timeout=60)[0].splitlines() for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert said[0][0] == said[1][0]
    assert stand.times_configured() == 1
    assert "the same build is being compiled already; waiting" in "\n".join(said[0] + said[1])


@pytest.mark.deep("hundreds of texts that hypothesis draws")
def test_a_build_is_never_half_visible(home: Home, stand: Stand, versions: Pins) -> None:
    path = versions(r18_99=stand.tarball(home.sources / TARBALL, before="@sleep 0.2"))
    process = child(path, home)
    while process.poll() is None:
        names = list(home.builds.glob("postgres-*"))
        assert all(
            (name / "build.json").exists() and (name / "lib/pgstattuple.so").exists() for name in names
        )
        time.sleep(0.002)
    process.communicate()
    assert process.returncode == 0


def test_ctrl_c_ends_the_compile_and_leaves_nothing(
    home: Home, stand: Stand, versions: Pins, open_folder: Path
) -> None:
    path = versions(
        r18_99=stand.tarball(home.sources / TARBALL, before=f"@echo $$$$ >{open_folder}/pid; sleep 60")
    )
    process = child(path, home)
    shell = written_pid(open_folder / "pid")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=20)
    assert leftovers(home) == []
    # Init reaps what was killed when it has time.
    assert not psutil.pid_exists(shell) or psutil.Process(shell).status() == psutil.STATUS_ZOMBIE


def test_what_a_killed_process_left_does_not_matter(
    home: Home, progress: Silent, stand: Stand, versions: Pins, open_folder: Path
) -> None:
    # The recipe's shell is a child of make, which leads the group.
    before = f"@test -e {open_folder}/go || {{ echo $$PPID >{open_folder}/pid; sleep 60; }}"
    path = versions(r18_99=stand.tarball(home.sources / TARBALL, before=before))
    process = child(path, home)
    make = written_pid(open_folder / "pid")
    process.kill()
    process.communicate()
    assert leftovers(home)
    os.killpg(make, signal.SIGKILL)
    (open_folder / "go").touch()
    provide(BuildRequest(RELEASE), home, progress)
    assert leftovers(home) == []


def test_two_names_of_one_commit_share_a_build(home: Home, progress: Silent, repository: Repository) -> None:
    commit = repository.commit("one", release="19devel")
    repository.git("tag", "v1")
    address = str(repository.path)
    by_branch = provide(BuildRequest(parse_version("postgres@main"), git_source=address), home, progress)
    by_tag = provide(BuildRequest(parse_version("postgres@v1"), git_source=address), home, progress)
    assert by_branch.key == by_tag.key
    assert (str(by_branch.version), str(by_tag.version)) == ("postgres@main", "postgres@v1")
    assert by_branch.release == "19devel"
    assert by_branch.manifest.source.commit == commit
    assert repository.stand.times_configured() == 1
    assert find(BuildRequest(parse_version(f"postgres@{commit}"), git_source=address), home) is not None
    assert find(BuildRequest(parse_version("postgres@main"), git_source=address), home) is None


def test_a_release_made_from_git_is_found_again(
    home: Home, progress: Silent, repository: Repository, versions: Pins
) -> None:
    versions(r18_99="0" * 64)
    repository.commit("one", release="18.99")
    repository.git("tag", "REL_18_99")
    address = str(repository.path)
    build = provide(BuildRequest(RELEASE, git_source=address), home, progress)
    assert build.manifest.source.kind == "git"
    assert find(BuildRequest(RELEASE, git_source=address), home) == build
    assert find(BuildRequest(RELEASE), home) is None


def test_ccache_serves_a_second_compile_from_another_folder(
    home: Home, stand: Stand, versions: Pins, monkeypatch: pytest.MonkeyPatch
) -> None:
    if subprocess.run(["ccache", "--version"], capture_output=True, check=False).returncode != 0:
        pytest.skip("ccache is not installed")
    monkeypatch.setenv("CCACHE_DIR", str(home.ccache))
    versions(
        r18_99=stand.tarball(home.sources / TARBALL),
        r18_98=stand.tarball(home.sources / "postgresql-18.98.tar.bz2", "18.98"),
    )
    first = provide(BuildRequest(RELEASE), home, Silent())
    provide(BuildRequest(parse_version("postgres@18.98")), home, Silent())
    told = subprocess.run(["ccache", "--print-stats"], capture_output=True, text=True, check=True).stdout
    stats = dict(line.split("\t") for line in told.splitlines())
    assert first.manifest.ccache is True
    assert int(stats["direct_cache_hit"]) + int(stats["preprocessed_cache_hit"]) >= 6


def test_a_damaged_manifest_is_named(home: Home, progress: Silent, stand: Stand, versions: Pins) -> None:
    versions(r18_99=stand.tarball(home.sources / TARBALL))
    build = provide(BuildRequest(RELEASE), home, progress)
    (build.prefix / "build.json").write_text("{")
    with pytest.raises(store.StoreError, match=r"build\.json"):
        find(BuildRequest(RELEASE), home)


def test_a_build_that_somebody_began_to_delete_is_made_again(
    home: Home, progress: Silent, stand: Stand, versions: Pins
) -> None:
    versions(r18_99=stand.tarball(home.sources / TARBALL))
    build = provide(BuildRequest(RELEASE), home, progress)
    (build.prefix / "build.json").unlink()
    assert provide(BuildRequest(RELEASE), home, progress).program("psql").exists()
    assert stand.times_configured() == 2


def test_all_builds_are_listed_in_order(
    home: Home, progress: Silent, stand: Stand, versions: Pins, web: Web
) -> None:
    versions(
        **{
            f"r{release}": stand.tarball(home.sources / f"postgresql-{release}.tar.bz2", release)
            for release in ("18.99", "17.5", "18.100")
        }
    )
    for release in ("18.99", "17.5", "18.100"):
        provide(BuildRequest(parse_version(f"postgres@{release}")), home, progress)
    assert [build.release for build in store.all_builds(home)] == ["17.5", "18.99", "18.100"]
    assert not web.asked
