"""What is true of every page of a site: links, policy, time stamps, the numbers of charts in their tables."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from history.store.records import Environment
from report.markup.frame import POLICY
from report.values.catalog import NightEntry, PlaceNights
from report.writing import series_files
from report.writing.series_data import ALPHABET, LEVELS, NO_VALUE, Shard, packed, periods_of, shards
from tests.history.watched import Nights, dated
from tests.programs import VNU, required_package, required_tool
from tests.report.conftest import write
from tests.report.parsed import dead_links, pages_of, parsed, parsed_text


@pytest.mark.slow("a whole site with all its pages")
def test_every_link_and_anchor_leads_somewhere(site: Path) -> None:
    assert list(dead_links(site)) == []


def test_a_dead_link_is_seen(site: Path, tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<p id="here"><a href="b.html">x</a><a href="#there">y</a><a href="#here">z</a>'
    )
    assert list(dead_links(tmp_path)) == ["a.html: b.html is no file", "a.html: #there is no id"]


def test_every_page_has_the_policy_and_says_how_old_it_is(site: Path) -> None:
    for path in pages_of(site):
        page = parsed(path)
        policies = [
            given["content"]
            for tag, given in page.tags
            if given.get("http-equiv") == "Content-Security-Policy"
        ]
        assert policies == [POLICY], path
        assert re.search(
            r"This page: (data up to \d{4}-\d\d-\d\d \d\d:\d\d UTC|no data yet), written \d{4}", page.text
        ), path
        assert not [tag for tag, given in page.tags if "style" in given or tag == "style"], path
        assert not [name for _, given in page.tags for name in given if name.startswith("on")], path


def test_the_table_beside_a_chart_has_its_numbers(site: Path) -> None:
    """The marks of each figure and the cells of its table have the same values, in number and size."""
    figures = 0
    for path in pages_of(site):
        for figure in re.findall(r"<figure>.*?</figure>", path.read_text(encoding="utf-8"), re.DOTALL):
            page = parsed_text(figure)
            marks = sorted(
                given["data-y"] for tag, given in page.tags if tag == "circle" and given.get("data-y")
            )
            cells = sorted(given["data-y"] for tag, given in page.tags if tag == "td" and given.get("data-y"))
            assert not marks or marks == cells, path
            figures += bool(marks)
    assert figures > 20


def test_pages_are_valid_html(site: Path, tmp_path: Path) -> None:
    java, jar = required_tool("java"), required_package(VNU)
    kinds = _one_of_each_kind(site)
    done = subprocess.run(
        [java, "-jar", str(jar), "--errors-only", "--skip-non-html", *map(str, kinds)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""


def test_invalid_html_is_seen(tmp_path: Path) -> None:
    java, jar = required_tool("java"), required_package(VNU)
    bad = tmp_path / "bad.html"
    bad.write_text("<!doctype html><html lang=en><title>x</title><p><div></p>")
    done = subprocess.run(
        [java, "-jar", str(jar), "--errors-only", str(bad)], capture_output=True, text=True, check=False
    )
    assert "error" in done.stderr


def _one_of_each_kind(site: Path) -> list[Path]:
    """Return the largest page of each folder and depth, and all at the root."""
    by_kind: dict[str, Path] = {}
    for path in pages_of(site):
        kind = re.sub(r"[^/]+\.html$", "*", str(path.relative_to(site)))
        kind = (
            kind
            if kind.count("/") < 2
            else f"{kind.split('/')[0]}/*/{'setup' if path.stem == 'setup' else '*'}"
        )
        name = path.name if kind == "*" else kind + ("index" if path.name == "index.html" else "")
        if name not in by_kind or path.stat().st_size > by_kind[name].stat().st_size:
            by_kind[name] = path
    return sorted(by_kind.values())


def test_a_renewed_site_without_news_writes_only_when_it_was_written(
    rich: Path, site: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "site"
    shutil.copytree(site, folder)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert write(rich, folder) == 2  # its own state, and the time for the footer
    after = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert {path.name for path in before if before[path] != after[path]} <= {
        "written.js",
        "tidemark-site.json",
    }
    assert before.keys() == after.keys()


def test_one_more_night_touches_only_what_shows_it(tmp_path: Path) -> None:
    folder = tmp_path / "site"
    with dated(tmp_path / "h.db", Nights) as nights:
        nights.more(40)
        write(tmp_path / "h.db", folder)
        before = {path: path.stat().st_ino for path in folder.rglob("*") if path.is_file()}
        nights.more(1)
        write(tmp_path / "h.db", folder)
    assert {str(path.relative_to(folder)) for path in before if path.stat().st_ino != before[path]} == {
        *("index.html", "series.html", "trend.html", "sessions/index.html"),
        "changes/index.html",
        *("branches/index.html", "branches/postgres-17.html", "branches/postgres-REL_18_STABLE.html"),
        *("machines/index.html", "machines/db1.html", "compare/index.html"),
        "compare/write-heavy--db1--short_relaxed--postgres-17.html",
        *(str(path.relative_to(folder)) for path in folder.glob("data/*/write-heavy/*/latest.js")),
        *("data/written.js", "tidemark-site.json"),
    }
    assert len(list(folder.glob("data/*/write-heavy/*/past.js"))) == 2


def test_a_month_that_is_over_moves_to_the_file_of_the_past_without_being_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, read = tmp_path / "site", []

    def counted(*arguments: Any) -> Iterator[Shard]:
        read.append({f"{night.started_at:%Y-%m}" for night in arguments[-2]})
        return shards(*arguments)

    with dated(tmp_path / "h.db", Nights) as nights:
        nights.more(31)  # the first is of 2026-03-01
        write(tmp_path / "h.db", folder)
        (before,) = [path.read_text() for path in sorted(folder.glob("data/*/write-heavy/*/latest.js"))[:1]]
        monkeypatch.setattr(series_files, "shards", counted)
        nights.more(1)
        write(tmp_path / "h.db", folder)
    assert read == [{"2026-04"}]
    assert sorted(folder.glob("data/*/write-heavy/*/past.js"))[0].read_text() == before


def test_a_year_that_has_ended_is_one_period() -> None:
    days = ((2024, 5), (2024, 12), (2025, 7), (2026, 1), (2026, 1), (2026, 3))
    nights = tuple(
        NightEntry(at, f"n{at}", datetime(year, month, 1, tzinfo=UTC), None, {}, frozenset())
        for at, (year, month) in enumerate(days)
    )
    periods = periods_of(PlaceNights(Environment("db1", "s", "c"), nights))
    ids = {period: [night.session_id for night in nights_of] for period, nights_of in periods.items()}
    assert ids == {"2024": [0, 1], "2025": [2], "2026-01": [3, 4], "2026-03": [5]}


@pytest.mark.parametrize(
    "values", [[9434.25, 0.0, 10_790.0], [1e-9, 3e-10], [0.0, 0.0], [-3.0, 5.0], [7e12]], ids=str
)
def test_packed_values_are_those_that_were_packed(values: list[float]) -> None:
    low, step, text = packed(list(enumerate(values)), len(values) + 1)
    digits = [ALPHABET.find(character) for character in text]
    unpacked = [
        low + step * (first * len(ALPHABET) + second)
        for first, second in zip(digits[::2], digits[1::2], strict=True)
    ]
    assert text[-2:] == NO_VALUE
    span = max(values) - min(0.0, *values)
    assert unpacked[:-1] == pytest.approx(values, abs=span / LEVELS)
    assert not set(ALPHABET) & set('"<\\\\ ')


@pytest.mark.parametrize("name", ["index.html", "series.html", "changes/index.html"])
def test_a_first_page_is_light(site: Path, name: str) -> None:
    import gzip

    page = parsed(site / name)
    files = {
        site / name,
        *(
            (site / name).parent / link
            for tag, given in page.tags
            if tag in ("script", "link")
            for link in [given.get("src") or given.get("href", "")]
        ),
    }
    assert sum(len(gzip.compress(file.read_bytes())) for file in files) <= 150_000
