"""The commits between the nights of a change: from a real git repository, through its mirror, to the page."""

import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from build.engines import ENGINES
from build.home import Home
from build.progress import Silent
from build.sources import git
from build.sources.git import Mirror
from build.version import Engine
from history.changes import repository
from history.changes.report import ChangeReport, report_changes
from history.open import open_reader, open_store
from report import addresses
from report.values.commits import Commits, CommitsBetween, NoCommits
from report.writing.site import SiteOptions, write_site
from runners.cli import main
from runners.reporting.commits import MAX_SECONDS, commits_in
from tests.history.watched import name_commits, record_regression
from tests.plain_repository import PlainRepository
from tests.report.parsed import ParsedPage, parsed

SUBJECT = "Look at <b>every</b> page"


@dataclass
class Committed:
    """A history whose only change lies between two commits of a repository, in a home."""

    home: Home
    work: PlainRepository
    fingerprint: str = ""

    @property
    def address(self) -> str:
        """A URL: the objects of a path would be borrowed instead of fetched."""
        return f"file://{self.work.path}"

    def between(self, old: str, new: str) -> None:
        """Record the change between two commits."""
        record_regression(self.home.history, judged=True)
        with open_store(self.home.history) as store:
            self.fingerprint = name_commits(store, old, new).fingerprint

    def mirrored(self, *, upstream: bool = False) -> None:
        """Fetch the repository into a mirror of the home, as a night does."""
        mirror = git.mirror(self.address, Engine.POSTGRES, self.home)
        if upstream:
            place = git.mirror(ENGINES[Engine.POSTGRES].upstream.git, Engine.POSTGRES, self.home)
            mirror = Mirror(self.address, place.path)
        mirror.fetch("main")

    def page(self, site: Path | None = None) -> ParsedPage:
        return parsed((site or self.home.site) / addresses.change(self.fingerprint))


@pytest.fixture
def committed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Committed:
    home = Home(tmp_path / "home")
    monkeypatch.setenv("TIDEMARK_HOME", str(home.path))
    return Committed(home, PlainRepository(tmp_path / "work"))


@pytest.fixture
def words_only(committed: Committed) -> Committed:
    """One commit of two can have made the difference: the other one touches documentation."""
    old = committed.work.commit("src/backend/a.c")
    committed.work.commit("src/backend/b.c", SUBJECT)
    new = committed.work.commit("doc/src/sgml/a.sgml", "Mend a word")
    committed.between(old, new)
    return committed


def rows_of(page: ParsedPage) -> list[list[str]]:
    """The rows of the table of commits, without the first column."""
    return [row[1:] for row in page.rows if len(row) == 5 and row[3] in ("day", "2026-02-03")][1:]


def test_a_page_lists_the_commits_and_strikes_out_what_cannot_matter(
    words_only: Committed, capsys: pytest.CaptureFixture[str]
) -> None:
    words_only.mirrored()
    assert main(["report"]) == 0
    page = words_only.page()
    reason = "Mend a wordcannot change the server: touches only doc/src/sgml/a.sgml"
    day = "2026-02-03"
    assert rows_of(page) == [
        [reason, "Ada | &b", day, "doc/src/sgml/a.sgml"],
        [SUBJECT, "Ada | &b", day, "src/backend/b.c"],
    ]
    assert sum(tag == "s" for tag, _ in page.tags) == 1
    assert "2 commits; 1 cannot change the server and is struck out." in page.text
    newest = words_only.work.git("rev-parse", "HEAD")
    assert f"https://github.com/postgres/postgres/commit/{newest}" in page.links
    capsys.readouterr()
    assert main(["report", "--page", "change", words_only.fingerprint]) == 0
    alone = capsys.readouterr().out
    assert reason[11:] in alone
    assert f"/commit/{newest}" in alone


def test_nothing_is_fetched_and_a_missing_mirror_or_commit_is_said(words_only: Committed) -> None:
    assert main(["report"]) == 0
    said = "They are not listed: there is no git mirror of Postgres on the machine that wrote this page."
    assert said in words_only.page().text
    words_only.mirrored()
    newer = words_only.work.commit("src/backend/b.c")
    words_only.between(words_only.work.git("rev-parse", "HEAD~2"), newer)
    assert main(["report"]) == 0
    assert "no git mirror on the machine that wrote this page has both" in words_only.page().text
    assert git.mirror(words_only.address, Engine.POSTGRES, words_only.home).find(newer) is None
    words_only.mirrored()
    assert main(["report"]) == 0
    assert "2 commits; 1 cannot" in words_only.page().text


