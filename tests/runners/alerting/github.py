"""Stands in for GitHub's tracker: issues with state, requests checked against its description, faults.

Those of other trackers keep their issues in its form, too, and translate requests and answers.
"""

import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

from runners.alerting.tracker import Tracker
from runners.alerting.trackers.github import GitHubTracker
from tests.runners.alerting import description
from tests.runners.alerting.browser.persons import IssuesOfPeople
from tests.runners.alerting.github_runs import workflow_answer

REPOSITORY = "example/alerts"
OTHER = "somebody/else"
"""A repository of somebody else, which the token may write to as well."""

TOKEN = "ghs_secret_of_a_test"

BOT, PERSON = "tidemark[bot]", "ann"
"""The account of the token, and that of a person."""

IDS = {REPOSITORY: 1, OTHER: 2}


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

    message: str = ""
    """What the answer says; something of its own when empty."""

    errors: tuple[Any, ...] = ()
    """GitHub's list of errors in the answer."""

    content: bytes | None = None
    """The whole content of the answer, instead of JSON."""

    twice: bool = False
    """Whether the request is carried out twice, as by a proxy that repeats it, and answered once."""


class Answer(NamedTuple):
    """A status and what is answered as JSON."""

    status: int
    content: Any
    headers: Mapping[str, str] = {}


NOT_FOUND = Answer(404, {"message": "Not Found"})
SWITCHED_OFF = Answer(410, {"message": "Issues has been disabled in this repository."})
ARCHIVED = Answer(403, {"message": "Repository was archived so is read-only."})
DELETED = Answer(410, {"message": "This issue was deleted"})


