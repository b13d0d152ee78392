"""The metrics as Prometheus reads them, by its own parser; every view has every fact."""

import json
import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from build.home import ROOT
from history.escaping.json_strings import json_text
from runners.monitoring.families import FAMILIES
from runners.monitoring.json_view import facts_json
from runners.monitoring.prometheus import LONGEST_LABEL, prometheus_text
from runners.monitoring.text_view import facts_lines
from tests.runners.monitoring.made_up import facts, labelled
from tests.suites.golden import require_golden

GOLDEN = ROOT / "tests/golden/monitoring"
EXAMPLES = ROOT / "runners/examples/monitoring"
NAMES = {family.name for family in FAMILIES}


def parsed(text: str) -> dict[str, Metric]:
    return {family.name: family for family in text_string_to_metric_families(text)}


def test_the_file_is_as_documented() -> None:
    require_golden("tidemark.prom", prometheus_text(facts()), GOLDEN)


def test_the_lines_for_people() -> None:
    require_golden("status.txt", "\n".join(facts_lines(facts())) + "\n", GOLDEN)


def test_every_family_can_be_read_and_keeps_the_conventions() -> None:
    """https://prometheus.io/docs/practices/naming/, https://prometheus.io/docs/instrumenting/exposition_formats/."""
    found = parsed(prometheus_text(facts()))
    assert found.keys() == NAMES
    for family in found.values():
        assert re.fullmatch(r"tidemark(_[a-z]+)+", family.name)
        assert family.documentation.endswith(".")
        assert family.type == "gauge"
        assert not family.name.endswith("_total")  # of counters alone
        seen = [tuple(sorted(sample.labels.items())) for sample in family.samples]
        assert len(set(seen)) == len(seen)
        assert all(sample.labels["box"] == "db1" for sample in family.samples)
    assert found["tidemark_night_duration_seconds"].samples[0].value == 95 * 60
    assert found["tidemark_recent_disturbed_rounds_ratio"].samples[0].value == pytest.approx(0.03)


def numbers_in(value: Any) -> Iterator[float]:
    """All numbers in JSON; a time, or an age in days, as seconds."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from (number * 86400 if name.endswith("_days") else number for number in numbers_in(inner))
    elif isinstance(value, list):
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
    in_json = {*numbers_in(json.loads(json_text(facts_json(facts()))))}
    of_states = {0.0, 1.0, 5e8}  # flags, and the least free space, which is no fact of a box
    missing = {
        family.name: sample.value
        for family in parsed(prometheus_text(facts())).values()
        for sample in family.samples
        if sample.value not in in_json | of_states
    }
    assert missing == {}


@pytest.mark.deep("a whole command in a process of its own")
@given(st.text(max_size=300))
@example('a"b\\n\\c\nd')
@example("\r\u2028\x85")
@example("\ud800")
def test_whatever_a_name_holds_the_file_can_be_read_and_has_it(text: str) -> None:
    found = parsed(prometheus_text(labelled(text)))
    kept = text[:LONGEST_LABEL].encode("utf-8", "replace").decode()
    (sample,) = found["tidemark_result_overdue"].samples
    expected = {"box": kept, "suite": "write-heavy", "profile": kept, "configuration": kept, "tracked": kept}
    assert sample.labels == expected
    assert len(found["tidemark_state"].samples) == 7


# --- the examples


def expressions(value: Any) -> Iterator[str]:
    """All PromQL in a dashboard or a file of rules."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if name in ("expr", "query") and isinstance(inner, str):
                yield inner
            else:
                yield from expressions(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from expressions(inner)


def used_names(document: Any) -> set[str]:
    return {name for text in expressions(document) for name in re.findall(r"tidemark_\w+", text)}


def test_the_example_of_alert_rules_names_only_what_is_exported() -> None:
    rules = yaml.safe_load((EXAMPLES / "alerts.yml").read_text())
    assert len(used_names(rules)) > 5
    assert used_names(rules) <= NAMES
    for group in rules["groups"]:
        for rule in group["rules"]:
            assert rule.keys() >= {"alert", "expr", "annotations"}


def test_the_example_of_a_dashboard_shows_only_what_is_exported() -> None:
    dashboard = json.loads((EXAMPLES / "dashboard.json").read_text())
    assert used_names(dashboard) <= NAMES
    assert len(used_names(dashboard)) > 10
    identifiers = [panel["id"] for panel in dashboard["panels"]]
    assert len(set(identifiers)) == len(identifiers)


def test_a_metric_that_is_not_exported_is_seen() -> None:
    assert used_names({"a": [{"expr": "rate(tidemark_nothing[5m])"}]}) == {"tidemark_nothing"}


def test_the_examples_are_named_in_the_documents() -> None:
    text = (ROOT / "docs/nightly.md").read_text()
    for path in sorted(EXAMPLES.iterdir()):
        assert str(path.relative_to(ROOT)) in text, path
    assert all(family.name in text for family in FAMILIES)
