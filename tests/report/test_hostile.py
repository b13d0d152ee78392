"""Text from outside stays text: in every page, in every file of data, and in the names of files."""

import json
import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import hypothesis
import pytest
from hypothesis import strategies as st
from markupsafe import escape
from sqlalchemy import update

from history.changes import repository
from history.escaping.characters import visible
from history.open import open_store
from history.store.records import DroppedRound, SessionStatus
from history.store.schema import changes, gaps
from report.markup.template import Template
from suites.measurement import Measurement
from tests.history.handmade import MACHINE, NIGHT, run_record, session_start
from tests.history.watched import record_regression
from tests.report.conftest import write
from tests.report.hostile import KINDS
from tests.report.parsed import dead_links, pages_of, parsed
from tests.report.rich import record_bisect

ALLOWED = {
    *("html", "head", "meta", "link", "title", "script", "body", "a", "header", "div", "nav", "ul", "li"),
    *("ol", "main", "h1", "h2", "h3", "p", "span", "small", "b", "table", "caption", "thead", "tbody"),
    *("tfoot", "tr", "th", "td", "abbr", "button", "details", "summary", "dl", "dt", "dd", "pre", "code"),
    *("figure", "figcaption", "section", "footer", "svg", "g", "path", "rect", "line", "circle", "text"),
    *("strong", "defs", "pattern", "iframe", "noscript", "form", "label", "select", "option", "input"),
}
"""The elements that pages have."""


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site of a history in which every text from outside is one of KINDS."""
    folder = tmp_path_factory.mktemp("hostile")
    path = folder / "history.db"
    record_regression(path, judged=True)
    for number, text in enumerate(KINDS):
        _record(path, number, text)
    with open_store(path) as store:
        with store.database.writing() as connection:
            connection.execute(update(changes).values(reason=KINDS[0]))
            connection.execute(update(gaps).values(reason=KINDS[1]))
        with store.database.reading() as connection:
            fingerprint = repository.load(connection)[0].fingerprint
    record_bisect(path, fingerprint, NIGHT + timedelta(days=200))
    write(path, folder / "site")
    return folder / "site"


def _record(path: Path, number: int, text: str) -> None:
    moment = NIGHT + timedelta(days=100 + number)
    with open_store(path, clock=lambda: moment) as store:
        machine = replace(
            MACHINE,
            hostname=text[:200],
            fingerprint=f"h{number}",
            cpu_model=text,
            kernel=text,
            details={"governor": text, "settings": {text[:80]: text}},
        )
        options = {
            "versions": ["postgres@17.11", "postgres@18.6"],
            "branches": {"postgres@18.6": text[:300]},
            "groups": {text[:100]: text},
            "machine_changed": [text],
            "left_out": [text],
        }
        start = replace(
            session_start(f"{number}{text[:150]}", suite=text[:100] or "s"),
            machine=machine,
            profile=text[:50] or "p",
            command=text,
            tools={text[:50]: text},
            options=options,
        )
        session = store.start_session(start)
        step = text[:100]
        for place, version in enumerate(("postgres@17.11", "postgres@18.6")):
            for repetition in (1, 2, 3):
                record = run_record(
                    {"qps": 1000.0 + place + repetition},
                    version=version,
                    step=step,
                    repetition=repetition,
                    position=place * 3 + repetition,
                )
                record = replace(
                    record,
                    configuration={text[:100]: text},
                    measurement=Measurement({"qps": 1000.0 + place + repetition}, (1.0, 2.0), (text,)),
                )
                store.record_run(session, record)
            store.record_run(
                session,
                run_record(
                    version=version, step=f"{step} 2", repetition=1, position=10 + place, failure=text
                ),
            )
        store.record_dropped(session, DroppedRound(step, 1, text, {"postgres@17.11": 5.0}))
        store.finish_session(session, SessionStatus.FINISHED)


def test_there_are_thirty_kinds() -> None:
    assert len(set(KINDS)) >= 30


def test_no_page_has_an_element_or_attribute_of_a_hostile_text(hostile: Path) -> None:
    pages = pages_of(hostile)
    assert len(pages) > len(KINDS) * 3
    for path in pages:
        page = parsed(path)
        assert {tag for tag, _ in page.tags} <= ALLOWED, path
        for tag, given in page.tags:
            assert not [name for name in given if name.startswith("on")], path
            assert not given.get("href", "").lower().startswith(("javascript:", "data:", "//", "http:")), path
            assert tag != "script" or given.get("src", "").endswith(".js"), path
            assert tag != "iframe" or given.get("sandbox") == "allow-scripts", path


def test_every_hostile_text_is_shown_as_itself(hostile: Path) -> None:
    shown = [parsed(path).text for path in pages_of(hostile)]
    for text in KINDS:
        plain = visible(" ".join(text.splitlines()[0][:80].split()))
        assert any(plain in " ".join(page.split()) for page in shown), text


def test_nothing_is_hidden_in_a_page_or_what_its_scripts_show(hostile: Path) -> None:
    for path in pages_of(hostile):
        text = path.read_text(encoding="utf-8")
        assert visible(text) == text, path
    for file in (hostile / "data").rglob("*.js"):
        for line in file.read_text(encoding="utf-8").splitlines():
            shown = json.dumps(json.loads(f"[{line.partition('(')[2][:-2]}]"), ensure_ascii=False)
            assert visible(shown) == shown, file
            assert not re.search(r"\\u00[01]|\\[bfr]", shown.replace(r"\\", "")), file


def test_names_of_files_are_harmless(hostile: Path) -> None:
    for path in hostile.rglob("*"):
        assert re.fullmatch(r"[A-Za-z0-9._-]{1,120}", path.name), path
    assert not (hostile.parent / "etc").exists()


def test_data_are_calls_with_json_and_end_no_element(hostile: Path) -> None:
    files = list((hostile / "data").rglob("*.js"))
    assert files
    for file in files:
        text = file.read_text(encoding="utf-8")
        assert "<" not in text
        assert text.isascii()
        for line in text.splitlines(keepends=True):
            match = re.fullmatch(r"tidemark\.(\w+)\((.*)\);\n", line)
            assert match, file
            json.loads(f"[{match[2]}]")


def test_links_of_hostile_names_lead_to_their_pages(hostile: Path) -> None:
    assert list(dead_links(hostile)) == []


@hypothesis.given(st.text(alphabet=st.sampled_from("&<>'\"a é")) | st.integers() | st.floats())
def test_what_a_template_takes_is_escaped(value: object) -> None:
    assert Template('<a title="{}">')(value) == f'<a title="{escape(str(value))}">'