class GitHub(IssuesOfPeople):
    """The state of the stand-in: issues, what was asked, and what goes wrong next."""

    person = PERSON
    kind = "github"
    """Its name in a plan."""

    below = ""
    """The path at which its pages are."""

    editing = "PATCH"
    """The method with which issues are edited."""

    def __init__(self) -> None:
        super().__init__()
        self.elsewhere: dict[int, dict[str, Any]] = {}
        """The issues of OTHER."""
        self.comments: list[tuple[int, str]] = []
        self.requests: list[str] = []
        self.violations: list[str] = []
        """Requests that GitHub's description does not allow."""
        self.faults: list[Fault] = []
        self.url = ""
        self.name = REPOSITORY
        """Another one after a person renamed the repository; requests under the old name are redirected."""
        self.transferred: dict[int, int] = {}
        """Number here -> number in OTHER."""
        self.deleted: set[int] = set()
        self.is_switched_off = False
        """Whether a person switched the repository's issues off."""
        self.is_archived = False
        """Whether a person archived the repository, which can be read only."""
        self.refused_labels: set[str] = set()
        self.assignable: set[str] = {PERSON}
        """The accounts to which an issue can be assigned."""
        self.permissions: dict[str, bool] = {"admin": False, "push": True, "triage": True, "pull": True}
        """Of the token's account in the repository."""
        self.headers: dict[str, str] = {}
        """Of answers about the repository."""
        self.after_reads: list[Callable[[dict[str, Any]], None]] = []
        """What a person does to an issue right after it was read, each once."""
        self.after_edits: list[Callable[[dict[str, Any]], None]] = []
        """What a person does to an issue right after an edit, before it is answered, each once."""
        self.edits: list[Any] = []
        """The contents of all edits that were carried out."""
        self.edited_elsewhere: list[int] = []
        """Writes to issues of OTHER."""
        self.workflow_runs: list[dict[str, Any]] = []
        """The runs of the nightly workflow, the latest first, each with its `jobs`."""

    def tracker(self, timeout_seconds: float = 5.0, token: str = TOKEN, name: str = REPOSITORY) -> Tracker:
        """The implementation that is tested, without pauses between writes."""
        return GitHubTracker(name, token, self.url, 0, timeout_seconds)

    def answer(self, method: str, target: str, body: Any) -> Answer:
        """Carry out a request."""
        parts = urlsplit(target)
        path, by_number = self._named(parts.path)
        found = description.matched(path)
        if found is None or method.lower() not in found[1]:
            return NOT_FOUND
        values, operations = found
        if len(values) == 2 and "issues" not in path:
            return self._repository(path)
        redirect = self._redirect(method, values, parts.path, parts.query, by_number)
        if redirect is not None:
            return redirect
        problems = description.problems(operations[method.lower()], dict(values), parts.query, body)
        if problems:
            self.violations += problems
            return Answer(422, {"message": "Validation Failed", "errors": problems})
        if "/actions/" in path:
            listed = workflow_answer(self.workflow_runs, values, parse_qs(parts.query))
            return NOT_FOUND if listed is None else Answer(200, listed)
        return self._act(method, values, parse_qs(parts.query), body)

    # --- addresses

    def _named(self, path: str) -> tuple[str, bool]:
        """A path with the repository's name, where a redirect gave its number."""
        match = re.match(r"/repositories/(\d+)", path)
        if match is None:
            return path, False
        name = {1: self.name, 2: OTHER}[int(match[1])]
        return f"/repos/{name}{path[match.end() :]}", True

    def _redirect(
        self, method: str, values: dict[str, str], path: str, query: str, by_number: bool
    ) -> Answer | None:
        """301 when reading and 307 when writing, as GitHub does for what was renamed or transferred."""
        name, number = f"{values['owner']}/{values['repo']}", int(values.get("issue_number", 0))
        rest = path.split("/issues", 1)[-1]
        if name == self.name and number in self.transferred:
            rest = rest.replace(str(number), str(self.transferred[number]), 1)
            place = f"/repositories/2/issues{rest}"
        elif name == REPOSITORY != self.name and not by_number:
            place = f"/repositories/1/issues{rest}"
        else:
            return None
        place += f"?{query}" if query else ""
        status = 301 if method == "GET" else 307
        return Answer(status, {"message": "Moved Permanently"}, {"Location": f"{self.url}{place}"})

    def _repository(self, path: str) -> Answer:
        if path == f"/repos/{REPOSITORY}" != f"/repos/{self.name}":
            return Answer(301, {}, {"Location": f"{self.url}/repositories/1"})
        for name, identity in ((self.name, 1), (OTHER, 2)):
            if path == f"/repos/{name}":
                about = {"id": identity, "full_name": name, "has_issues": not self.is_switched_off}
                rights = {"private": True, "archived": self.is_archived, "permissions": self.permissions}
                return Answer(200, about | rights, self.headers)
        return NOT_FOUND

    # --- requests

    def _act(self, method: str, values: dict[str, str], query: Any, body: Any) -> Answer:
        name = f"{values['owner']}/{values['repo']}"
        if name not in (self.name, OTHER):
            return NOT_FOUND
        number = int(values.get("issue_number", 0))
        issues = self.elsewhere if name == OTHER else self.issues
        if name == OTHER and method != "GET":
            self.edited_elsewhere.append(number)
        if name == self.name and self.is_switched_off:
            return SWITCHED_OFF
        if name == self.name and self.is_archived and method != "GET":
            return ARCHIVED
        if number:
            return self._act_on(issues, number, method, values, body)
        return self._create(body) if method == "POST" else self._listed(issues, query)

    def _listed(self, issues: dict[int, dict[str, Any]], query: Any) -> Answer:
        page, size = int(query.get("page", ["1"])[0]), int(query.get("per_page", ["30"])[0])
        listed = [issue for issue in issues.values() if self._is_listed(issue, query)]
        newest = sorted(listed, key=lambda issue: (issue["created_at"], int(issue["number"])), reverse=True)
        known = [
            {key: issue_shown[key] for key in issue_shown if key != "closed_by"} for issue_shown in newest
        ]
        return Answer(200, known[(page - 1) * size : page * size])

    def _act_on(
        self, issues: dict[int, dict[str, Any]], number: int, method: str, values: dict[str, str], body: Any
    ) -> Answer:
        if number in self.deleted:
            return DELETED
        if number not in issues:
            return NOT_FOUND
        issue = issues[number]
        if method == "POST":
            self.comments.append((number, body["body"]))
            return Answer(201, {"id": len(self.comments), "body": body["body"]})
        if method == "DELETE":
            return self._take_label(issue, unquote(values["name"]))
        if method == "PATCH":
            unknown = [name for name in body.get("assignees", ()) if name not in self.assignable]
            if unknown:
                errors = [{"resource": "Issue", "field": "assignees", "code": "invalid", "value": unknown}]
                return Answer(422, {"message": "Validation Failed", "errors": errors})
            self.edits.append(body)
            self._edit(issue, body)
            if self.after_edits:
                self.after_edits.pop(0)(issue)
        answer = dict(issue)
        if method == "GET" and self.after_reads:
            self.after_reads.pop(0)(issue)
        return Answer(200, answer)

    def _take_label(self, issue: dict[str, Any], name: str) -> Answer:
        """GitHub knows a label in whatever capitals."""
        kept = [label for label in issue["labels"] if label["name"].casefold() != name.casefold()]
        if len(kept) == len(issue["labels"]):
            return Answer(404, {"message": "Label does not exist"})
        issue["labels"] = kept
        return Answer(200, kept)

    def _is_listed(self, issue: dict[str, Any], query: Any) -> bool:
        gone = issue["number"] in self.deleted or issue["number"] in self.transferred
        return not gone and query.get("state", ["open"])[0] in ("all", issue["state"])

    def _edit(self, issue: dict[str, Any], body: Any) -> None:
        state, reason = body.get("state", issue["state"]), body.get("state_reason")
        if state != issue["state"]:
            closes = state == "closed"
            issue["closed_by"] = {"login": BOT} if closes else None
            issue["closed_at"] = self.moment() if closes else None
            issue["state_reason"] = (reason or "completed") if closes else "reopened"
        issue |= {name: body[name] for name in body if name not in ("state_reason", "assignees")}
        if "assignees" in body:
            issue["assignees"] = [{"login": name} for name in body["assignees"]]
        issue["updated_at"] = self.moment()

    def _create(self, body: Any) -> Answer:
        refused = self.refused_labels.intersection(body.get("labels", ()))
        if refused:
            errors = [{"resource": "Label", "field": "name", "code": "invalid", "value": refused.pop()}]
            return Answer(422, {"message": "Validation Failed", "errors": errors})
        if not (self.permissions.get("push") or self.permissions.get("triage")):
            body = {**body, "labels": []}  # which are silently dropped
        return Answer(201, self.create(body, BOT))

    def create(self, body: Any, author: str = PERSON) -> dict[str, Any]:
        number = len(self.issues) + 1
        names = body.get("labels", [])
        self.issues[number] = {
            "number": number,
            "url": f"{self.url}/repos/{self.name}/issues/{number}",
            "repository_url": f"{self.url}/repos/{self.name}",
            "title": body["title"],
            "body": body.get("body"),
            "state": "open",
            "labels": [{"name": name} for name in names],
            "assignees": [],
            "user": {"login": author},
            "closed_by": None,
            "closed_at": None,
            "state_reason": None,
            "html_url": f"{self.url}/{self.name}/issues/{number}",
            "created_at": self.moment(),
            "updated_at": self.moment(),
        }
        return self.issues[number]

    # --- what a person does with a repository

    def transfer(self, number: int, to: int) -> None:
        """To OTHER, under a number of its own."""
        self.transferred[number] = to
        place = f"{self.url}/repos/{OTHER}"
        moved = {"number": to, "url": f"{place}/issues/{to}", "repository_url": place}
        self.elsewhere[to] = self.issues[number] | moved


