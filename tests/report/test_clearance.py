"""What leaves the house in a public site: nothing that names a host, a person, a path or a command."""

import re
import shutil
from pathlib import Path

import pytest

from history.open import open_store
from report.values.clearance import WITHHELD, Clearance
from report.writing.tree import STATE
from runners.cli import main
from tests.history.watched import record_regression
from tests.report.conftest import write
from tests.report.parsed import parsed
from tests.report.private import FACTS, MANIFEST, found_in, manifest_with, plant, record
from tests.report.rich import BOXES

OF_THE_RICH_HISTORY = re.compile(
    rf"/srv/secret|plan\.toml|backup\.sh|/somewhere/postgres\.git|(?<![0-9a-f])({'|'.join(BOXES)})(?![0-9a-f])"
)
"""What the rich history has of its own, besides session uids such as db1n046; not parts of digests."""


def texts_of(site: Path) -> dict[str, str]:
    """Return every file of a site that is text, by name, with its name; without uids of the rich history."""
    files = [path for path in site.rglob("*") if path.suffix in (".html", ".js", ".json", ".svg", ".atom")]
    named = {str(path.relative_to(site)): path.read_text(encoding="utf-8") for path in files}
    return {name: re.sub(r"db[12](n|cal)\d+", "", f"{name} {text}") for name, text in named.items()}


def test_nothing_private_leaves_the_house(rich: Path, tmp_path: Path) -> None:
    """Thirty kinds of facts are in every text of a real manifest, in settings, machines, tools, failures."""
    path = tmp_path / "h.db"
    shutil.copy(rich, path)
    plant(path)
    write(path, tmp_path / "public", is_public=True)
    texts = texts_of(tmp_path / "public")
    assert STATE in texts, "it lies in the published folder too"
    leaks = {
        name: found
        for name, text in texts.items()
        if (found := [*found_in(text), *(match[0] for match in OF_THE_RICH_HISTORY.finditer(text))])
    }
    assert leaks == {}
    assert "Some details are left out" in texts["index.html"]
    shown = texts["sessions/00000000/setup.html"]
    assert MANIFEST["compiler"]["version"] not in shown
    assert "16GB" in shown
    assert "sha256:cdcd" in shown


def test_the_facts_are_on_a_site_that_stays_in_the_house(tmp_path: Path) -> None:
    path = tmp_path / "h.db"
    open_store(path).close()
    record(path, 0, FACTS[0])
    write(path, tmp_path / "site")
    pages = {name for name, text in texts_of(tmp_path / "site").items() if found_in(text)}
    session = "sessions/00000000"
    assert {f"{session}.html", f"{session}/setup.html", f"{session}/insert.html", "index.html"} <= pages


def test_thirty_kinds_are_planted_in_a_real_manifest() -> None:
    assert len(set(FACTS)) >= 30
    assert Clearance(is_public=True).manifest({"compiler.version": MANIFEST["compiler"]["version"]})
    assert manifest_with("x").compiler.version == "x"


def test_settings_are_allowed_by_name_or_shape() -> None:
    public = Clearance(is_public=True)
    kept = {"shared_buffers": "16GB", "jit": "off", "wal_level": "replica", "max_wal_size": "128"}
    private = {"listen_addresses": "db1.internal", "data_directory": "/srv", "wal_level ": "replica"}
    assert public.settings(kept) == kept
    assert public.settings(private) == {"listen_addresses": WITHHELD, "data_directory": WITHHELD}
    assert Clearance().settings(private) == private


def test_a_box_has_the_same_name_on_every_page_and_another_in_another_history() -> None:
    first, other = Clearance(True, "first"), Clearance(True, "second")
    assert first.box("db1") == Clearance(True, "first").box("db1")
    assert first.box("db1") not in ("db1", first.box("db2"), other.box("db1"))
    assert Clearance().box("db1") == "db1"


@pytest.fixture
def acknowledged(tmp_path: Path) -> Path:
    path = tmp_path / "history.db"
    record_regression(path, judged=True)
    words = ["--by", "ann", "--reason", "checksums are <wanted>", "--until", "2099-12-31"]
    assert main(["history", "acknowledge", "2e7b5e116455", *words, "--history", str(path)]) == 0
    return path


@pytest.mark.parametrize("public", [False, True])
def test_the_list_and_the_page_of_a_change_say_who_why_and_until_when(
    acknowledged: Path, tmp_path: Path, public: bool
) -> None:
    words = ["--public"] if public else []
    assert main(["report", "--out", str(tmp_path / "site"), "--history", str(acknowledged), *words]) == 0
    listed = parsed(tmp_path / "site/changes/index.html").text
    page = parsed(tmp_path / "site/changes/2e7b5e116455.html").text
    for text in (listed, page):
        assert "until 2099-12-31" in text
        assert ("ann" in text.split()) is not public
        assert ("checksums are <wanted>" in text) is not public
        assert ("withheld on a public site" in text) is public


def test_a_listing_says_it_too(acknowledged: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["history", "changes", "--status", "acknowledged", "--history", str(acknowledged)]) == 0
    said = capsys.readouterr().out
    assert "    acknowledged by ann on " in said
    assert ", until 2099-12-31: checksums are <wanted>\n" in said
    assert said.count("checksums are <wanted>") == 1
