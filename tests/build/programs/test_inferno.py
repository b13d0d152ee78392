"""Which cargo compiles inferno, and what is told where none does."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from build.home import Home
from build.inferno import CRATES, PROGRAMS, VERSION, InfernoError, provide_inferno
from build.progress import ProgressTask, Silent, SilentTask

SHIM = 'echo "error: rustup could not choose a version of cargo to run" >&2; exit 1'

WORKING = f"""[ "$1" = --version ] && exit 0
root=; while [ $# -gt 0 ]; do [ "$1" = --root ] && root=$2; shift; done
mkdir -p "$root/bin"; for name in {" ".join(PROGRAMS)}; do echo "$0" >"$root/bin/$name"; done
"""

FAILING = """[ "$1" = --version ] && exit 0
echo "   Compiling inferno" >&2
echo "error: linker cc not found" >&2
seq -f "  %g: core::panicking::panic" 1 40 >&2
exit 101
"""


def cargo(folder: Path, script: str) -> Path:
    folder.mkdir()
    (folder / "cargo").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "cargo").chmod(0o755)
    return folder


@pytest.fixture(autouse=True)
def _no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))


def use(monkeypatch: pytest.MonkeyPatch, *folders: Path) -> None:
    """Find cargo in `folders` alone."""
    for tool in ("sh", "mkdir", "seq"):
        (folders[-1] / tool).symlink_to(shutil.which(tool) or "")
    monkeypatch.setenv("PATH", os.pathsep.join(map(str, folders)))


def test_a_cargo_without_a_toolchain_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shim, working = cargo(tmp_path / "shim", SHIM), cargo(tmp_path / "working", WORKING)
    use(monkeypatch, shim, working)
    folder = provide_inferno(Home(tmp_path / "home"), Silent())
    assert (folder / PROGRAMS[0]).read_text() == f"{working}/cargo\n"


def test_a_cargo_that_does_not_work_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shim = cargo(tmp_path / "shim", SHIM)
    use(monkeypatch, shim)
    with pytest.raises(InfernoError) as caught:
        provide_inferno(Home(tmp_path / "home"), Silent())
    assert caught.value.what == "compiling inferno needs Rust, and cargo is not installed"
    reason = "error: rustup could not choose a version of cargo to run"
    assert caught.value.where == f"{shim}/cargo does not work: {reason}"
    assert "cargo-web" in caught.value.hint


def test_a_failed_compile_tells_its_first_error_and_no_end_of_a_backtrace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, cargo(tmp_path / "failing", FAILING))
    with pytest.raises(InfernoError) as caught:
        provide_inferno(Home(tmp_path / "home"), Silent())
    assert caught.value.what.startswith(f"inferno {VERSION} could not be compiled; cargo said:\n")
    assert "\nerror: linker cc not found\n" in caught.value.what
    assert "40: core::panicking" not in caught.value.what
    assert not caught.value.hint


def test_the_crates_that_are_compiled_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    crates = 'printf "   Compiling libc v1\\n  Downloaded x\\n   Compiling inferno v0\\n" >&2\n'
    use(monkeypatch, cargo(tmp_path / "working", crates + WORKING))
    seen: list[float] = []

    class Shown(Silent):
        @contextmanager
        def task(self, label: str, total: float | None = None, unit: str = "") -> Iterator[ProgressTask]:
            assert (total, unit) == (CRATES, "crates")
            yield Counting()

    class Counting(SilentTask):
        def update(self, done: float, total: float | None = None) -> None:
            seen.append(done)

    provide_inferno(Home(tmp_path / "home"), Shown())
    assert seen[-2:] == [1, 2]
