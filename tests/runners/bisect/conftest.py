"""A history of commits, made once, and a made-up machine to search it on."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from build.home import Home
from history.open import open_store
from runners.bisect.domain.question import Question
from runners.bisect.domain.rules import SearchVerdict
from runners.bisect.report.state import BisectState
from runners.bisect.run.event_log import Log
from tests.plain_repository import PlainRepository
from tests.runners.bisect.stand import QPS, Stand, a_question, version_of


@dataclass(frozen=True)
class Line:
    """A repository with 16 commits of code after the first, and some of documentation between them."""

    repository: PlainRepository
    good: str
    code: tuple[str, ...]

    def rates(self, *steps: tuple[int, float]) -> dict[str, float]:
        """Throughput by version; from each position on it is so many times what it was before."""
        found = {}
        for place, commit in enumerate((self.good, *self.code)):
            found[version_of(commit)] = QPS * math.prod(size for at, size in steps if place >= at)
        return found

    def version(self, position: int) -> str:
        """Of a candidate."""
        return version_of(self.code[position - 1])


SLOWER = 0.85
"""What a culprit leaves of the throughput."""


def asked(line: Line, **changes: Any) -> Question:
    """About the whole line."""
    return a_question(line.good, line.code[-1], **changes)


def verdict_of(log: Log) -> SearchVerdict:
    """That there has to be."""
    verdict = BisectState(log).verdict
    assert verdict is not None
    return verdict


@pytest.fixture(scope="session")
def line(tmp_path_factory: pytest.TempPathFactory) -> Line:
    repository = PlainRepository(tmp_path_factory.mktemp("line") / "repository")
    good = repository.commit("src/a.c", "As it was")
    code = []
    for number in range(1, 17):
        if number % 5 == 0:
            repository.commit("doc/a.sgml", f"doc {number}")
        code.append(repository.commit("src/a.c", f"Change {number}\n\n<b>@someone</b> | `said`"))
    return Line(repository, good, tuple(code))


@pytest.fixture(scope="session")
def mirrors(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the history is fetched into, once."""
    return tmp_path_factory.mktemp("sources")


@pytest.fixture
def stand(line: Line, tmp_path: Path, mirrors: Path) -> Iterator[Callable[..., Stand]]:
    """Makes machines on one history; `steps` as Line.rates has them."""
    stores = []

    def made(*steps: tuple[int, float], **changes: Any) -> Stand:
        store = open_store(tmp_path / "history.db")
        stores.append(store)
        rates = changes.pop("rates", None) or line.rates(*steps)
        address = changes.pop("address", str(line.repository.path))
        home = Home(tmp_path / "home")
        home.path.mkdir(exist_ok=True)
        if not home.sources.exists():
            home.sources.symlink_to(mirrors)
        return Stand(tmp_path, rates, store, home, address, **changes)

    yield made
    for store in stores:
        store.close()
