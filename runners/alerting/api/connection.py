"""Why there was no answer at all, and what to do about it."""

import http.client
import socket
from collections.abc import Iterator

import requests

from build.sources import certificates
from runners.alerting.api.dialect import NEXT_NIGHT


def connection_problem(error: BaseException, timeout_seconds: float) -> tuple[str, str]:
    """Why there was no answer, and what to do.

    Texts of the client library are not taken over: they may hold the address with its query, or a header that
    is not valid, which is the token's.
    """
    if distrust := certificates.refused_certificate(error):
        return f"its certificate is not trusted: {distrust}", certificates.HINT
    if isinstance(error, certificates.CertificateError):
        return f"{error.what}: {error.where}", error.hint
    chain = tuple(_chain(error))
    if any(isinstance(cause, (TimeoutError, requests.Timeout)) for cause in chain):
        return f"nothing came within {timeout_seconds:g} s", NEXT_NIGHT
    reasons = map(_reason, chain)
    return next((reason for reason in reasons if reason), type(error).__name__), NEXT_NIGHT


def _reason(error: BaseException) -> str:
    """What the system says of a connection, such as `Connection refused`; empty for other errors."""
    if isinstance(error, socket.gaierror):
        return f"the name of its host cannot be resolved: {error.strerror}"
    if isinstance(error, http.client.RemoteDisconnected):
        return "the connection was closed without an answer"
    if isinstance(error, OSError) and not isinstance(error, requests.RequestException):
        return error.strerror or ""
    return ""


def _chain(error: BaseException) -> Iterator[BaseException]:
    """An error and those from which it came, the first one first."""
    earlier = error.__cause__ or error.__context__
    if earlier is not None:
        yield from _chain(earlier)
    yield error
