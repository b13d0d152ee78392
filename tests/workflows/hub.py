"""Stands in for GitHub's pull requests: heads and pushes by its own clock, rights, comments and statuses."""

import re
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.runners.alerting import description
from tests.runners.alerting.github import BOT, NOT_FOUND, REPOSITORY, Answer, GitHub, Handler

FORK = "stranger/postgres"
NUMBER = 7
BEGAN = datetime(2026, 11, 20, 9, 0, tzinfo=UTC)


@dataclass
class Opened:
    """A pull request of a fork."""

    head: str
    """40 hex digits."""

    pushes: list[tuple[str, datetime]] = field(default_factory=list)
    """What its branch was moved to, and when, the latest first."""

    state: str = "open"
    base: str = "master"
    fork: str | None = FORK


class Hub(GitHub):
    """The repository `example/alerts` with pull requests, in which people write at minutes since BEGAN."""

    def __init__(self) -> None:
        super().__init__()
        self.rights = {"ann": "write", "root": "admin", "visitor": "read"}
        """What accounts may do; nothing where they are not named."""
        self.pulls: dict[int, Opened] = {}
        self.said: dict[int, dict[str, Any]] = {}
        """Comments by their number."""
        self.statuses: list[tuple[str, dict[str, str]]] = []
        self.events: dict[int, list[dict[str, Any]]] = {}
        """What happened to pull requests, by number, the latest last."""
        self.hides_activity = False

    def push(self, commit: str, minute: float, number: int = NUMBER) -> None:
        """Make a commit the head of a pull request, which is opened by the first one."""
        pull = self.pulls.setdefault(number, Opened(commit))
        pull.head = commit
        pull.pushes.insert(0, (commit, BEGAN + timedelta(minutes=minute)))

    def say(self, author: str, body: str, minute: float, number: int = NUMBER, kind: str = "User") -> int:
        """Write a comment; returns its number."""
        name = len(self.said) + 1
        self.said[name] = {
            "id": name,
            "body": body,
            "user": {"login": author, "type": kind},
            "created_at": f"{BEGAN + timedelta(minutes=minute):%Y-%m-%dT%H:%M:%SZ}",
            "issue_url": f"{self.url}/repos/{REPOSITORY}/issues/{number}",
            "html_url": f"{self.url}/{REPOSITORY}/pull/{number}#issuecomment-{name}",
        }
        return name

    def set_label(
        self,
        actor: str,
        minute: float,
        event: str = "labeled",
        kind: str = "User",
        name: str = "tidemark-try",
    ) -> None:
        """Set a label of the pull request, or take it away with the event `unlabeled`."""
        happened = {
            "id": sum(map(len, self.events.values())) + 1,
            "event": event,
            "actor": {"login": actor, "type": kind},
            "created_at": f"{BEGAN + timedelta(minutes=minute):%Y-%m-%dT%H:%M:%SZ}",
            "label": {"name": name, "color": "cccccc"},
        }
        self.events.setdefault(NUMBER, []).append(happened)

    @property
    def labels(self) -> set[str]:
        """The labels of the pull request."""
        there = {}
        for event in self.events.get(NUMBER, ()):
            if "label" in event:
                there[event["label"]["name"]] = event["event"] == "labeled"
        return {name for name, is_set in there.items() if is_set}

    def ours(self) -> list[str]:
        """What the account of the token has written."""
        return [comment["body"] for comment in self.said.values() if comment["user"]["login"] == BOT]

    def answer(self, method: str, target: str, body: Any) -> Answer:
        path, _, query = target.partition("?")
        found = description.matched(path)
        if found is None or method.lower() not in found[1]:
            return NOT_FOUND
        problems = description.problems(found[1][method.lower()], dict(found[0]), query, body)
        if problems:
            self.violations += problems
            return Answer(422, {"message": "Validation Failed", "errors": problems})
        if path == "/user":
            return Answer(200, {"login": BOT, "type": "User"})
        rest = re.sub(rf"^/repos/({REPOSITORY}|{FORK})/", "", path)
        if rest.startswith(f"issues/{NUMBER}/labels/"):
            return self._without_label(rest.rpartition("/")[2])
        if rest == f"issues/{NUMBER}/events":
            return _page(self.events.get(NUMBER, []), path, query)
        return self._about(method, rest, query, body)

    def _without_label(self, name: str) -> Answer:
        if name not in self.labels:
            return NOT_FOUND
        self.set_label(BOT, 1_000, "unlabeled", name=name)
        return Answer(200, [])

    def _about(self, method: str, rest: str, query: str, body: Any) -> Answer:
        kind, _, name = rest.rpartition("/")
        if kind == "pulls" and int(name) in self.pulls:
            return Answer(200, self._pull(int(name)))
        if rest.endswith("/permission"):
            right = self.rights.get(rest.split("/")[1])
            return NOT_FOUND if right is None else Answer(200, {"permission": right})
        if rest == "activity":
            return self._activity(query)
        if kind == "statuses":
            self.statuses.append((name, body))
            return Answer(201, {})
        if kind == "issues/comments" and int(name) in self.said:
            if method == "PATCH":
                self.said[int(name)]["body"] = body["body"]
            return Answer(200, self.said[int(name)])
        if name == "comments" and method == "POST":
            return Answer(201, self.said[self.say(BOT, body["body"], 1_000, int(kind.split("/")[1]))])
        if name == "comments":
            there = [comment for comment in self.said.values() if comment["issue_url"].endswith(f"/{kind}")]
            return _page(there, f"/repos/{REPOSITORY}/{rest}", query)
        return NOT_FOUND

    def _pull(self, number: int) -> dict[str, Any]:
        pull = self.pulls[number]
        repository = None if pull.fork is None else {"full_name": pull.fork}
        head = {"sha": pull.head, "ref": "topic", "repo": repository}
        base = {"sha": "0" * 40, "ref": pull.base, "repo": {"full_name": REPOSITORY}}
        return {"number": number, "state": pull.state, "head": head, "base": base}

    def _activity(self, query: str) -> Answer:
        if self.hides_activity:
            return NOT_FOUND
        assert "ref=refs%2Fheads%2Ftopic" in query
        pushes = self.pulls[NUMBER].pushes
        return Answer(
            200, [{"after": commit, "timestamp": f"{at:%Y-%m-%dT%H:%M:%SZ}"} for commit, at in pushes]
        )


def _page(entries: list[Any], path: str, query: str) -> Answer:
    """A page of 100 entries, with the address of the next one as GitHub gives it."""
    found = re.search(r"(?:^|&)page=(\d+)", query)
    page = int(found[1]) if found else 1
    more = f'<https://api.github.com{path}?per_page=100&page={page + 1}>; rel="next"'
    headers = {"Link": more} if len(entries) > page * 100 else {}
    return Answer(200, entries[(page - 1) * 100 : page * 100], headers)


class _Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True


@contextmanager
def running(folder: Path) -> Iterator[Hub]:
    """A stand-in at a socket in a folder, to which `gh` connects with that folder as GH_CONFIG_DIR."""
    hub = Hub()
    folder.mkdir()
    socket = folder / "hub.sock"
    (folder / "config.yml").write_text(f"http_unix_socket: {socket}\n")
    server = _Server(str(socket), type("Bound", (Handler,), {"github": hub}))
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
