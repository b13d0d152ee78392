"""Cuts what we use out of GitHub's OpenAPI description, for the stand-in tracker to check requests against.

npm pack @octokit/openapi, unpack it, then:
python -m tests.runners.alerting.record_openapi package/generated/api.github.com.deref.json
"""

import json
import sys
from pathlib import Path
from typing import Any

KEPT = Path(__file__).with_name("github-issues.json")

USED = {
    "/repos/{owner}/{repo}/actions/runs/{run_id}/jobs": ("get",),
    "/repos/{owner}/{repo}/actions/workflows/{workflow_id}": ("get",),
    "/repos/{owner}/{repo}/actions/workflows/{workflow_id}/runs": ("get",),
    "/repos/{owner}/{repo}/activity": ("get",),
    "/repos/{owner}/{repo}/collaborators/{username}/permission": ("get",),
    "/repos/{owner}/{repo}/issues/comments/{comment_id}": ("get", "patch"),
    "/repos/{owner}/{repo}/pulls/{pull_number}": ("get",),
    "/repos/{owner}/{repo}/releases": ("get",),
    "/repos/{owner}/{repo}/statuses/{sha}": ("post",),
    "/user": ("get",),
    "/repos/{owner}/{repo}": ("get",),
    "/repos/{owner}/{repo}/issues": ("get", "post"),
    "/repos/{owner}/{repo}/issues/{issue_number}": ("get", "patch"),
    "/repos/{owner}/{repo}/issues/{issue_number}/comments": ("get", "post"),
    "/repos/{owner}/{repo}/issues/{issue_number}/events": ("get",),
    "/repos/{owner}/{repo}/issues/{issue_number}/labels/{name}": ("delete",),
}

PROSE = ("description", "example", "examples", "summary", "x-github", "externalDocs", "tags", "operationId")


def cut(description: dict[str, Any]) -> dict[str, Any]:
    """Parameters, request bodies and the codes of answers, without prose."""
    paths: dict[str, Any] = {}
    for path, methods in USED.items():
        for method in methods:
            operation = description["paths"][path][method]
            paths.setdefault(path, {})[method] = {
                "parameters": [_bare(parameter) for parameter in operation.get("parameters", ())],
                "requestBody": _bare(operation.get("requestBody", {})),
                "answers": sorted(operation["responses"]),
            }
    return {"version": description["info"]["version"], "paths": paths}


def _bare(node: Any) -> Any:
    if isinstance(node, list):
        return [_bare(part) for part in node]
    if not isinstance(node, dict):
        return node
    bare = {
        name: _bare(part)
        for name, part in node.items()
        # `description` may be a property that is called so, which is a schema and no prose.
        if name not in PROSE or isinstance(part, dict)
    }
    if bare.get("nullable") and "type" not in bare:
        del bare["nullable"]  # OpenAPI 3.0 gives it a meaning only beside a type
    return bare


if __name__ == "__main__":
    KEPT.write_text(json.dumps(cut(json.loads(Path(sys.argv[1]).read_text())), indent=1) + "\n")