@contextmanager
def running(kind: type[GitHub] = GitHub) -> Iterator[Any]:
    """A stand-in on a port of its own."""
    github = kind()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (Handler,), {"github": github}))
    github.url = f"http://127.0.0.1:{server.server_address[1]}{kind.below}"
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
        if fault is None or fault.after or fault.cut or fault.twice:
            answer = self.github.answer(self.command, self.path, body)
            if fault is not None and fault.twice:
                self.github.answer(self.command, self.path, body)
        with suppress(BrokenPipeError, ConnectionResetError):  # the client waits no longer
            self._give(fault or Fault(), answer)

    def _give(self, fault: Fault, answer: Answer | None) -> None:
        threading.Event().wait(fault.wait)
        if fault.content is not None:
            self._reply(fault.status, fault.content, fault.headers)
        elif fault.status:
            signed = f" of {self.headers.get('Authorization')}" if fault.echoes else ""
            said = {"message": fault.message or f"fault {fault.status}{signed}", "errors": fault.errors}
            self._reply(fault.status, json.dumps(said).encode(), fault.headers)
        elif answer is not None:
            self._reply(
                answer.status, json.dumps(answer.content).encode(), dict(answer.headers), cut=fault.cut
            )
        else:
            self.close_connection = True

    do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = _any

    def _fault(self) -> Fault | None:
        method = "PATCH" if self.command == self.github.editing else self.command
        if self.github.faults and self.github.faults[0].method in ("", method):
            return self.github.faults.pop(0)
        return None

    def _reply(self, status: int, text: bytes, headers: dict[str, str], *, cut: bool = False) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text[: len(text) // 2] if cut else text)
        if cut:
            self.wfile.flush()
            self.connection.close()

    def date_time_string(self, timestamp: float | None = None) -> str:
        return format_datetime(datetime.now(UTC) + self.github.ahead, usegmt=True)

    def log_message(self, *words: object) -> None: ...
