"""Issues, comments, summaries of nights and the whole site of the hostile history."""

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

from build.home import Home
from history.changes import repository
from history.changes.report import report_changes
from history.open import open_store
from history.series.last_nights import LastNight
from history.store.alert_outbox import DesiredIssue
from runners.alerting.issues.change_issues import issue_of_changes
from runners.alerting.issues.failure_issues import issues_of_failures
from runners.nightly.night_result import NightResult
from runners.nightly.plan import Plan
from runners.nightly.report import report
from runners.nightly.summary import summary
from tests.outputs.harmless import assert_nothing_hidden, require_markdown, require_page
from tests.outputs.hostile_history import INJECTED, hostile, make_hostile
from tests.report.conftest import write
from tests.report.parsed import pages_of
from tests.report.rich import BRANCH

NOW = datetime(2026, 4, 17, tzinfo=UTC)
PLAN = {
    "backups": 0,
    "boxes": {"db1": {"label": "tidemark-db1"}},
    "engines": {"postgres": {"base": "postgres@17.11", "releases": ["18.6"]}},
    "tasks": [{"suite": "write-heavy", "profile": "short"}],
}


def require_issue(issue: DesiredIssue) -> None:
    """An issue as it is sent."""
    require_markdown(issue.body)
    assert_nothing_hidden(issue.title)
    assert len(issue.title.splitlines()) == 1


@pytest.mark.slow("no text of a history becomes markup of an issue")
def test_issues_are_harmless(home: Path) -> None:
    with open_store(home / "history.db") as store, store.database.reading() as connection:
        reports = report_changes(connection, repository.load(connection))
    site = "https://perf.example"
    issues = [
        issue_of_changes(change_report.change.fingerprint, [change_report], site) for change_report in reports
    ]
    named = (hostile("db1"), hostile(BRANCH), "postgres@18.6")
    unbuilt = LastNight(*named, False, f"not built: {hostile('cc')}", {}, NOW, hostile("cc"))
    crashed = LastNight(*named, True, "", {hostile("insert"): hostile("signal 11")}, NOW)
    issues += [*issues_of_failures([unbuilt], []), *issues_of_failures([crashed], [])]
    assert len(issues) == 3
    for issue in issues:
        require_issue(issue)


def test_the_summary_of_a_night_is_harmless(home: Path, written: Path) -> None:
    shutil.copy(written, home / "history.db")
    make_hostile(home / "history.db")
    with open_store(home / "history.db") as store:
        found = report(Plan.model_validate(PLAN), Home(home), store)
    night = NightResult(hostile("db1"), problems=[hostile("a problem")])
    text = summary(night, found, [], NOW)
    require_markdown(text)
    assert INJECTED in text


def test_every_page_of_the_site_is_harmless(home: Path) -> None:
    write(home / "history.db", home / "site")
    pages = pages_of(home / "site")
    assert len(pages) > 100
    for page in pages[::5]:
        require_page(page.read_text(encoding="utf-8"))
    for file in [*(home / "site/data").rglob("*.js")][::5]:
        text = file.read_text(encoding="utf-8")
        assert text.isascii()
        assert "<" not in text
        for line in text.splitlines():
            shown = json.loads(f"[{line.partition('(')[2][:-2]}]")
            assert_nothing_hidden(json.dumps(shown, ensure_ascii=False))
