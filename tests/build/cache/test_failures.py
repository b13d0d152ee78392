"""What does not compile is remembered, and forgotten when it may compile."""

import json
from pathlib import Path

import pytest

from build.cache import earlier_compiles
from build.cache.earlier_compiles import compiler_errors
from build.compile_commands import CompileError
from build.home import Home
from build.progress import Silent
from build.provide import provide
from build.request import BuildRequest
from build.version import parse_version
from tests.build.stand import Pins, Stand

RELEASE = parse_version("postgres@18.99")
BROKEN = "int part\n"


def compile_it(home: Home, *, again: bool = False) -> CompileError:
    with pytest.raises(CompileError) as caught:
        provide(BuildRequest(RELEASE), home, Silent(), use_ccache=False, again=again)
    return caught.value


@pytest.fixture
def broken(stand: Stand, home: Home, versions: Pins) -> Stand:
    """A release whose source has an error."""
    digest = stand.tarball(home.sources / "postgresql-18.99.tar.bz2", part=BROKEN)
    versions(r18_99=digest)
    return stand


@pytest.mark.deep("damaged builds are compiled again, by real compilers")
def test_it_is_not_compiled_twice_unless_somebody_asks(broken: Stand, home: Home) -> None:
    first = compile_it(home)
    assert broken.times_configured() == 1
    second = compile_it(home)
    assert broken.times_configured() == 1
    assert (second.what, second.where) == (first.what, first.where)
    assert "./tidemark build postgres@18.99 tries again" in second.hint
    complaints = compiler_errors(first)
    assert complaints
    assert "error: expected" in complaints[0]
    Path(first.where).unlink()  # logs may be deleted
    assert compiler_errors(compile_it(home)) == complaints
    compile_it(home, again=True)
    assert broken.times_configured() == 2


def test_an_error_that_is_gone_when_make_is_repeated_is_no_reason(
    stand: Stand, home: Home, versions: Pins
) -> None:
    """What one attempt has generated, the next one finds."""
    missing = "part.c:1:1: fatal error: generated.h: No such file or directory"
    before = f"@test -e attempted || {{ touch attempted; echo '{missing}'; exit 1; }}"
    digest = stand.tarball(home.sources / "postgresql-18.99.tar.bz2", part=BROKEN, before=before)
    versions(r18_99=digest)
    with pytest.raises(CompileError) as caught:
        provide(BuildRequest(RELEASE), home, Silent(), use_ccache=False, jobs=2)
    assert missing in Path(caught.value.where).read_text()
    complaints = compiler_errors(caught.value)
    assert complaints
    assert not [complaint for complaint in complaints if "generated.h" in complaint]


def test_another_package_is_a_reason_to_try_again(
    broken: Stand, home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compile_it(home)
    monkeypatch.setattr(earlier_compiles, "INSTALLED", (str(tmp_path),))
    compile_it(home)
    assert broken.times_configured() == 2


@pytest.mark.parametrize("text", ["", "[", "[]", '{"key": 1}', "\x00", '{"key": "' + "0" * 64 + '"}'])
def test_a_damaged_file_is_no_reason_not_to_try(text: str, broken: Stand, home: Home) -> None:
    compile_it(home)
    (kept,) = home.failures.iterdir()
    assert json.loads(kept.read_text())["key"] == kept.stem
    kept.write_text(text)
    compile_it(home)
    assert broken.times_configured() == 2


@pytest.mark.parametrize("lines", [1, 100])
def test_a_failure_of_the_machine_is_not_remembered(
    lines: int, stand: Stand, home: Home, versions: Pins
) -> None:
    """However far above the end of the log it is said."""
    more = f"seq {lines} | sed 's/^/part.c:1:1: error: of another file: /'"
    before = f"@echo 'part.c:1:1: error: cannot write: No space left on device'; {more}; false"
    versions(r18_99=stand.tarball(home.sources / "postgresql-18.99.tar.bz2", before=before))
    compile_it(home)
    compile_it(home)
    assert stand.times_configured() == 2
