"""What a plan says of the report site: its threshold, and the tracker that links of pages lead to."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from build.home import ROOT, Home
from build.progress import Silent
from history.open import open_store
from history.store.writer import Store
from runners.alerting.tracker_registry import issue_pages
from runners.cli import main
from runners.nightly.heartbeat import Heart
from runners.nightly.plan import Plan
from runners.nightly.report import report
from tests.history.watched import LAST_NIGHT, record_regression
from tests.runners.alerting.github import REPOSITORY, TOKEN, GitHub, running
from tests.runners.nightly.test_night import PLAN


@pytest.fixture
def regressed(tmp_path: Path) -> Iterator[Store]:
    path = tmp_path / "home/history.db"
    record_regression(path)
    with open_store(path, clock=lambda: LAST_NIGHT) as store:
        yield store


@pytest.fixture
def github() -> Iterator[GitHub]:
    with running() as github:
        yield github


@pytest.mark.deep("months of simulated nights")
def test_threshold_and_tracker_of_the_plan_reach_the_pages(
    regressed: Store, github: GitHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
    monkeypatch.setenv("GITHUB_API_URL", github.url)
    monkeypatch.setenv("GITHUB_SERVER_URL", "https://git.example.org/")
    site = {"write": True, "folder": str(tmp_path / "pages")}
    changes = {"alerts": {"repository": REPOSITORY}, "backups": 0, "site": site, "regression_percent": 6.0}
    assert report(Plan.model_validate(PLAN | changes), Home(tmp_path / "home"), regressed).problems == []
    (page,) = [path for path in (tmp_path / "pages/changes").glob("*.html") if path.name != "index.html"]
    text = page.read_text(encoding="utf-8")
    assert f'href="https://git.example.org/{REPOSITORY}/issues/1"' in text
    assert "They are not listed: the nights did not both measure a commit from git." in text
    assert '["qps","qps","queries/s","higher",0.06,false]' in (tmp_path / "pages/data/series.js").read_text()


@pytest.mark.parametrize(
    ("variables", "address"),
    [
        ({}, "https://github.com"),
        ({"GITHUB_API_URL": "https://api.github.com"}, "https://github.com"),
        ({"GITHUB_API_URL": "https://git.example.org/api/v3"}, "https://git.example.org"),
        ({"GITHUB_SERVER_URL": "https://x.ghe.com", "GITHUB_API_URL": "https://a.b"}, "https://x.ghe.com"),
    ],
)
def test_the_pages_of_a_tracker(
    variables: dict[str, str], address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("GITHUB_API_URL", "GITHUB_SERVER_URL"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert issue_pages("github") == f"{address}/{{repository}}/issues/{{number}}"


@pytest.mark.deep("months of simulated nights")
def test_a_site_by_hand_has_the_threshold_of_the_last_night(
    regressed: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TIDEMARK_HOME", str(tmp_path / "home"))
    plan = tmp_path / "plan.toml"
    example = (ROOT / "runners/examples/demo.toml").read_text(encoding="utf-8")
    plan.write_text(f"regression_percent = 7.5\n{example}", encoding="utf-8")
    Heart(Home(tmp_path / "home").heartbeat, "db1", Silent(), plan=str(plan))
    index = tmp_path / "home/site/data/series.js"
    assert main(["report"]) == 0
    assert '"higher",0.075,false]' in index.read_text(encoding="utf-8")
    other = tmp_path / "other.db"
    record_regression(other)
    assert main(["report", "--history", str(other)]) == 0
    assert '"higher",0.02,false]' in index.read_text(encoding="utf-8")
    plan.write_text("nothing = 1\n", encoding="utf-8")
    assert main(["report"]) == 2
    assert "the plan is invalid" in capsys.readouterr().err
