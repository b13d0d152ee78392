"""What is shown of a compile that failed, and what is kept of it."""

import subprocess
from pathlib import Path

import pytest

from build.cache import store
from build.compile_commands import CompileError
from build.home import Home
from build.progress import Silent
from build.provide import provide
from build.request import BuildRequest
from build.sources.download import sha256_of
from tests.build.stand import Pins, Stand
from tests.build.test_provide import RELEASE, TARBALL, leftovers


def test_a_program_that_says_no_error_is_shown_with_its_last_words(
    home: Home, progress: Silent, stand: Stand, versions: Pins
) -> None:
    versions(r18_99=stand.tarball(home.sources / TARBALL, before="@seq 100; exit 3"))
    with pytest.raises(CompileError) as caught:
        provide(BuildRequest(RELEASE), home, progress)
    what, log = caught.value.what.splitlines(), Path(caught.value.where)
    assert what[0] == "postgres@18.99: compile src failed (exit status 2); the first error in the log:"
    assert what[1:9] == [str(number) for number in range(93, 101)]
    assert what[9].startswith("make: *** [Makefile:")
    assert log.parent == home.logs
    assert "\n1\n2\n" in log.read_text()
    assert leftovers(home) == []
    assert store.all_builds(home) == []


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_failed_compile_shows_its_first_error(
    home: Home, progress: Silent, stand: Stand, versions: Pins, jobs: int
) -> None:
    """And not what many lines later its log ends with."""
    before = "@echo 'part.c:7:1: error: the cause'; seq 100; exit 3"
    versions(r18_99=stand.tarball(home.sources / TARBALL, before=before))
    with pytest.raises(CompileError) as caught:
        provide(BuildRequest(RELEASE), home, progress, jobs=jobs)
    what = caught.value.what.splitlines()
    assert what[0] == "postgres@18.99: compile src failed (exit status 2); the first error in the log:"
    assert what.count("part.c:7:1: error: the cause") == 1
    assert what[-8:] == [str(number) for number in range(1, 9)]


def test_what_configure_noted_outlives_its_folder(
    home: Home, progress: Silent, stand: Stand, versions: Pins
) -> None:
    stand.write()
    configure = stand.folder / "configure"
    check = "configure:9: checking for ssl\nconftest.c:1: error: no ssl.h\nconfigure:12: error: no ssl\n"
    noting = f"printf '{check}' >config.log\necho 'configure: error: no ssl'; seq 100; exit 1\n"
    configure.write_text(configure.read_text() + noting)
    home.sources.mkdir(parents=True)
    command = ["tar", "-cjf", str(home.sources / TARBALL), "-C", str(stand.folder.parent), stand.folder.name]
    subprocess.run(command, check=True)
    versions(r18_99=sha256_of(home.sources / TARBALL))
    with pytest.raises(CompileError) as caught:
        provide(BuildRequest(RELEASE), home, progress)
    what = caught.value.what.splitlines()
    kept = Path(caught.value.where).with_suffix(".config.log")
    assert what[0] == "postgres@18.99: configure failed (exit status 1); the first error in the log:"
    assert "configure: error: no ssl" in what
    assert what[-3:] == [*check.splitlines()[:2], f"config.log is kept: {kept}"]
    assert kept.read_text() == check
    assert leftovers(home) == []
