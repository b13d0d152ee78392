"""The form of the documents: what they have to name, how long they are, and where their links lead."""

import re
from pathlib import Path

from build.home import ROOT, Home
from build.sources.releases import listed_digests
from build.version import Engine, parse_version
from history.comparison.explanation import Variation
from history.comparison.verdict import Gap, MetricChange, Verdict
from history.store.records import ChangeStatus, RunStatus, SessionStatus
from tests.docs.test_docs import DOCUMENTS, table

CONFIGURATION = ROOT / "docs/configuration.md"
VERSIONS = ROOT / "docs/versions.md"
LONGEST_README = 120


def test_the_front_page_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= LONGEST_README


def test_versions_variables_and_folders() -> None:
    measured = [parse_version(row) for row in table(VERSIONS, "| version | write-heavy |")]
    assert all(version.ref in listed_digests(version.engine) for version in measured)
    limits = (ROOT / "README.md").read_text(encoding="utf-8").partition("\n## Limits\n")[2]
    innodb = {version.ref for version in measured if version.engine is not Engine.POSTGRES}
    assert innodb == set(re.findall(r"\d+\.\d+\.\d+", limits)), "the front page names what was measured"
    rooms = ("build", "suites", "history", "runners", "benchmarks")
    files = [ROOT / "compare.py", *(path for room in rooms for path in (ROOT / room).rglob("*.py"))]
    code = "".join(path.read_text(encoding="utf-8") for path in files)
    used = (
        set(re.findall(r"TIDEMARK_(?!GIT_|NOTIFY_)[A-Z_]+", code))
        | {"TIDEMARK_NOTIFY_NAME"}
        | {f"TIDEMARK_GIT_{engine.upper()}" for engine in Engine}
    )
    assert used <= table(CONFIGURATION, "| variable | meaning |").keys()
    names = [
        getattr(Home(Path()), name).name for name, var in vars(Home).items() if isinstance(var, property)
    ]
    written = ", ".join(table(CONFIGURATION, "| name | what it holds |"))
    assert [name for name in names if name not in written] == []


def test_glossary() -> None:
    """Each term is explained once, below a subject, in one to three sentences; every status is a term."""
    text = (ROOT / "docs/glossary.md").read_text(encoding="utf-8")
    introduction, *subjects = re.split(r"^## .+\n", text, flags=re.MULTILINE)
    entry = re.compile(r"^- \*\*(.+?)\*\*: (.+?\S)\s*(?=^- |\Z)", re.MULTILINE | re.DOTALL)
    assert not entry.findall(introduction)
    assert all(entry.search(subject) for subject in subjects)
    entries = [pair for subject in subjects for pair in entry.findall(subject)]
    sentences = {term: re.findall(r"\.(?=\s|$)", meaning) for term, meaning in entries}
    assert [term for term, ends in sentences.items() if not 1 <= len(ends) <= 3] == []
    assert [term for term, meaning in entries if not meaning.endswith(".")] == []
    assert len(sentences) == len(entries), "a term is explained twice"
    statuses = {*Verdict, *Gap, *MetricChange, *Variation, *RunStatus, *SessionStatus, *ChangeStatus}
    assert statuses <= sentences.keys()


def anchors(document: Path) -> set[str]:
    """The anchors that GitHub gives to the headings of a document."""
    headings = re.findall(r"^#+ (.+)$", document.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_links_to_headings_lead_somewhere() -> None:
    dead = []
    for document in DOCUMENTS:
        for page, anchor in re.findall(r"\]\(([\w./-]*)#([\w-]+)\)", document.read_text(encoding="utf-8")):
            if anchor not in anchors(document.parent / page if page else document):
                dead.append(f"{document.name}: {page}#{anchor}")
    assert dead == []


PLACES = {"A metric": 2, "A verdict": 2, "A tracker": 3, "A suite": 1, "A suite with its own scale": 1}
"""How many places each of these may touch: a tracker is a file in its folder, and one for its API."""


def test_what_to_touch_stays_short() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("\n## What to touch\n")[2]
    lists = dict(re.findall(r"^### (.+)\n\n((?:- .+\n(?:  .+\n)*)+)", text, re.MULTILINE))
    places = {
        thing: re.findall(r"^- (?:`([^`]+)`|The producer)", lists[thing], re.MULTILINE) for thing in PLACES
    }
    assert {thing: len(named) for thing, named in places.items()} == PLACES
    folders = [
        path for path in re.findall(r"^- `([^`]+)`", lists["An engine"], re.MULTILINE) if path.endswith("/")
    ]
    assert folders == ["suites/<engine>/"], "an engine is at most one folder in each room"


def test_decisions_are_numbered_short_and_whole() -> None:
    pages = sorted((ROOT / "docs/decisions").glob("[0-9]*.md"))
    assert [page.name[:5] for page in pages] == [f"{number:04}-" for number in range(1, len(pages) + 1)]
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert text.startswith(f"# {int(page.name[:4])}. ")
        headings = re.findall(r"^## (\w+)", text, re.MULTILINE)
        assert headings == ["Context", "Decision", "Why", "Consequences"]
        assert len(text.splitlines()) <= 60, "one page"


def test_a_decision_is_cited_by_its_number() -> None:
    wrong = []
    for document in [*DOCUMENTS, *(ROOT / "docs/decisions").glob("*.md")]:
        text = document.read_text(encoding="utf-8")
        for number, page in re.findall(r"\[decision\s+(\d+)\]\([^)]*?(\d{4})-", text):
            if int(number) != int(page):
                wrong.append(f"{document.name}: decision {number} leads to {page}")
    assert wrong == []


def test_the_index_of_decisions_is_complete() -> None:
    """Each decision is there once, and one that another supersedes or amends says so."""
    folder = ROOT / "docs/decisions"
    entries = dict(re.findall(r"^- \[\d+\]\((\S+)\): (.+)", (folder / "README.md").read_text(), re.MULTILINE))
    pages = {page.name: page.read_text(encoding="utf-8") for page in folder.glob("[0-9]*.md")}
    assert sorted(entries) == sorted(pages)
    says = re.compile(r"superseded by|amended by", re.IGNORECASE)
    replaced = {name for name, text in pages.items() if says.search(text)}
    assert {name for name, entry in entries.items() if says.search(entry)} == replaced
