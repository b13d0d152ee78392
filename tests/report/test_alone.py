"""Pages to mail: one file, which links to nothing of the site, asks nobody, and has what a reader needs."""

import base64
import hashlib
import re
import subprocess
from pathlib import Path

import pytest

import compare as program
from history.changes import repository
from history.changes.report import report_changes
from history.open import open_reader
from runners.alerting.issues.change_issues import issue_of_changes
from runners.alerting.issues.change_texts import body
from runners.cli import main
from runners.nightly.plan import SitePlan
from tests.programs import VNU, required_package, required_tool
from tests.report.parsed import ParsedPage, parsed_text
from tests.report.rich import SLOWED


def require_alone(text: str) -> ParsedPage:
    """Fail unless a page is whole by itself; return what it holds."""
    page = parsed_text(text)
    assert not [link for link in page.links if not link.startswith(("https:", "data:", "#"))]
    assert "script" not in {tag for tag, _ in page.tags}
    (style,) = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    (policy,) = [given["content"] for _, given in page.tags if "http-equiv" in given]
    assert base64.b64encode(hashlib.sha256(style.encode()).digest()).decode() in policy
    assert "\0" not in text
    return page


@pytest.fixture(scope="module")
def fingerprint(rich: Path) -> str:
    with open_reader(rich) as history, history.database.reading() as connection:
        return repository.load(connection)[0].fingerprint


def printed(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    assert main(words) == 0
    return capsys.readouterr().out


def test_pages_of_the_command(
    rich: Path, fingerprint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = {}
    for kind, name in (("change", fingerprint), ("session", "db1n046"), ("bisect", "b15ec7")):
        texts[kind] = printed(["report", "--page", kind, name, "--history", str(rich)], capsys)
        page = require_alone(texts[kind])
        assert SLOWED in page.text
        (tmp_path / f"{kind}.html").write_text(texts[kind], encoding="utf-8")
    assert "night\tversion\tmeasured\tvalue\tbase\tratio\tgap" in texts["change"]
    assert "./tidemark run --suite write-heavy" in texts["change"]
    java, jar = required_tool("java"), required_package(VNU)
    files = [str(path) for path in tmp_path.glob("*.html")]
    command = [java, "-jar", str(jar), "--errors-only", *files]
    assert subprocess.run(command, capture_output=True, text=True, check=False).stderr == ""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["change", "nothing"], "there is no change nothing"),
        (["session", "nothing"], "there is no session nothing"),
        (["bisect", "nothing"], "there is no bisect nothing"),
        (["branch", "postgres@18"], "there is no page of the kind 'branch'"),
    ],
)
def test_a_page_that_there_is_not(
    rich: Path, words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", "--page", *words, "--history", str(rich)]) == 2
    assert said in capsys.readouterr().err


def test_a_comparison_and_a_bisect_as_html(rich: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["postgres@17.11", "postgres@18.6", "--history", str(rich), "--machine", "db1"]
    code = program.main([*words, "--format", "html"])
    page = require_alone(capsys.readouterr().out)
    assert code == program.main([*words, "--format", "csv"])
    rows = capsys.readouterr().out.splitlines()
    assert all(line.replace(",", "\t") in page.text for line in rows if '"' not in line)
    assert main(["bisect", "report", "--format", "html", "--history", str(rich)]) == 0
    assert "changes qps of update-index" in require_alone(capsys.readouterr().out).text


def test_issues_link_to_the_page_of_their_change(rich: Path, fingerprint: str) -> None:
    with open_reader(rich) as history, history.database.reading() as connection:
        (report,) = report_changes(connection, repository.load(connection))
    address = f"<https://perf.example.org/t/changes/{fingerprint}.html>"
    assert address in issue_of_changes("f", [report], "https://perf.example.org/t/").body
    assert "example.org" not in body([report])


@pytest.mark.parametrize(
    "address", ["http://x.org", "javascript:alert(1)", "https://x.org/<b>", "https://x.org/ y"]
)
def test_an_address_that_issues_could_not_link_to_is_refused(address: str) -> None:
    assert SitePlan(address="https://x.org/t").address == "https://x.org/t"
    with pytest.raises(ValueError, match="address"):
        SitePlan(address=address)
