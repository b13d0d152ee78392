"""What servers and clients over TCP have: an address of the loopback interface, and a certificate."""

import hashlib
from pathlib import Path

from suites.processes import run, tool, write_for_server


def loopback_address(folder: Path) -> str:
    """Return an address of 127.0.0.0/8 for the server in a folder, always the same.

    On Linux all of them are this machine (`ip route show table local`). Servers of one session, and of two,
    can so have the same port, and none has one that a service of the machine has on 127.0.0.1.
    """
    digest = hashlib.sha256(bytes(folder)).digest()
    return f"127.{64 + digest[0] % 64}.{digest[1]}.{1 + digest[2] % 254}"


FOLDER = "tls"
"""The folder beside those of the servers, with the certificate as clients read it."""

CERTIFICATE, KEY, AUTHORITY = "client-cert.pem", "client-key.pem", "cacert.pem"
"""The names by which sysbench looks for them in its current folder."""

SERVER_CERTIFICATE, SERVER_KEY = "server.crt", "server.key"
"""The names in the folder of each server."""

ALGORITHM = "rsa:2048"
"""The kind of key: what most certificates of servers have."""

DAYS = 3650


def certificate_beside(folder: Path) -> Path:
    """Return the folder with the certificate of all servers that lie beside the one in `folder`."""
    return folder.parent / FOLDER


def install_certificate(folder: Path) -> None:
    """Put the certificate of the session and its key into the folder of a server; the first one makes it.

    The key can be read by the server's user alone. Raises ProcessError.
    """
    shared = certificate_beside(folder)
    if not (shared / AUTHORITY).exists():
        _make(shared)
    for source, name in ((CERTIFICATE, SERVER_CERTIFICATE), (KEY, SERVER_KEY)):
        write_for_server(folder / name, (shared / source).read_text(encoding="ascii"))


def _make(folder: Path) -> None:
    folder.mkdir(mode=0o700, exist_ok=True)
    certificate, key = folder / CERTIFICATE, folder / KEY
    subject = ["-subj", "/CN=tidemark", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    request = ["req", "-x509", "-newkey", ALGORITHM, "-nodes", "-days", str(DAYS), *subject]
    run([tool("openssl"), *request, "-keyout", key, "-out", certificate], what="making a certificate")
    (folder / AUTHORITY).write_bytes(certificate.read_bytes())
