"""What the documents name is there: variables, folders of the home, and the headings that links lead to."""

import re
from pathlib import Path

from build.home import ROOT, Home
from build.sources.releases import listed_digests
from build.version import Engine, parse_version
from tests.docs.test_docs import DOCUMENTS, table

CONFIGURATION = ROOT / "docs/configuration.md"
VERSIONS = ROOT / "docs/versions.md"


def test_measured_versions_can_be_built() -> None:
    measured = [parse_version(row) for row in table(VERSIONS, "| version | write-heavy |")]
    assert all(version.ref in listed_digests(version.engine) for version in measured)


def test_variables_and_folders() -> None:
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
