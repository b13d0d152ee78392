"""A server on this machine whose certificate nobody has signed."""

import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


@dataclass(frozen=True)
class SelfSigned:
    """A server that serves the files of a folder."""

    url: str
    certificate: Path
    """Its certificate, which is that of its authority as well."""

    hash: str
    """By which OpenSSL finds it in a folder."""


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *words: object) -> None: ...


class Elsewhere(_Quiet):
    """Leads every request to `address`."""

    address = ""

    def do_GET(self) -> None:
        self.send_response(302)
        self.send_header("Location", f"{self.address}{self.path}")
        self.end_headers()


@contextmanager
def self_signed(
    root: Path, certificate: Path, handler: type[SimpleHTTPRequestHandler] = _Quiet
) -> Iterator[SelfSigned]:
    """Serve the files below `root`; the certificate is written to `certificate`, its key beside it."""
    key = certificate.with_suffix(".key")
    words = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "2",
        "-subj",
        "/CN=127.0.0.1",
    ]
    names = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run([*words, *names], check=True, capture_output=True)
    show = ["openssl", "x509", "-hash", "-noout", "-in", str(certificate)]
    shown = subprocess.run(show, check=True, capture_output=True, text=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(handler, directory=str(root)))
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.handle_error = lambda *_: None  # type: ignore[method-assign] # a client that does not trust it
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield SelfSigned(f"https://127.0.0.1:{server.server_address[1]}", certificate, shown.stdout.strip())
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
