"""A real Gitea below a path, with a repository, an account of Tidemark's and accounts of people."""

import os
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

import requests

from runners.alerting.trackers.gitea import GiteaTracker
from tests.programs import GITEA, required

ADMINISTRATOR, OWNER, TIDEMARK, WRITER, READER = "administrator", "example", "tidemark", "ann", "guest"
PASSWORD = "a password of a test"
REPOSITORY = f"{OWNER}/alerts"

SETTINGS = """
RUN_USER = {user}
I_AM_BEING_UNSAFE_RUNNING_AS_ROOT = true
WORK_PATH = {folder}
[server]
HTTP_ADDR = 127.0.0.1
HTTP_PORT = {port}
ROOT_URL = http://127.0.0.1:{port}/git/
USE_SUB_URL_PATH = true
STATIC_ROOT_PATH = {static}
DISABLE_SSH = true
OFFLINE_MODE = true
[database]
DB_TYPE = sqlite3
PATH = {folder}/gitea.db
[security]
INSTALL_LOCK = true
SECRET_KEY = of-a-test
PASSWORD_HASH_ALGO = pbkdf2$1000$50
MIN_PASSWORD_LENGTH = 6
[indexer]
ISSUE_INDEXER_TYPE = db
[log]
MODE = file
LEVEL = Error
ROOT_PATH = {folder}/log
[actions]
ENABLED = false
[packages]
ENABLED = false
[cron]
ENABLED = false
"""


class RealGitea:
    """A server that is running unless it was stopped."""

    def __init__(self, folder: Path) -> None:
        self._program = required(GITEA)
        self._settings = folder / "app.ini"
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}/git"
        user = "root" if os.geteuid() == 0 else os.environ.get("USER", "")
        text = SETTINGS.format(folder=folder, port=port, static=self._program.parent, user=user)
        self._settings.write_text(text, encoding="utf-8")
        self._log = folder / "output.log"
        self._run("migrate")
        mail = f"{ADMINISTRATOR}@example.org"
        names = ("--username", ADMINISTRATOR, "--password", PASSWORD, "--email", mail)
        self._run("admin", "user", "create", "--admin", "--must-change-password=false", *names)
        self._server: subprocess.Popen[bytes] | None = None
        self.start()
        for name in (OWNER, TIDEMARK, WRITER, READER):
            account = {"username": name, "password": PASSWORD, "email": f"{name}@example.org"}
            self.ask("POST", "admin/users", ADMINISTRATOR, account | {"must_change_password": False})
        self.new_repository("alerts")
        self.token = self.new_token(TIDEMARK, "write:issue", "read:repository")

    def tracker(self, token: str = "", repository: str = REPOSITORY) -> GiteaTracker:
        """The implementation that is tested."""
        return GiteaTracker(repository, token or self.token, self.url, 0, 5.0)

    def new_repository(self, name: str) -> str:
        """A private repository of OWNER's, in which the others have their rights."""
        self.ask("POST", "user/repos", OWNER, {"name": name, "private": True})
        for account, right in ((TIDEMARK, "write"), (WRITER, "write"), (READER, "read")):
            path = f"repos/{OWNER}/{name}/collaborators/{account}"
            self.ask("PUT", path, OWNER, {"permission": right})
        return f"{OWNER}/{name}"

    def new_token(self, account: str, *scopes: str) -> str:
        """A new token of an account."""
        name = f"{time.monotonic_ns()}"
        sent = {"name": name, "scopes": list(scopes)}
        return str(self.ask("POST", f"users/{account}/tokens", account, sent)["sha1"])

    def ask(self, method: str, path: str, account: str, body: Any = None) -> Any:
        """What a person does, by the API and with a password."""
        answer = requests.request(
            method, f"{self.url}/api/v1/{path}", json=body, auth=(account, PASSWORD), timeout=20
        )
        answer.raise_for_status()
        return answer.json() if answer.content else None

    def start(self) -> None:
        """Start it, and wait until it answers."""
        with self._log.open("ab") as log:
            self._server = subprocess.Popen(self._words("web"), stdout=log, stderr=log)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and self._server.poll() is None:
            try:
                if requests.get(f"{self.url}/api/v1/version", timeout=5).ok:
                    return
            except requests.RequestException:
                time.sleep(0.1)
        raise AssertionError(f"Gitea does not answer: {self._log.read_text(errors='replace')[-2000:]}")

    def stop(self) -> None:
        """Stop it; it can be started again."""
        assert self._server is not None
        self._server.terminate()
        self._server.wait(30)

    def _run(self, *words: str) -> None:
        with self._log.open("ab") as log:
            subprocess.run(self._words(*words), stdout=log, stderr=log, check=True)

    def _words(self, *words: str) -> list[str]:
        return [str(self._program), *words, "--config", str(self._settings)]
