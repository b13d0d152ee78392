"""Pages of sessions that other metrics judge: unit, direction, threshold and reason are those that judged."""

import json
import math
import re
from pathlib import Path

import pytest

import compare as program
from history.changes import repository
from history.changes.report import ChangeReport, report_changes
from history.open import open_reader
from report import addresses
from report.markup.formats import metric_name
from runners.cli import main
from suites.metrics import INSTRUCTIONS
from suites.metrics import METRICS as ROWS
from tests.report.judged.judged_history import (
    BASE,
    BRANCH,
    CONFIRMED_BY,
    METRICS,
    MIXED,
    NIGHTS,
    suite_of,
)
from tests.report.parsed import ParsedPage, dead_links, parsed, parsed_text

each_metric = pytest.mark.parametrize("metric", METRICS)


@pytest.fixture(scope="module")
def changes(judged: Path) -> dict[str, ChangeReport]:
    """Its changes by the metric of their main series."""
    with open_reader(judged) as history, history.database.reading() as connection:
        found = report_changes(connection, repository.load(connection))
    return {report.main_series.key.metric: report for report in found}


def last_night(metric: str) -> str:
    return f"{metric}-{NIGHTS:02}"


def part_of(page: Path, metric: str) -> ParsedPage:
    """What a page shows when a metric is chosen."""
    _, *parts = re.split(r'(?=<div id="metric=)', page.read_text(encoding="utf-8"))
    (part,) = [part for part in parts if part.startswith(f'<div id="metric={metric}"')]
    return parsed_text(part)


def heats(page: ParsedPage, sign: str) -> list[str]:
    """The colour classes of the cells of ratios whose title says so."""
    found = []
    for (tag, given), (_, inner) in zip(page.tags, page.tags[1:], strict=False):
        kind = given.get("class", "")
        if tag == "td" and kind.startswith("heat") and "base" not in kind and sign in inner.get("title", ""):
            found.append(kind.removeprefix("heat "))
    return found


def titles(page: ParsedPage) -> list[str]:
    """The titles of links to steps, which have the values of a cell."""
    return [given["title"] for tag, given in page.tags if tag == "a" and " to " in given.get("title", "")]


def band(page: ParsedPage) -> tuple[float, float]:
    """The ratios at the ends of the shaded band, by the place of 1 and that of the point furthest from it."""
    lines = [given["d"] for _, given in page.tags if given.get("class") == "one"]
    (middle,) = {float(re.split("[M ]", line)[1]) for line in lines}
    circles = [given for tag, given in page.tags if tag == "circle" and given.get("data-y")]
    points = [(float(given["cx"]), float(given["data-y"])) for given in circles]
    at, ratio = max(points, key=lambda point: abs(point[0] - middle))
    (rect,) = [given for _, given in page.tags if given.get("class") == "tolerance"]
    ends = float(rect["x"]), float(rect["x"]) + float(rect["width"])
    first, last = (math.exp(math.log(ratio) * (end - middle) / (at - middle)) for end in ends)
    return first, last


def no_other_unit(page: Path) -> None:
    """Fail if a page of what nothing was timed for speaks of queries per second."""
    text = page.read_text(encoding="utf-8")
    assert "queries/s" not in text
    assert "ueries per second" not in text


@each_metric
def test_a_session_is_told_in_its_own_unit_and_direction(pages: Path, metric: str) -> None:
    path = pages / addresses.session(last_night(metric))
    no_other_unit(path)
    page = parsed(path)
    assert f"{metric_name(metric)} ({ROWS[metric].unit}), less is better" in page.text
    rows = {row[0]: row for row in page.rows if len(row) > 5}
    assert "▾ regression" in rows["worse"][-1]
    assert "▴ improvement" in rows["better"][-1]
    assert rows["failing"][-1].startswith("failed")
    assert heats(page, "%, regression") == ["worse-4"]
    assert heats(page, "%, improvement") == ["better-3"]


