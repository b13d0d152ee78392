"""Services that take messages: a webhook and a mail server, with the faults of real ones."""

import json
import socketserver
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_string, policy
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any

SECRET = "Geheimnis-7Q"
"""A part of the webhook's path that nobody may read anywhere."""


@dataclass
class Webhook:
    """A webhook, which keeps the messages that it took."""

    port: int = 0
    status: int = 200
    hangs: bool = False
    taken: list[dict[str, Any]] = field(default_factory=list)
    asked: int = 0
    """How often somebody posted a message, taken or not."""

    ended: Event = field(default_factory=Event)

    @property
    def url(self) -> str:
        return f"json://127.0.0.1:{self.port}/{SECRET}?rto=1&cto=1"

    @property
    def lines(self) -> list[str]:
        """The texts of the messages, in the order of their arrival."""
        return [str(message["message"]) for message in self.taken]

    @property
    def titles(self) -> list[str]:
        return [str(message["title"]) for message in self.taken]


@contextmanager
def webhook() -> Iterator[Webhook]:
    hook = Webhook()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            content = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            hook.asked += 1
            if hook.hangs:
                hook.ended.wait(10)
                return
            if hook.status == 200:
                hook.taken.append(content)
            self.send_response(hook.status)
            self.end_headers()

        def log_message(self, *arguments: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        hook.port = server.server_port
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield hook
        finally:
            hook.ended.set()
            server.shutdown()


@dataclass
class MailServer:
    """A mail server, which keeps the mails that it took as (subject, text)."""

    port: int = 0
    taken: list[tuple[str, str]] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"mailto://127.0.0.1:{self.port}?from=box@example.org&to=team@example.org&mode=insecure"


@contextmanager
def mail_server() -> Iterator[MailServer]:
    found = MailServer()

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self._say("220 here")
            while line := self.rfile.readline().decode().strip():
                command = line[:4].upper()
                if command == "DATA":
                    self._say("354 go on")
                    found.taken.append(_mail(self._read()))
                self._say("221 bye" if command == "QUIT" else "250 ok")
                if command == "QUIT":
                    return

        def _read(self) -> str:
            lines = []
            while (line := self.rfile.readline().decode()) not in (".\r\n", ""):
                lines.append(line)
            return "".join(lines)

        def _say(self, line: str) -> None:
            self.wfile.write(f"{line}\r\n".encode())

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        found.port = server.server_address[1]
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield found
        finally:
            server.shutdown()


def _mail(text: str) -> tuple[str, str]:
    message = message_from_string(text, policy=policy.default)
    body = message.get_body(("plain", "html"))
    assert body is not None
    return str(message["subject"]), str(body.get_content()).strip()
