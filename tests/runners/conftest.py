"""A good machine of files, as the checks read it, and a history with a regression."""

import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from build.sources.releases import Published
from runners.fitness import storage
from runners.fitness.checked_machine import CheckedMachine
from runners.nightly.releases import new_releases
from tests.history.watched import record_regression
from tests.runners.fitness.fake_kernel import NOW, FakeKernel, Usage, a_good_machine


def no_programs(words: Sequence[str]) -> str:
    raise OSError(f"{words[0]} gave no answer")


@pytest.fixture
def kernel(tmp_path: Path) -> FakeKernel:
    return a_good_machine(tmp_path / "root")


@pytest.fixture
def machine(kernel: FakeKernel, tmp_path: Path) -> CheckedMachine:
    (tmp_path / "home").mkdir()
    return CheckedMachine(
        tmp_path / "home",
        kernel,
        which=lambda name: f"/usr/bin/{name}",
        run_program=no_programs,
        now=lambda: NOW,
        is_root=False,
        sample_seconds=0.01,
    )


@pytest.fixture(scope="session")
def regressed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A history in which the judge has found a regression of 7 %: not to be written to."""
    path = tmp_path_factory.mktemp("history") / "history.db"
    record_regression(path, judged=True)
    return path


@pytest.fixture(autouse=True)
def no_new_releases(monkeypatch: pytest.MonkeyPatch) -> None:
    """No night of these tests asks the internet which releases are out."""
    known = Published(frozenset(), ("a stand-in",), ("not asked",))
    monkeypatch.setattr(new_releases, "published_releases", lambda *_: known)


@pytest.fixture
def quick_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """What depends on the real disk must not decide these tests."""
    monkeypatch.setattr(storage, "flush_seconds", lambda folder: [0.001] * 20)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(10**12, 9 * 10**11))
