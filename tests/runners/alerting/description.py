"""GitHub's own description of its API: which requests it allows."""

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from openapi_schema_validator import OAS30Validator

DESCRIPTION = json.loads(Path(__file__).with_name("github-issues.json").read_text())


def matched(path: str) -> tuple[dict[str, str], dict[str, Any]] | None:
    """The values in a path and its operations by method; None when nothing is described there."""
    for template, operations in DESCRIPTION["paths"].items():
        pattern = re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", template)
        match = re.fullmatch(pattern, path)
        if match:
            return match.groupdict(), operations
    return None


def problems(operation: Any, values: dict[str, str], query: str, body: Any) -> list[str]:
    """What GitHub would not take of a request."""
    found = []
    schemas = {parameter["name"]: parameter["schema"] for parameter in operation["parameters"]}
    for name, texts in parse_qs(query).items():
        values[name] = texts[0]
    for name, text in values.items():
        if name not in schemas:
            found.append(f"there is no parameter {name}")
            continue
        value: Any = int(text) if schemas[name].get("type") == "integer" and text.isdigit() else text
        found += [f"{name}: {error.message}" for error in OAS30Validator(schemas[name]).iter_errors(value)]
    content = operation["requestBody"].get("content")
    if content:
        schema = content["application/json"]["schema"]
        found += [error.message for error in OAS30Validator(schema).iter_errors(body)]
        # A schema lets unknown names pass, and so does GitHub: what was meant by them would be lost.
        found += [f"no property {name}" for name in body if name not in schema["properties"]]
        title, text = body.get("title", ""), body.get("body") or ""
        if len(title) > 256 or len(text) > 65_536 or not title.isprintable():
            found.append("a title or a body that GitHub does not take")
        if "state_reason" in body and "state" not in body:
            found.append("a reason without a state, which GitHub ignores")
    return found
