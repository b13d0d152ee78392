"""What a bisect compiles: slim builds, or whole ones where those cannot be made."""

import contextlib
from collections.abc import Sequence
from pathlib import Path

import pytest

from build.compile_commands import CompileError
from build.finished_build import Build
from build.home import Home
from build.progress import Silent
from build.recipes.recipe import PLAIN
from build.request import BuildRequest
from build.version import parse_version
from runners.bisect.run import builds
from runners.bisect.run.builds import provider
from suites.additions.variant import Variant
from tests.manifests import a_manifest

PATCH = Path("/srv/fix.patch")
VARIANT = Variant({}, PLAIN.plus("CFLAGS", "-O3"), (PATCH,))
VERSION = parse_version("postgres@git:0123456789ab")


class Compiles:
    """Compiles that fail when they are slim; what was asked for, in order."""

    def __init__(self, failure: CompileError) -> None:
        self.failure = failure
        self.slim: list[Sequence[str] | None] = []

    def __call__(self, request: BuildRequest, home: Home, progress: object) -> Build:
        assert not request.relinks
        self.slim.append(request.slim)
        assert (request.patches, request.choices) == ((PATCH,), VARIANT.build)
        if request.slim is not None:
            raise self.failure
        return Build(request.version, "18.99", "key", Path("/nowhere"), a_manifest())


def asked_for(
    failure: CompileError, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> list[Sequence[str] | None]:
    compiles = Compiles(failure)
    monkeypatch.setattr(builds, "provide", compiles)
    provided = provider(Home(tmp_path), Silent(), ("pgbench",), VARIANT)
    with contextlib.suppress(CompileError):
        assert provided(VERSION, None).key == "key"
    return compiles.slim


def test_a_source_that_is_laid_out_differently_is_compiled_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "log"
    log.write_text("make: *** src/pl/plpgsql/src: No such file or directory.  Stop.\n")
    failure = CompileError("compile src/pl/plpgsql/src failed (exit status 2)", where=str(log))
    assert asked_for(failure, tmp_path, monkeypatch) == [("pgbench",), None]


@pytest.mark.parametrize(
    ("line", "what"),
    [("a.c:7:1: error: expected ';'", "compile failed"), ("", "cc: No space left on device")],
    ids=["the commit", "the machine"],
)
def test_what_would_fail_again_is_not_compiled_again(
    line: str, what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "log"
    log.write_text(f"{line}\n")
    assert asked_for(CompileError(what, where=str(log)), tmp_path, monkeypatch) == [("pgbench",)]
