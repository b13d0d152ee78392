"""What is said of a search before anything is compiled."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from build.cache import store
from build.finished_build import Build
from build.home import Home
from build.version import Engine
from runners.bisect.run import expected
from runners.bisect.run.expected import compiles_of
from tests.history.handmade import a_build
from tests.manifests import a_manifest
from tests.runners.bisect.conftest import Line
from tests.runners.bisect.stand import Stand, a_question


@pytest.mark.parametrize(
    ("candidates", "built", "compiles"), [(1, 0, 2), (2, 0, 3), (20, 0, 7), (20, 19, 2), (20, 21, 0)]
)
def test_compiles_of_a_range(candidates: int, built: int, compiles: int) -> None:
    assert compiles_of(candidates, built) == compiles


def test_a_search_begins_with_what_it_takes(
    stand: Callable[..., Stand], line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = stand((11, 0.7))
    monkeypatch.setattr(expected, "compile_seconds", lambda *_, **__: 120.0)
    machine.bisect(a_question(line.good[:12], line.code[-1][:12]), budget_seconds=240.0)
    (told,) = (note for note in machine.progress.notes if note.startswith("expected: "))
    compiles = compiles_of(len(line.code), 0)
    assert told == (
        f"expected: {len(line.code)} candidates, about {compiles} compiles (about {2 * compiles} min), "
        "measured until one is certain; within a budget of 4 min"
    )


def test_compiles_of_extensions_are_no_compiles_of_servers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def built(seconds: float, *extensions: str, day: int = 1, **about: Any) -> Build:
        manifest = a_manifest(
            seconds={"total": seconds},
            built_at=f"2026-03-{day:02}T00:00:00+00:00",
            extensions=[{"name": name, "creates": name} for name in extensions],
            **about,
        )
        return replace(a_build(), manifest=manifest)

    home = Home(tmp_path)
    early, late = built(9000.0, day=1), [built(230.0 + 20 * number, day=2) for number in range(8)]
    several = [*late, early]
    monkeypatch.setattr(store, "all_builds", lambda home: [*several, built(20.0, "pgvector")])
    assert store.compile_seconds(home, Engine.POSTGRES, slim=False) == 300.0, "the mean of the last ones"
    assert store.compile_seconds(home, Engine.POSTGRES, slim=True) == 300.0, "there is no slim one"
    assert store.compile_seconds(home, Engine.POSTGRES, slim=False, extension="pgvector") == 20.0
    assert store.compile_seconds(home, Engine.POSTGRES, slim=False, extension="hll") is None
    assert store.compile_seconds(home, Engine.POSTGRES, slim=False, patched=True) is None
    several.append(built(50.0, day=3, patches=[{"name": "a.patch", "sha256": "00"}]))
    assert store.compile_seconds(home, Engine.POSTGRES, slim=False, patched=True) == 50.0
    assert store.compile_seconds(home, Engine.POSTGRES, slim=False) == 300.0, "ccache had what it needs"
