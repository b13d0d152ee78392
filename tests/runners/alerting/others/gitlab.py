"""Stands in for GitLab's tracker, as its documentation of REST v4 describes issues, notes and members."""

import json
import re
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from runners.alerting.tracker import Tracker
from runners.alerting.trackers.gitlab import GitLabTracker
from tests.runners.alerting.github import BOT, PERSON, REPOSITORY, TOKEN, Answer, GitHub

NOT_FOUND = Answer(404, {"message": "404 Not found"})
FORBIDDEN = Answer(403, {"message": "403 Forbidden"})

ACCOUNTS = {BOT: 11, PERSON: 12, "guest": 13, "reporter": 14}

TAKEN = {
    "GET": {"state", "scope", "order_by", "sort", "per_page", "page"},
    "POST": {"title", "description", "labels", "body"},
    "PUT": {"title", "description", "state_event", "remove_labels", "assignee_ids"},
}
"""What requests about issues may hold, of what is documented."""


class GitLab(GitHub):
    """Its state; issues are kept as GitHub's are."""

    kind = "gitlab"
    below = "/lab"
    editing = "PUT"

    def __init__(self) -> None:
        super().__init__()
        self.levels = {BOT: 20, PERSON: 30, "reporter": 20}
        """The access levels of members."""
        self.token: dict[str, Any] = {"scopes": ["api"], "expires_at": None}
        self.is_personal = True
        """Whether the token says something of itself."""
        self.refuses_accounts = b""
        """With what the token is refused to look for an account."""

    def tracker(self, timeout_seconds: float = 5.0, token: str = TOKEN, name: str = REPOSITORY) -> Tracker:
        """The implementation that is tested, without pauses between writes."""
        return GitLabTracker(name, token, self.url, 0, timeout_seconds)

    def answer(self, method: str, target: str, body: Any) -> Answer:
        """Carry out a request."""
        parts = urlsplit(target)
        path, query = parts.path.removeprefix(f"{self.below}/api/v4"), parse_qs(parts.query)
        if path == "/personal_access_tokens/self":
            return (
                Answer(200, self.token) if self.is_personal else Answer(401, {"message": "401 Unauthorized"})
            )
        if path == "/users" and self.refuses_accounts:
            return Answer(403, json.loads(self.refuses_accounts))
        if path == "/users":
            known = [name for name in query["username"] if name in ACCOUNTS]
            return Answer(200, [{"id": ACCOUNTS[name], "username": name} for name in known])
        match = re.fullmatch(r"/projects/([^/]+)((?:/.*)?)", path)
        if match is None:
            return NOT_FOUND
        name, rest = unquote(match[1]), match[2]
        if name == REPOSITORY != self.name:
            if method != "GET":
                return Answer(405, {"message": "Non GET methods are not allowed for moved projects"})
            address = f"{self.url}/api/v4/projects/1{rest}"
            return Answer(301, {}, {"Location": f"{address}?{parts.query}" if parts.query else address})
        if name not in ("1", self.name):
            return Answer(404, {"message": "404 Project Not Found"})
        return self._in_project(method, rest, query, body)

    def _in_project(self, method: str, rest: str, query: Any, body: Any) -> Answer:
        if not rest:
            about = {"id": 1, "path_with_namespace": self.name, "archived": self.is_archived}
            return Answer(200, about | {"issues_enabled": not self.is_switched_off}, self.headers)
        if member := re.fullmatch(r"/members/all/([0-9]+)", rest):
            (account,) = (name for name, number in ACCOUNTS.items() if number == int(member[1]))
            level = self.levels.get(account)
            return Answer(200, {"access_level": level, "state": "active"}) if level else NOT_FOUND
        self.violations += sorted((set(query) | set(body or ())) - TAKEN[method] - {"page", "per_page"})
        if self.is_switched_off:
            return NOT_FOUND
        if self.is_archived and method != "GET":
            return FORBIDDEN
        match = re.fullmatch(r"/issues(?:/([0-9]+)(/notes|/resource_label_events)?)?", rest)
        if match is None:
            return NOT_FOUND
        if match[1] is None:
            return self._new(body) if method == "POST" else self._page_of(self._everything(), query)
        return self._about(int(match[1]), match[2] or "", method, query, body)

    def _about(self, number: int, what: str, method: str, query: Any, body: Any) -> Answer:
        if what == "/resource_label_events":
            events = [
                {"user": {"id": ACCOUNTS[who], "username": who}, "label": {"name": name}, "action": "add"}
                for labelled, name, who in self.labelled
                if labelled == number
            ]
            return self._page_of(events, query)
        if number in self.deleted or number not in self.issues:
            return NOT_FOUND
        if what == "/notes":
            self._act_on(self.issues, number, "POST", {}, body)
            return Answer(201, {"id": 1, "body": body["body"]})
        if method == "PUT":
            for name in filter(None, str(body.get("remove_labels", "")).split(",")):
                self._take_label(self.issues[number], name)
            done = self._act_on(self.issues, number, "PATCH", {}, self._as_kept(body))
        else:
            done = self._act_on(self.issues, number, "GET", {}, None)
        return Answer(200, self._shown(done.content))

    def _new(self, body: Any) -> Answer:
        labels = [name for name in str(body.get("labels", "")).split(",") if name]
        done = self._create(self._as_kept(body) | {"labels": labels})
        if done.status != 201:
            return Answer(400, {"message": {"labels": ["label is invalid"]}})
        return Answer(201, self._shown(done.content))

    def _as_kept(self, body: Any) -> dict[str, Any]:
        kept: dict[str, Any] = {"title": body.get("title"), "body": body.get("description")}
        kept["state"] = {"close": "closed", "reopen": "open", None: None}[body.get("state_event")]
        if "assignee_ids" in body:
            names = [name for name, number in ACCOUNTS.items() if number in body["assignee_ids"]]
            kept["assignees"] = [name for name in names if name in self.levels]
        return {name: value for name, value in kept.items() if value is not None}

    def _everything(self) -> list[Any]:
        present = [issue for number, issue in self.issues.items() if number not in self.deleted]
        newest = sorted(present, key=lambda issue: (issue["created_at"], issue["number"]), reverse=True)
        return [self._shown(issue) for issue in newest]

    def _page_of(self, listed: list[Any], query: Any) -> Answer:
        page, size = int(query.get("page", ["1"])[0]), int(query.get("per_page", ["20"])[0])
        following = str(page + 1) if page * size < len(listed) else ""
        return Answer(200, listed[(page - 1) * size : page * size], {"X-Next-Page": following})

    def _shown(self, issue: dict[str, Any]) -> dict[str, Any]:
        def account(who: dict[str, str] | None) -> dict[str, Any] | None:
            return who and {"id": ACCOUNTS[who["login"]], "username": who["login"]}

        return {
            "id": 1000 + issue["number"],
            "iid": issue["number"],
            "project_id": 1,
            "title": issue["title"],
            "description": issue["body"],
            "state": "opened" if issue["state"] == "open" else "closed",
            "labels": [label["name"] for label in issue["labels"]],
            "assignees": [account(who) for who in issue["assignees"]],
            "author": account(issue["user"]),
            "closed_by": account(issue["closed_by"]),
            "closed_at": issue["closed_at"],
            "web_url": issue["html_url"],
        }
