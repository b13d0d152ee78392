"""Stands in for GitHub's tracker: issues with state, requests checked against its description, faults."""

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from openapi_schema_validator import OAS30Validator

DESCRIPTION = json.loads(Path(__file__).with_name("github-issues.json").read_text())

REPOSITORY = "example/alerts"
TOKEN = "ghs_secret_of_a_test"


@dataclass(frozen=True)
class Fault:
    """What goes wrong with one request."""

    status: int = 0
    """The answer; 0 is none at all."""

    headers: dict[str, str] = field(default_factory=dict)
    after: bool = False
    """Whether the request is carried out all the same."""

    cut: bool = False
    """Whether the connection is reset in the middle of the answer."""

    wait: float = 0.0
    """Seconds before the answer."""

    echoes: bool = False
    """Whether the answer repeats what the client signed in with, as a careless proxy does."""

    method: str = ""
    """Only a request of this method; any when empty."""


class GitHub:
    """The state of the stand-in: issues, what was asked, and what goes wrong next."""

    def __init__(self) -> None:
        self.issues: dict[int, dict[str, Any]] = {}
        self.comments: list[tuple[int, str]] = []
        self.requests: list[str] = []
        self.violations: list[str] = []
        """Requests that GitHub's description does not allow."""
        self.faults: list[Fault] = []
        self.url = ""

    def answer(self, method: str, target: str, body: Any) -> tuple[int, Any]:
        """Carry out a request."""
        parts = urlsplit(target)
        found = self._matched(parts.path)
        if found is None or method.lower() not in found[1]:
            return 404, {"message": "Not Found"}
        values, operations = found
        problems = self._problems(operations[method.lower()], values, parts.query, body)
        if problems:
            self.violations += problems
            return 422, {"message": "Validation Failed", "errors": problems}
        return self._act(method, values, parse_qs(parts.query), body)

    def _matched(self, path: str) -> tuple[dict[str, str], dict[str, Any]] | None:
        for template, operations in DESCRIPTION["paths"].items():
            pattern = re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", template)
            match = re.fullmatch(pattern, path)
            if match:
                return match.groupdict(), operations
        return None

    def _problems(self, operation: Any, values: dict[str, str], query: str, body: Any) -> list[str]:
        problems = []
        schemas = {each["name"]: each["schema"] for each in operation["parameters"]}
        for name, texts in parse_qs(query).items():
            values[name] = texts[0]
        for name, text in values.items():
            if name not in schemas:
                problems.append(f"there is no parameter {name}")
                continue
            value: Any = int(text) if schemas[name].get("type") == "integer" and text.isdigit() else text
            problems += [
                f"{name}: {each.message}" for each in OAS30Validator(schemas[name]).iter_errors(value)
            ]
        content = operation["requestBody"].get("content")
        if content:
            schema = content["application/json"]["schema"]
            problems += [each.message for each in OAS30Validator(schema).iter_errors(body)]
            # A schema lets unknown names pass, and so does GitHub: what was meant by them would be lost.
            problems += [f"no property {name}" for name in body if name not in schema["properties"]]
        return problems

    def _act(self, method: str, values: dict[str, str], query: Any, body: Any) -> tuple[int, Any]:
        if f"{values['owner']}/{values['repo']}" != REPOSITORY:
            return 404, {"message": "Not Found"}
        number = int(values.get("issue_number", 0))
        if method == "GET" and not number:
            page = int(query.get("page", ["1"])[0])
            size = int(query.get("per_page", ["30"])[0])
            newest = sorted(self.issues.values(), key=lambda issue: -int(issue["number"]))
            return 200, newest[(page - 1) * size : page * size]
        if method == "POST" and not number:
            return 201, self.create(body)
        if number not in self.issues:
            return 404, {"message": "Not Found"}
        if method == "POST":
            self.comments.append((number, body["body"]))
            return 201, {"id": len(self.comments), "body": body["body"]}
        if method == "PATCH":
            self.issues[number] |= body
        return 200, self.issues[number]

    def create(self, body: Any) -> dict[str, Any]:
        number = len(self.issues) + 1
        names = body.get("labels", [])
        self.issues[number] = {
            "number": number,
            "url": f"{self.url}/repos/{REPOSITORY}/issues/{number}",
            "title": body["title"],
            "body": body.get("body"),
            "state": "open",
            "labels": [{"name": name} for name in names],
            "created_at": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
        return self.issues[number]

    def label(self, number: int, name: str) -> None:
        """What a person does."""
        self.issues[number]["labels"].append({"name": name})


@contextmanager
def running() -> Iterator[GitHub]:
    """A stand-in on a port of its own."""
    github = GitHub()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (Handler,), {"github": github}))
    github.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield github
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class Handler(BaseHTTPRequestHandler):
    """Answers for a GitHub."""

    github: GitHub

    def _any(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else None
        self.github.requests.append(f"{self.command} {self.path}")
        fault = self._fault()
        if self.headers.get("Authorization") not in (f"token {TOKEN}", f"Bearer {TOKEN}"):
            fault = Fault(401, echoes=bool(fault and fault.echoes))
        answer = None
        if fault is None or fault.after or fault.cut:
            answer = self.github.answer(self.command, self.path, body)
        self._give(fault or Fault(), answer)

    def _give(self, fault: Fault, answer: tuple[int, Any] | None) -> None:
        threading.Event().wait(fault.wait)
        if fault.status:
            signed = f" of {self.headers.get('Authorization')}" if fault.echoes else ""
            self._reply(fault.status, {"message": f"fault {fault.status}{signed}"}, fault.headers)
        elif answer is not None:
            self._reply(*answer, cut=fault.cut)
        else:
            self.close_connection = True

    do_GET = do_POST = do_PATCH = _any

    def _fault(self) -> Fault | None:
        if self.github.faults and self.github.faults[0].method in ("", self.command):
            return self.github.faults.pop(0)
        return None

    def _reply(
        self, status: int, found: Any, headers: dict[str, str] | None = None, *, cut: bool = False
    ) -> None:
        text = json.dumps(found).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text[: len(text) // 2] if cut else text)
        if cut:
            self.wfile.flush()
            self.connection.close()

    def log_message(self, *words: object) -> None: ...
