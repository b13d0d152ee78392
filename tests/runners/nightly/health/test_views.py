"""The views of the status of a box: lines for people, JSON, and metrics as Prometheus reads them."""

import json
import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from build.home import ROOT
from history.escaping.json_strings import json_text
from runners.nightly import status
from runners.nightly.status import FAMILIES, LONGEST_LABEL, prometheus_text, status_json, status_lines
from tests.runners.nightly.health.made_up import labelled, made_up
from tests.suites.golden import require_golden

GOLDEN = ROOT / "tests/golden/status"
NAMES = {family.name for family in FAMILIES}


def parsed(text: str) -> dict[str, Metric]:
    return {family.name: family for family in text_string_to_metric_families(text)}


def test_the_metrics_and_the_lines_for_people(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status, "own_version", lambda: "05126eda")
    monkeypatch.setattr(status, "newest", lambda: 17)
    require_golden("tidemark.prom", prometheus_text(made_up()), GOLDEN)
    require_golden("status.txt", "\n".join(status_lines(made_up())) + "\n", GOLDEN)


def test_the_metrics_are_few_documented_and_keep_the_conventions() -> None:
    """https://prometheus.io/docs/practices/naming/, https://prometheus.io/docs/instrumenting/exposition_formats/."""
    found = parsed(prometheus_text(made_up()))
    assert found.keys() == NAMES
    assert len(found) <= 10
    documented = (ROOT / "docs/nightly.md").read_text()
    for family in found.values():
        assert re.fullmatch(r"tidemark(_[a-z]+)+", family.name)
        assert f"`{family.name}" in documented
        assert family.documentation.endswith(".")
        assert family.type == "gauge"
        assert all(sample.labels["box"] == "db1" for sample in family.samples)


def numbers_in(value: Any) -> Iterator[float]:
    """All numbers in JSON; a time as seconds."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for inner in value:
            yield from numbers_in(inner)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield float(value)
    elif isinstance(value, str):
        try:
            yield datetime.fromisoformat(value).timestamp()
        except ValueError:
            return


def test_the_json_has_every_number_of_the_metrics() -> None:
    in_json = {*numbers_in(json.loads(json_text(status_json(made_up()))))}
    values = {
        sample.value
        for family in parsed(prometheus_text(made_up())).values()
        for sample in family.samples
        if family.name not in ("tidemark_healthy", "tidemark_state", "tidemark_result_overdue")
    }
    assert len(values) == 5
    assert values <= in_json


@pytest.mark.deep("a whole command in a process of its own")
@given(st.text(max_size=300))
@example('a"b\\n\\\\c\nd')
@example("\r\u2028\x85")
@example("\ud800")
def test_whatever_a_name_holds_the_metrics_can_be_read_and_have_it(text: str) -> None:
    found = parsed(prometheus_text(labelled(text)))
    kept = text[:LONGEST_LABEL].encode("utf-8", "replace").decode()
    (sample,) = found["tidemark_result_overdue"].samples
    expected = {"box": kept, "suite": "write-heavy", "profile": kept, "configuration": kept, "tracked": kept}
    assert sample.labels == expected
    assert len(found["tidemark_state"].samples) == 7
