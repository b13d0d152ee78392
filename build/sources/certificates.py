"""The authorities whose certificates are trusted: the same for downloads, git and the issue tracker."""

import os
import ssl
from collections.abc import Mapping
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


def context() -> ssl.SSLContext:
    """Return a context in which urllib trusts `authorities()`. Raises CertificateError, also for no PEM."""
    path = named_authorities()
    if path is None:
        return ssl.create_default_context()
    try:
        return (
            ssl.create_default_context(capath=path)
            if path.is_dir()
            else ssl.create_default_context(cafile=path)
        )
    except OSError as error:  # of which ssl.SSLError is one
        raise CertificateError(
            f"the certificates cannot be read: {error.strerror or error}",
            where=str(path),
            hint="the file must hold certificates in PEM format",
        ) from error


def git_environment() -> Mapping[str, str]:
    """Return the variables with which git trusts what the environment names, unless git's own do so."""
    own = ("GIT_SSL_CAINFO", "GIT_SSL_CAPATH")
    path = named_authorities()
    if path is None or any(os.environ.get(name) for name in own):
        return {}
    return {own[path.is_dir()]: str(path)}


def hint_for(error: BaseException) -> str:
    """Return what to do about an error of a connection; empty when its certificate is not the reason."""
    return HINT if refused_certificate(error) else ""


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
