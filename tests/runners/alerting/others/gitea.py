"""Stands in for Gitea's tracker, as its description of REST v1 and a real one have it."""

import re
import zlib
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from runners.alerting.tracker import Tracker
from runners.alerting.trackers.gitea import GiteaTracker
from tests.runners.alerting.github import BOT, PERSON, REPOSITORY, TOKEN, Answer, GitHub

NOT_FOUND = Answer(404, {"message": "not found", "errors": [], "url": "http://localhost/api/swagger"})

ACTIONS = "gitea-actions"
"""The account of workflows."""

LARGEST_PAGE = 20
"""However many entries are asked for (MAX_RESPONSE_ITEMS)."""

TAKEN = {
    "GET": {"state", "type", "page", "limit", "since"},
    "POST": {"title", "body", "labels", "name", "color", "assignees"},
    "PATCH": {"title", "body", "state", "content_version", "assignees"},
    "DELETE": set[str](),
}
"""What requests about issues may hold, of what is described."""


class Gitea(GitHub):
    """Its state; issues are kept as GitHub's are."""

    kind = "gitea"
    below = "/git"

    def __init__(self) -> None:
        super().__init__()
        self.labels = ["performance", "acknowledged", "not-a-regression"]
        """Of the repository; ids are their places, from 1."""
        self.writers = {BOT, PERSON}
        self.dependent: set[int] = set()
        """Issues that depend on others that are open."""

    def tracker(self, timeout_seconds: float = 5.0, token: str = TOKEN, name: str = REPOSITORY) -> Tracker:
        """The implementation that is tested, without pauses between writes."""
        return GiteaTracker(name, token, self.url, 0, timeout_seconds)

    def answer(self, method: str, target: str, body: Any) -> Answer:
        """Carry out a request."""
        parts = urlsplit(target)
        path, query = unquote(parts.path.removeprefix(f"{self.below}/api/v1")), parse_qs(parts.query)
        match = re.fullmatch(r"/repos/([^/]+/[^/]+)((?:/.*)?)", path)
        if match is None:
            return NOT_FOUND
        name, rest = match[1], match[2]
        if name == REPOSITORY != self.name:
            place = f"{self.below}/api/v1/repos/{self.name}{rest}"
            return Answer(301, {}, {"Location": f"{place}?{parts.query}" if parts.query else place})
        if name != self.name:
            return NOT_FOUND
        return self._in_repository(method, rest, query, body)

    def _in_repository(self, method: str, rest: str, query: Any, body: Any) -> Answer:
        if not rest:
            about = {"id": 1, "full_name": self.name, "archived": self.is_archived}
            rights = {name: self.permissions.get(name, False) for name in ("admin", "push", "pull")}
            return Answer(200, about | {"has_issues": not self.is_switched_off, "permissions": rights})
        if rest == "/assignees":
            return Answer(200, [_account(name) for name in sorted(self.writers)])
        self.violations += sorted((set(query) | set(body or ())) - TAKEN[method])
        if rest == "/labels":
            return self._labels(method, query, body)
        if self.is_switched_off:
            return NOT_FOUND
        if self.is_archived and method == "POST":  # edits are carried out all the same
            return Answer(423, {"message": f"{self.name} is archived"})
        match = re.fullmatch(r"/issues(?:/([0-9]+)(/comments|/timeline|/labels)?(?:/([0-9]+))?)?", rest)
        if match is None:
            return NOT_FOUND
        if match[1] is None:
            return self._new(body) if method == "POST" else self._page_of(self._everything(), query)
        number = int(match[1])
        if number in self.deleted or number not in self.issues:
            return NOT_FOUND
        return self._about(number, match[2] or "", match[3], method, query, body)

    def _about(self, number: int, what: str, label: str | None, method: str, query: Any, body: Any) -> Answer:
        issue = self.issues[number]
        if what == "/timeline":
            return self._page_of(self._events(number), query, is_timeline=True)
        if what == "/labels":
            if method == "DELETE":
                self._take_label(issue, self.labels[int(label or 0) - 1])
                return Answer(204, None)
            return Answer(200, self._shown(issue)["labels"])
        if what == "/comments":
            self._act_on(self.issues, number, "POST", {}, body)
            return Answer(201, {"id": 1, "body": body["body"]})
        if method == "PATCH" and number in self.dependent and body.get("state") == "closed":
            return Answer(412, {"message": "cannot close this issue because it still has open dependencies"})
        if method == "PATCH" and body.pop("content_version", None) not in (None, _version(issue)):
            return Answer(409, {"message": "the issue has already been changed"})
        done = self._act_on(self.issues, number, method, {}, body)
        return Answer(201 if method == "PATCH" else 200, self._shown(done.content))

    def _events(self, number: int) -> list[Any]:
        """What happened to an issue: labels first, and at last that it was closed."""
        events: list[Any] = [
            {"type": "label", "body": "1", "user": _account(who), "label": self._label(name)}
            for labelled, name, who in self.labelled
            if labelled == number
        ]
        if self.issues[number]["state"] == "closed":
            who = _account(self.issues[number]["closed_by"]["login"])
            events.append({"type": "close", "body": "", "user": who, "label": None})
        return events

    def _labels(self, method: str, query: Any, body: Any) -> Answer:
        if method == "POST":
            if body["name"] in self.refused_labels or not self.permissions.get("push"):
                return Answer(403, {"message": "user should have a permission to write to a repo"})
            self.labels.append(body["name"])
            return Answer(201, self._label(body["name"]))
        known = [self._label(name) for name in self.labels if name not in self.refused_labels]
        return self._page_of(known, query)

    def _label(self, name: str) -> dict[str, Any]:
        if name not in self.labels:
            self.labels.append(name)
        return {"id": self.labels.index(name) + 1, "name": name}

    def _new(self, body: Any) -> Answer:
        names = [self.labels[number - 1] for number in body.get("labels", ())]
        done = self._create({"title": body["title"], "body": body["body"], "labels": names})
        return Answer(done.status, self._shown(done.content))

    def _everything(self) -> list[Any]:
        present = [issue for number, issue in self.issues.items() if number not in self.deleted]
        newest = sorted(present, key=lambda issue: (issue["created_at"], issue["number"]), reverse=True)
        return [self._shown(issue) for issue in newest]

    def _page_of(self, listed: list[Any], query: Any, *, is_timeline: bool = False) -> Answer:
        page, size = int(query.get("page", ["1"])[0]), LARGEST_PAGE
        shown: list[Any] | None = listed[(page - 1) * size : page * size]
        total = len(shown or ()) if is_timeline else len(listed)
        if is_timeline and not shown:
            shown = None  # as Go writes a list that was never begun
        headers = {"X-Total-Count": str(total)}
        if not is_timeline and page * size < len(listed):
            headers["Link"] = f'<{self.url}/api/v1/x?page={page + 1}>; rel="next"'
        return Answer(200, shown, headers)

    def _shown(self, issue: dict[str, Any]) -> dict[str, Any]:
        place = f"/repos/{self.name}/issues/{issue['number']}"
        same = {name: issue[name] for name in ("number", "title", "state", "closed_at", "html_url")}
        return same | {
            "user": _account(issue["user"]["login"]),
            "assignees": [_account(who["login"]) for who in issue["assignees"]] or None,
            "body": issue["body"] or "",
            "labels": [self._label(label["name"]) for label in issue["labels"]],
            "url": f"{self.url}/api/v1{place}",
            "content_version": _version(issue),
        }


def _account(name: str) -> dict[str, Any]:
    """Accounts that are nobody's have numbers below 0."""
    return {"id": -2 if name == ACTIONS else zlib.crc32(name.encode()), "login": name}


def _version(issue: dict[str, Any]) -> int:
    """Of an issue's text, which differs with each change."""
    return zlib.crc32(str(issue["body"]).encode())
