"""Messages by Apprise, whose URLs name a service and the place in it: mail, chats, webhooks.

Apprise is imported where it is used, because that takes a second.
"""

import logging
import re
from typing import Any
from urllib.parse import unquote

from build.errors import TidemarkError
from history.escaping.characters import one_line

SHORTEST_SECRET = 4
"""Parts of a URL with fewer characters are not taken out of messages: they would be found everywhere."""

_BETWEEN = re.compile(r"[/:@?&=#,]+")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,30}(?=://)")


class RouteError(TidemarkError):
    """A route has no URL, or one that cannot be used, or its service did not take a message."""


def require_known(url: str, where: str) -> None:
    """Raise RouteError unless Apprise knows the service of a URL, and all parts that it has to have."""
    _service(url, where)


def holds_secret(url: str, where: str) -> bool:
    """Return whether a URL has a part that Apprise hides where others may read. Raises RouteError."""
    service = _service(url, where)
    return bool(service.url(privacy=True) != service.url(privacy=False))


def send(url: str, title: str, text: str, where: str) -> None:
    """Send one message. Raises RouteError with the reason, which holds no secret, if it did not arrive.

    If the answer was lost, it may have arrived all the same.
    """
    apprise, service = _library(), _service(url, where)
    with apprise.LogCapture(level=logging.WARNING, name="apprise", fmt="%(message)s") as said:
        try:
            arrived = service.notify(body=text, title=title, body_format=apprise.NotifyFormat.TEXT)
            why = said.getvalue()
        except Exception as error:  # whatever a service's module raises must not end a night
            arrived, why = False, type(error).__name__
    if not arrived:
        told = one_line(_without_parts(why, url), 300) or "it gave no reason"
        raise RouteError(f"the message did not arrive: {told}", where=where)


def _library() -> Any:  # its classes have few types
    import apprise

    # It logs whole URLs, which would go to the terminal if nobody had set up logging.
    logger = logging.getLogger("apprise")
    logger.propagate = False
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())
    return apprise


def _service(url: str, where: str) -> Any:
    found = _library().Apprise.instantiate(url, suppress_exceptions=True)
    if found is not None:
        return found
    scheme = _SCHEME.match(url)
    named = f"that begins with {scheme[0]}://" if scheme else "without a service, such as mailto://"
    raise RouteError(
        f"Apprise does not know a URL {named}, or a part of it is missing",
        where=where,
        hint="docs/notifications.md has examples",
    )


def _without_parts(text: str, url: str) -> str:
    """Return a text in which nothing is left of a URL but its scheme."""
    parts = {part for piece in _BETWEEN.split(url)[1:] for part in (piece, unquote(piece))}
    for part in sorted(parts, key=len, reverse=True):
        if len(part) >= SHORTEST_SECRET:
            text = text.replace(part, "…")
    return text
