"""Addresses (URLs) as they may be shown and stored: without passwords and tokens."""

import re
from urllib.parse import unquote_plus, urlsplit

HIDDEN = "***"

HARMLESS = frozenset(
    {
        "application_name",
        "connect_timeout",
        "dbname",
        "host",
        "mode",
        "port",
        "sslmode",
        "target_session_attrs",
        "uri",
        "user",
    }
)
"""Parameters of a query whose values are shown: every other one may be a password or a token."""

_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s\"'<>`]+")
_PLAIN_VALUE = re.compile(r"[A-Za-z0-9_.,:/%-]*")
_HOST_AND_PORT = re.compile(r"(\[[0-9A-Za-z:.%]*\]|[^\s:@\[\]]*)(:[0-9]*)?")
_SETTING = re.compile(
    r"(?i)(\b\w*(?:password|passwd|passphrase|secret|token)\s*=\s*)('[^']*'|\"[^\"]*\"|[^\s&;'\"]+)"
)
"""A setting of libpq's connection strings, or of a query."""


def without_secrets(address: str) -> str:
    """Return an address without the secrets in it; text without `://` is returned as it is.

    User name and password of an `http` address are left out, because a token may be either; of others, such
    as databases, only the password is replaced. So are the values of a query, but for HARMLESS parameters,
    and a fragment. Where a password with special characters makes it unclear what the host is, the host is
    replaced, too.
    """
    scheme, colon, rest = address.partition("://")
    if not colon:
        return address
    try:
        parts = urlsplit(address)
    except ValueError:  # such as a bracket that is not closed
        return f"{scheme}://{HIDDEN}"
    user, at, host = parts.netloc.rpartition("@")
    tail = rest[len(parts.netloc) :]
    if not _HOST_AND_PORT.fullmatch(host) or ((at or ":" in host) and "@" in tail):
        # A password with an unquoted `/`, `?` or `#`: what seems to be the host begins or ends within it.
        return f"{scheme}://{HIDDEN}"
    shown = f"{scheme}://{_shown_user(scheme, user)}{host}{parts.path}"
    if parts.query:
        shown += "?" + "&".join(map(_shown_parameter, parts.query.split("&")))
    return shown + (f"#{HIDDEN}" if parts.fragment else "")


def redacted(text: str) -> str:
    """Return a text, such as another program's message, with the secrets of all addresses in it hidden.

    The values of settings with a name such as `password` are hidden, too.
    """
    if "://" in text:
        text = _ADDRESS.sub(lambda found: without_secrets(found[0]), text)
    return _SETTING.sub(rf"\g<1>{HIDDEN}", text) if "=" in text else text


def _shown_user(scheme: str, user: str) -> str:
    if not user or scheme.lower() in ("http", "https", "ftp", "ftps"):
        return ""
    name, colon, _ = user.partition(":")
    return f"{name}:{HIDDEN}@" if colon else f"{name}@"


def _shown_parameter(text: str) -> str:
    name, equals, value = text.partition("=")
    if not equals:
        return HIDDEN
    harmless = unquote_plus(name).lower() in HARMLESS and _PLAIN_VALUE.fullmatch(value)
    return text if harmless else f"{name}={HIDDEN}"
