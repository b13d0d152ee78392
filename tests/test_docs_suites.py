"""docs/suites.md says what a suite.toml may hold, and its example is a suite."""

from pathlib import Path
from typing import Any

import pytest

from build.version import Engine
from suites.definition import Mode, SuiteError, load_suite
from suites.definition import Profile as ProfileKeys
from suites.definition import Step as StepKeys
from suites.definition import Suite as SuiteKeys
from tests.test_docs import SUITES, example, table


def _type_and_bounds(schema: dict[str, Any]) -> tuple[str, str]:
    """What a property's JSON schema says, in the words of docs/suites.md."""
    chosen = next((each for each in schema.get("anyOf", []) if each["type"] != "null"), schema)
    kind = "name" if "pattern" in chosen else chosen.get("type", "")
    bounds = [f"{sign} {chosen[key]:g}" for key, sign in _SIGNS.items() if key in chosen]
    if "minProperties" in chosen or ("minItems" in chosen and "prefixItems" not in chosen):
        bounds.append("not empty")
    listed = ", ".join(f"`{each}`" for each in chosen.get("enum", ()))
    if chosen.get("$ref", "").endswith("/Mode"):
        kind, listed = "string", ", ".join(f"`{each}`" for each in Mode)
    if kind == "object":
        kind = "table"
    elif "prefixItems" in chosen:
        inner, limits = _type_and_bounds(chosen["prefixItems"][0])
        return f"array of {len(chosen['prefixItems'])} {inner}s", limits
    elif kind == "array" and chosen["items"]["$ref"].endswith("/Engine"):
        kind, listed = "array of strings", ", ".join(f"`{each}`" for each in Engine)
        return kind, "; ".join([*bounds, listed])
    elif kind == "array":
        kind = "array of tables"
    return kind, ", ".join([*bounds, listed] if listed else bounds)


_SIGNS = {"exclusiveMinimum": ">", "minimum": "≥", "maximum": "≤"}


@pytest.mark.parametrize(
    ("heading", "model"),
    [("of the file", SuiteKeys), ("of a profile", ProfileKeys), ("of a step", StepKeys)],
    ids=["suite", "profile", "step"],
)
def test_keys_of_a_suite(
    heading: str, model: type[SuiteKeys | ProfileKeys | StepKeys], tmp_path: Path
) -> None:
    section = SUITES.read_text(encoding="utf-8").partition(f"\n## Keys {heading}\n")[2].partition("\n## ")[0]
    (tmp_path / "section.md").write_text(section, encoding="utf-8")
    rows = table(tmp_path / "section.md", "| key | type | unit | bounds | default | meaning |")
    schema = model.model_json_schema()
    defaults = {
        key: str(each["default"]).lower() for key, each in schema["properties"].items() if "default" in each
    }
    wanted = {
        key: [*_type_and_bounds(each), defaults.get(key, "required")]
        for key, each in schema["properties"].items()
        if key not in ("folder", "digest")  # ours, not the file's
    }
    said = {key: [cells[0], cells[2], cells[3].strip("`")] for key, cells in rows.items()}
    assert said == wanted


def test_the_example_is_a_suite(tmp_path: Path) -> None:
    example(tmp_path)
    suite = load_suite(f"{tmp_path}/transfer")
    assert [step.name for step in suite.steps] == ["transfer", "balance"]
    (tmp_path / "transfer/transfer.sql").unlink()
    with pytest.raises(SuiteError, match=r"transfer\.sql"):
        load_suite(f"{tmp_path}/transfer")