@pytest.mark.parametrize("upstream", [False, True])
def test_a_public_site_names_authors_and_files_of_upstream_alone(
    words_only: Committed, upstream: bool
) -> None:
    words_only.mirrored(upstream=upstream)
    assert main(["report", "--public"]) == 0
    text = words_only.page().text
    kept = (words_only.home.site / "tidemark-site.json").read_text()
    for fact in ("Ada | &b", "src/backend/b.c", "doc/src/sgml"):
        assert (fact in text) is upstream
        assert (fact in kept) is upstream
    assert SUBJECT in text
    assert "Mend a wordcannot change the server" in text
    assert any("/commit/" in link for link in words_only.page().links) is upstream


def test_git_is_asked_once_for_a_range_and_again_where_it_had_nothing(
    words_only: Committed, tmp_path: Path
) -> None:
    words_only.mirrored()
    asked: list[str] = []

    def renewed(commits: Callable[[ChangeReport], Commits]) -> set[str]:
        def counted(report: ChangeReport) -> Commits:
            asked.append(report.change.fingerprint)
            return commits(report)

        folder = tmp_path / "site"
        before = {path: path.stat().st_mtime_ns for path in folder.rglob("*.html")}
        with open_reader(words_only.home.history) as history:
            write_site(history, SiteOptions(folder, commits=counted), Silent())
        after = {path: path.stat().st_mtime_ns for path in folder.rglob("*.html")}
        return {path.name for path, changed in after.items() if before.get(path) != changed}

    page = Path(addresses.change(words_only.fingerprint)).name
    assert page in renewed(lambda report: NoCommits("the disk is away"))
    assert page in renewed(commits_in(words_only.home))
    assert len(asked) == 2
    assert page not in renewed(commits_in(words_only.home))
    assert len(asked) == 2


def report_of(committed: Committed) -> ChangeReport:
    with open_reader(committed.home.history) as history, history.database.reading() as connection:
        (report,) = report_changes(connection, repository.load(connection))
    return report


def found_in(committed: Committed) -> Commits:
    return commits_in(committed.home)(report_of(committed))


def test_of_two_thousand_commits_the_newest_are_listed(committed: Committed) -> None:
    old = committed.work.commit("src/a.c")
    commands = "".join(
        f"commit refs/heads/main\ncommitter A <a@b> {1770000000 + number} +0000\ndata 3\nc\n\n"
        f"{f'from {old}' if number == 0 else ''}\nM 100644 inline src/f{number % 7}.c\ndata 4\n{number:04}\n"
        for number in range(2000)
    )
    done = ["git", "-C", str(committed.work.path), "fast-import", "--quiet"]
    subprocess.run(done, input=commands, text=True, check=True)
    committed.between(old, committed.work.git("rev-parse", "main"))
    committed.mirrored()
    found = found_in(committed)
    assert isinstance(found, CommitsBetween)
    assert (found.total, len(found.newest), found.is_one_line) == (2000, 40, True)
    assert found.newest[0].commit == committed.work.git("rev-parse", "main")
    assert main(["report"]) == 0
    assert "2000 commits; the newest 40 are listed." in committed.page().text


def test_a_branch_that_was_rewritten_has_the_commits_that_the_later_night_alone_has(
    committed: Committed,
) -> None:
    committed.work.commit("src/a.c")
    old = committed.work.commit("src/b.c")
    committed.mirrored()
    committed.work.git("reset", "--quiet", "--hard", "HEAD~1")
    new = committed.work.commit("src/c.c")
    committed.mirrored()
    committed.between(old, new)
    assert main(["report"]) == 0
    text = " ".join(committed.page().text.split())
    assert "1 commit. The branch left the line of the earlier commit in between" in text
    committed.between(new, committed.work.git("rev-parse", "HEAD~1"))
    assert found_in(committed) == NoCommits("the later night measured an older commit than the night before")
    committed.between(new, new[:39] + ("0" if new[39] != "0" else "1"))
    assert isinstance(found_in(committed), NoCommits)


def test_a_slow_git_ends_the_lists_of_a_site_and_no_more(words_only: Committed) -> None:
    words_only.mirrored()
    seconds = iter([0.0, MAX_SECONDS + 1])
    found = commits_in(words_only.home, lambda: next(seconds))(report_of(words_only))
    assert isinstance(found, NoCommits)
    assert "the next time the site is written continues" in found.reason