@each_metric
def test_the_band_of_a_step_is_the_threshold_that_judged(pages: Path, metric: str) -> None:
    path = pages / addresses.step(last_night(metric), "worse")
    no_other_unit(path)
    page = parsed(path)
    threshold = 0.005 if metric == INSTRUCTIONS else 0.02
    assert band(page) == pytest.approx((1 - threshold, 1 + threshold), abs=2e-4)
    assert f"threshold{100 * threshold:.1f} %" in page.text
    observed = "pass" if metric == INSTRUCTIONS else "round"
    assert [row[0] for row in page.rows if row and row[0] == f"{observed} 2"]
    assert f"all {'passes' if observed == 'pass' else 'rounds'}" in page.text
    whisker = [given["class"] for tag, given in page.tags if given.get("class", "").startswith("whisker")]
    assert set(whisker) == {"whisker worse"}


@each_metric
def test_a_failed_step_is_told_as_failed(pages: Path, metric: str) -> None:
    page = parsed(pages / addresses.step(last_night(metric), "failing"))
    assert "failed: no round finished in both versions" in page.text
    assert "the server stopped: out of memory" in page.text
    assert "There is no throughput by second" in page.text
    assert "pruned" not in page.text
    assert "imported" not in page.text


@each_metric
def test_a_ladder_has_the_colours_of_its_metric(pages: Path, metric: str) -> None:
    path = pages / addresses.ladder(suite_of(metric), "db1", "short relaxed", "postgres@17")
    no_other_unit(path)
    page = part_of(path, metric)
    assert f"Ratios of {metric_name(metric)} ({ROWS[metric].unit}), less is better" in page.text
    assert heats(page, "%, regression") == ["worse-4"]
    assert heats(page, "%, improvement") == ["better-3"]
    assert all(f" {ROWS[metric].unit}" in title for title in titles(page))
    rows = {row[0]: row for row in page.rows}
    assert rows["worse"][-1] == "▾1.15"
    rows = {row[0]: row for row in parsed(pages / addresses.LADDERS).rows}
    assert rows[suite_of(metric)][3] == metric_name(metric)


@each_metric
def test_a_branch_is_drawn_by_each_metric(pages: Path, metric: str) -> None:
    page = part_of(pages / addresses.branch(BRANCH), metric)
    assert f"{metric_name(metric)} ({ROWS[metric].unit}), less is better, relative to" in page.text
    cells = [given.get("class") for tag, given in page.tags if tag == "rect"]
    assert "cell worse-4" in cells
    assert "cell better-3" in cells
    if metric in ("connection_kib", INSTRUCTIONS):  # the series that are searched
        assert "range worse confirmed" in cells or metric == INSTRUCTIONS
        assert [kind for kind in cells if kind and kind.startswith("range worse")]


@each_metric
def test_lists_say_what_judged(pages: Path, metric: str) -> None:
    name = metric_name(metric)
    (row,) = [
        row for row in parsed(pages / "index.html").rows if row[0] == BRANCH and row[1] == suite_of(metric)
    ]
    assert (row[4], row[7], row[8]) == (name, "1", "1")
    rows = {row[1]: row for row in parsed(pages / addresses.SESSIONS).rows}
    assert name in rows[last_night(metric)]


def test_a_box_sees_in_the_metrics_of_its_sessions(pages: Path) -> None:
    page = parsed(pages / addresses.machine("db1"))
    names = [metric_name(metric) for metric in METRICS if metric != INSTRUCTIONS]
    for name in names:
        assert f"{name}: sees " in page.text
    assert "ueries per second" not in page.text


def test_the_explorer_has_thresholds_sight_and_intervals_of_every_metric(pages: Path) -> None:
    text = (pages / "data/series.js").read_text(encoding="utf-8")
    index = json.loads(text.removeprefix("tidemark.index(").removesuffix(");\n"))
    known = {name: (threshold, counted) for name, _, _, _, threshold, counted in index["metrics"]}
    assert known[INSTRUCTIONS] == (0.005, True)
    assert known["connection_kib"] == (0.02, False)
    assert {row[5] for row in index["sees"] if row[4] == "worse"} == set(METRICS)
    for metric in METRICS:
        (file,) = pages.glob(f"data/*/{suite_of(metric)}/worse/latest.js")
        shard = json.loads("[" + file.read_text().splitlines()[-1].partition("(")[2].removesuffix(");") + "]")
        (low, high) = shard[1]["i"][metric][BRANCH][-1][1:3]
        assert low < 1.15 < high


