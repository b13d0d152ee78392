"""`build list` and `build prune`, and a simulated year of nights whose builds stay within a size."""

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from build.cache.pruning import cached_builds
from build.home import Home
from runners.cli import main
from runners.retention.pruning import Limits, prune
from suites.data_copies.store import DATA, MANIFEST
from tests.build.cache.folders import a_build_of, use

NOW = datetime.now(UTC)
LONG_AGO = NOW - timedelta(days=100)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv("TIDEMARK_HOME", str(tmp_path))
    monkeypatch.setenv("TIDEMARK_LOCK", str(tmp_path / "lock"))
    home = Home(tmp_path)
    a_build_of(home, "postgres@17.10", LONG_AGO, size=3_000_000)
    a_build_of(home, "postgres@18.6", NOW, size=3_000_000)
    a_build_of(home, "postgres@17.11", LONG_AGO + timedelta(days=1), size=3_000_000, imported=True)
    return home


def names(home: Home) -> list[str]:
    return sorted(build.name for build in cached_builds(home))


def test_the_list_says_what_each_is_and_when_it_was_used(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["build", "list"]) == 0
    lines = [re.sub(r"-[0-9a-f]{12} +", " ", line) for line in capsys.readouterr().out.splitlines()]
    used = [f"{when:%Y-%m-%d}" for when in (LONG_AGO, LONG_AGO + timedelta(days=1), NOW)]
    assert lines == [
        f"postgres-17.10 3 MB  used {used[0]}  postgres@17.10",
        f"postgres-17.11 3 MB  used {used[1]}  postgres@17.11; imported",
        f"postgres-18.6 3 MB  used {used[2]}  postgres@18.6",
        "3 builds, 0.01 GB",
    ]


def test_by_age_by_size_and_by_name(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["build", "prune"]) == 0
    assert capsys.readouterr().out == "nothing was deleted; builds take 0.01 GB\n"
    assert main(["build", "prune", "30d"]) == 0
    out = capsys.readouterr().out
    assert re.fullmatch(
        r"deleted: postgres-17\.10-[0-9a-f]{12}, 0\.00 GB\n"
        r"deleted: 1 build \(0\.00 GB\); 2 builds left, 0\.01 GB\n",
        out,
    )
    assert main(["build", "prune", "0.001GB"]) == 0
    assert "more than 0.00 GB are left: needed or imported" in capsys.readouterr().out
    (imported,) = names(home)
    assert main(["build", "prune", imported]) == 0
    assert names(home) == []


@pytest.mark.parametrize("word", ["20", "20 GB", "1.GB", "30days", "postgres@18.6"])
def test_a_word_that_is_nothing_deletes_nothing(
    word: str, home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    before = names(home)
    assert main(["build", "prune", "0GB", word]) == 2
    assert f"'{word}' is no size, no age and no build of the cache" in capsys.readouterr().err
    assert names(home) == before


def test_copies_go_with_the_build_that_alone_can_use_them(home: Home) -> None:
    keys = {build.name: build.key for build in cached_builds(home)}
    for number, key in enumerate(keys.values()):
        folder = home.copies / f"{number:016x}"
        (folder / DATA).mkdir(parents=True)
        (folder / MANIFEST).write_text(
            json.dumps(
                {
                    "version": "postgres@18.6",
                    "suite": "write-heavy",
                    "profile": "smoke",
                    "parts": {"build": key},
                    "kept_at": "2026-01-01T00:00:00Z",
                    "files": {},
                }
            )
        )
    pruned = prune(home, {}, Limits(builds_used_before=NOW - timedelta(days=30)))
    assert (len(pruned.builds), pruned.copies, len(list(home.copies.iterdir()))) == (1, 1, 2)


@pytest.mark.deep("a whole command in a process of its own")
def test_a_year_of_commits_stays_within_its_size(tmp_path: Path) -> None:
    """400 commits over 365 nights, of which the last 10 are needed, and a base that is used each night."""
    home, limit, size = Home(tmp_path), 500_000, 20_000
    start = datetime(2026, 1, 1, tzinfo=UTC)
    base = a_build_of(home, "postgres@18.6", start, size=size)
    keys: list[str] = []
    for number in range(400):
        night = start + timedelta(days=number * 365 / 400)
        keys.append(a_build_of(home, f"postgres@git:{number:012x}", night, size=size))
        use(next(home.builds.glob("postgres-18.6-*")), night)
        needed = dict.fromkeys(keys[-10:], "one of the last 10") | {base: "base"}
        pruned = prune(home, needed, Limits(builds_bytes=limit))
        assert pruned.left_bytes <= limit
        assert needed.keys() <= {build.key for build in pruned.left}
    left = cached_builds(home)
    assert len(left) == limit // left[0].bytes
