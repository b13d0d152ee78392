"""Connections of downloads, git and the issue tracker: what they trust, and why one got no answer."""

import os
import socket
import ssl
from collections.abc import Iterator, Mapping
from pathlib import Path

from build.errors import TidemarkError

VARIABLES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_DIR")
"""The environment variables that name a file or folder with certificates; the first that is set counts.

OpenSSL reads the first and the last, requests the second, curl the third, and git none of them.
"""

HINT = "if this server is to be trusted, name the file with the certificate of its authority by SSL_CERT_FILE"


class CertificateError(TidemarkError):
    """The certificates that the environment names cannot be read."""


def named_authorities() -> Path | None:
    """Return the file or folder that the environment names, or None when it names none.

    Raises CertificateError if it is not there.
    """
    for variable in VARIABLES:
        name = os.environ.get(variable)
        if name:
            path = Path(name)
            if not path.exists():
                raise CertificateError(
                    f"{variable} names certificates that are not there",
                    where=name,
                    hint=f"correct {variable}, or unset it",
                )
            return path.absolute()
    return None


def authorities() -> Path | None:
    """Return `named_authorities()`, else those of the system; None where the system has none."""
    named = named_authorities()
    if named is not None:
        return named
    system = ssl.get_default_verify_paths()
    folder = system.cafile or system.capath
    return Path(folder) if folder else None


def verified_by() -> str | bool:
    """Return the `verify` of requests with which it trusts `authorities()`. Raises CertificateError."""
    return str(authorities() or "") or True  # else what the library brings along


def git_environment() -> Mapping[str, str]:
    """Return the variables with which git trusts what the environment names, unless git's own do so."""
    own = ("GIT_SSL_CAINFO", "GIT_SSL_CAPATH")
    path = named_authorities()
    if path is None or any(os.environ.get(name) for name in own):
        return {}
    return {own[path.is_dir()]: str(path)}


def no_answer(error: BaseException, timeout_seconds: float) -> tuple[str, str]:
    """Return why a request with requests had no answer, and what to do; '' where only trying again may help.

    Texts of the library are not taken over: they may hold the address with its query, or a header that is not
    valid, which is the token's.
    """
    if distrust := refused_certificate(error):
        return f"its certificate is not trusted: {distrust}", HINT
    if isinstance(error, CertificateError):
        return f"{error.what}: {error.where}", error.hint
    chain = tuple(_chain(error))
    if any(isinstance(cause, ssl.SSLError) and cause.library in ("X509", "PEM") for cause in chain):
        return "the certificates cannot be read", f"{authorities()} must hold certificates in PEM format"
    if any(isinstance(cause, TimeoutError) or type(cause).__name__.endswith("Timeout") for cause in chain):
        return f"nothing came within {timeout_seconds:g} s", ""
    reasons = map(_reason, chain)
    return next((reason for reason in reasons if reason), type(error).__name__), ""


def _reason(error: BaseException) -> str:
    """Return what the system says of a connection, such as `Connection refused`; empty for other errors."""
    import http.client  # slow to load, as is urllib3

    from urllib3.exceptions import IncompleteRead

    if isinstance(error, socket.gaierror):
        return f"the name of its host cannot be resolved: {error.strerror}"
    if isinstance(error, http.client.RemoteDisconnected):
        return "the connection was closed without an answer"
    if isinstance(error, IncompleteRead):
        return f"the connection was closed after {error.partial} of {error.partial + error.expected} bytes"
    return error.strerror or "" if isinstance(error, OSError) else ""


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and those from which it came, the first one first."""
    earlier = error.__cause__ or error.__context__
    if earlier is not None:
        yield from _chain(earlier)
    yield error


def refused_certificate(error: BaseException) -> str:
    """Return why a connection was not trusted, such as `self-signed certificate`; empty for another error.

    Clients wrap the error of the ssl module in several of their own.
    """
    seen: set[int] = set()
    left: list[object] = [error]
    while left:
        exception = left.pop()
        if not isinstance(exception, BaseException) or id(exception) in seen:
            continue
        seen.add(id(exception))
        if isinstance(exception, ssl.SSLCertVerificationError):
            return exception.verify_message
        left += [
            *exception.args,
            getattr(exception, "reason", None),
            exception.__cause__,
            exception.__context__,
        ]
    return ""