def test_a_counted_session_never_displaces_a_timed_one(pages: Path) -> None:
    path = pages / addresses.ladder(MIXED, "db1", "short relaxed", "postgres@17")
    timed, counted = part_of(path, "qps"), part_of(path, INSTRUCTIONS)
    assert {row[0]: row for row in timed.rows}["insert"][-1] == "▾0.93"
    assert (heats(timed, "queries/s"), heats(timed, "instructions")) == (["worse-3"], [])
    assert {row[0]: row for row in counted.rows}["insert"][-1] == "▾1.07"
    assert (heats(counted, "instructions/query"), heats(counted, "queries/s")) == (["worse-3"], [])
    shown = parsed(path)
    links = [given["href"] for tag, given in shown.tags if tag == "a" and "#metric" in given.get("href", "")]
    assert links[:2] == ["#metric=qps", f"#metric={INSTRUCTIONS}"]
    rows = [row for row in parsed(pages / "index.html").rows if row[:2] == [BRANCH, MIXED]]
    assert {(row[4], row[5]) for row in rows} == {("qps", "0.93"), ("exact instructions", "1.07")}


def test_a_change_is_judged_by_the_threshold_of_its_confirmation(
    pages: Path, changes: dict[str, ChangeReport]
) -> None:
    report = changes["connection_kib"]
    page = parsed(pages / addresses.change(report.change.fingerprint))
    assert "more memory per connection" in page.text
    assert "Confirmed side by side" in page.text
    text = (pages / addresses.change(report.change.fingerprint)).read_text(encoding="utf-8")
    (confirmed,) = re.findall(r"Confirmed side by side</h2>(.*?)</section>", text, re.DOTALL)
    assert band(parsed_text(confirmed)) == pytest.approx((1 - CONFIRMED_BY, 1 + CONFIRMED_BY), abs=5e-4)
    ranges = [given["class"] for _, given in page.tags if given.get("class", "").startswith("range")]
    assert set(ranges) == {"range worse confirmed"}
    counted = parsed(pages / addresses.change(changes[INSTRUCTIONS].change.fingerprint))
    assert "This step can see every change beyond 0.5 %, the threshold." in counted.text
    assert "never measured here" not in counted.text


@each_metric
def test_a_page_to_mail_is_about_the_same(
    judged: Path, metric: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [BASE, BRANCH, "--history", str(judged), "--suite", suite_of(metric), "--format"]
    assert program.main([*words, "html"]) == 1
    page = parsed_text(capsys.readouterr().out)
    threshold = 0.005 if metric == INSTRUCTIONS else 0.02
    assert band(page) == pytest.approx((1 - threshold, 1 + threshold), abs=2e-4)
    assert f"{metric_name(metric)} ({ROWS[metric].unit}), less is better" in page.text
    assert program.main([*words, "summary"]) == 1
    most = "most" if metric == INSTRUCTIONS else "worst"
    assert f"; {most}: worse 1.15" in capsys.readouterr().out
    assert program.main([*words, "json"]) == 1
    assert json.loads(capsys.readouterr().out)["threshold_percent"] == 100 * threshold
    assert main(["report", "--page", "session", last_night(metric), "--history", str(judged)]) == 0
    assert "queries/s" not in capsys.readouterr().out


def test_the_threshold_over_nights_is_that_of_counts(
    judged: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [BASE, BRANCH, "--history", str(judged), "--suite", suite_of(INSTRUCTIONS)]
    program.main([*words, "--since", "2026-03-01", "--metric", INSTRUCTIONS])
    assert "Threshold 0.5 %" in " ".join(capsys.readouterr().out.split())


def test_every_link_to_a_metric_leads_somewhere(pages: Path) -> None:
    assert list(dead_links(pages)) == []
