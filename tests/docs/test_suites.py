"""docs/suites.md says what a suite.toml may hold, and its example is a suite."""

import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from suites.definition import LUA_MODULES, Scale, ScaledTable, SuiteError, TableBeside, load_suite
from suites.definition import Suite as SuiteKeys
from suites.keys.check import DataCheck
from suites.keys.profile import Profile as ProfileKeys
from suites.keys.step import Step as StepKeys
from tests.docs.test_docs import SUITES, example, table


def _type_and_bounds(schema: dict[str, Any], definitions: dict[str, Any]) -> tuple[str, str]:
    """What a property's JSON schema says, in the words of docs/suites.md."""
    chosen = next((option for option in schema.get("anyOf", []) if option.get("type") != "null"), schema)
    meant = definitions.get(chosen.get("$ref", "").rpartition("/")[2], chosen)
    kind = _kind_of_name(chosen["pattern"]) if "pattern" in chosen else meant.get("type", "")
    bounds = [f"{sign} {chosen[key]:g}" for key, sign in _SIGNS.items() if key in chosen]
    if "minProperties" in chosen or ("minItems" in chosen and "prefixItems" not in chosen):
        bounds.append("not empty")
    listed = _listed(meant)
    if kind == "object":
        kind = "table"
    elif "prefixItems" in chosen:
        inner, limits = _type_and_bounds(chosen["prefixItems"][0], definitions)
        return f"array of {len(chosen['prefixItems'])} {inner}s", limits
    elif kind == "array":
        item = chosen["items"]
        if "$ref" not in item:
            ranges = [f"{sign} {item[key]:g}" for key, sign in _SIGNS.items() if key in item]
            return f"array of {item['type']}s", ", ".join(ranges)
        items = definitions[item["$ref"].rpartition("/")[2]]
        if "enum" in items:
            return "array of strings", "; ".join([*bounds, _listed(items)])
        kind = "array of tables"
    return kind, ", ".join([*bounds, listed] if listed else bounds)


def _kind_of_name(pattern: str) -> str:
    return "table name" if "_" in pattern else "name"


def _listed(schema: dict[str, Any]) -> str:
    return ", ".join(f"`{value}`" for value in schema.get("enum", ()))


_SIGNS = {"exclusiveMinimum": ">", "minimum": "≥", "maximum": "≤"}


@pytest.mark.parametrize(
    ("heading", "model"),
    [
        ("of the file", SuiteKeys),
        ("of a profile", ProfileKeys),
        ("of a table beside", TableBeside),
        ("of a scale", Scale),
        ("of a table of a scale", ScaledTable),
        ("of a step", StepKeys),
        ("of a check", DataCheck),
    ],
    ids=["suite", "profile", "beside", "scale", "table", "step", "check"],
)
def test_keys_of_a_suite(heading: str, model: type[BaseModel], tmp_path: Path) -> None:
    section = SUITES.read_text(encoding="utf-8").partition(f"\n## Keys {heading}\n")[2].partition("\n## ")[0]
    (tmp_path / "section.md").write_text(section, encoding="utf-8")
    rows = table(tmp_path / "section.md", "| key | type | unit | bounds | default | meaning |")
    schema = model.model_json_schema()
    defaults = {
        key: str(values["default"]).lower()
        for key, values in schema["properties"].items()
        if "default" in values
    }
    wanted = {
        key: [*_type_and_bounds(values, schema.get("$defs", {})), defaults.get(key, "required")]
        for key, values in schema["properties"].items()
        if key not in ("folder", "files")  # ours, not the file's
    }
    said = {
        key.removesuffix(".ENGINE"): [cells[0], cells[2], cells[3].strip("`")] for key, cells in rows.items()
    }
    assert said == wanted


def test_the_example_is_a_suite(tmp_path: Path) -> None:
    example(tmp_path)
    suite = load_suite(f"{tmp_path}/transfer")
    assert [step.name for step in suite.steps] == ["transfer", "balance"]
    (tmp_path / "transfer/transfer.sql").unlink()
    with pytest.raises(SuiteError, match=r"transfer\.sql"):
        load_suite(f"{tmp_path}/transfer")


def test_the_example_with_a_scale_is_a_suite(tmp_path: Path) -> None:
    example(tmp_path)
    suite = load_suite(f"{tmp_path}/stockroom")
    assert [step.name for step in suite.steps] == ["sell", "scrap"]
    assert suite.scale is not None
    assert suite.scale.unit == "warehouse"


def _lua_module() -> str:
    return (LUA_MODULES / "tidemark.lua").read_text(encoding="utf-8")


def test_options_that_every_script_can_read() -> None:
    block = re.search(r"^local OPTIONS = \{\n(.*?)^\}", _lua_module(), re.MULTILINE | re.DOTALL)
    assert block is not None
    declared = set(re.findall(r"^   (\w+) = \{", block[1], re.MULTILINE))
    rows = table(SUITES, "| option | of | meaning |")
    assert {name for cell in rows for name in re.findall(r"\w+", cell)} == declared


def test_functions_of_the_lua_module() -> None:
    defined = set(re.findall(r"^function (tidemark\.\w+\([\w, .]*\))", _lua_module(), re.MULTILINE))
    assert set(table(SUITES, "| function | what it gives |")) == defined - {"tidemark.script(suite)"}
