"""What differs between the REST APIs of trackers, and what a refusal of one means."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from runners.alerting.tracker import TrackerBusyError, TrackerRefusedError

NEXT_NIGHT = "it is tried again with the next night"


@dataclass(frozen=True)
class ApiAnswer:
    """An answer of the API."""

    status: int
    headers: Mapping[str, str]
    """Names in small letters."""

    content: bytes


@dataclass(frozen=True)
class ApiDialect:
    """How one tracker's API is signed in to, and what its answers say."""

    tracker: str
    """Its name, for people."""

    accept: str
    """The type of its answers."""

    signing: Callable[[str], str]
    """The value of the header Authorization, from a token."""

    address_in: str
    """What names its address: an environment variable, or a key of the plan."""

    remaining: str
    """The header with the number of requests that are left, in small letters."""

    reset: str
    """The header with the time, in seconds since 1970, at which there are more again."""

    limits: tuple[str, ...]
    """What it says, in small letters, with a 403 that is one of its limits and not a matter of rights."""

    hints: tuple[tuple[int, str, str], ...]
    """Status, a part of its message in small letters, and what to do. The first that matches counts."""

    def hint(self, status: int, message: str) -> str:
        """Return what a person can do about a refusal."""
        said = message.lower()
        found = (hint for code, part, hint in self.hints if code == status and part in said)
        return next(found, "see its message")

    @property
    def limit_hint(self) -> str:
        """What a person can do about a limit."""
        return (
            f"{self.tracker} limits how many requests an account makes: nothing has to be done, and it is"
            " tried again after the pause; if that happens often, give Tidemark an account of its own"
        )

    def not_understood(self, what: str, where: str) -> TrackerBusyError:
        """Return the error about an answer that is not what was asked for."""
        return TrackerBusyError(
            f"the tracker's answer holds {what}",
            where=where,
            hint=f"{NEXT_NIGHT}; check {self.address_in} and what lies between",
        )


class ApiRefusedError(TrackerRefusedError):
    """The tracker answered with a status that says that the same request will fail again."""

    def __init__(self, what: str, *, where: str, hint: str, status: int, message: str) -> None:
        super().__init__(what, where=where, hint=hint)
        self.status = status
        self.message = message
        """What the tracker said, its list of errors included; one line."""


class ApiConflictError(TrackerBusyError):
    """What was to be changed is not as the request took it to be."""


def message_of(content: bytes) -> str:
    """A tracker's message, followed by its list of errors; empty when the content is something else."""
    try:
        data = json.loads(content)
    except (ValueError, RecursionError):
        return ""
    if not isinstance(data, dict):
        return ""
    errors = data.get("errors")
    listed = "; ".join(map(_one_error, errors)) if isinstance(errors, list) else ""
    said = (data.get("message"), data.get("error"), data.get("error_description"))
    message = ": ".join(filter(None, map(_flat, said)))
    return f"{message} ({listed})" if listed else message


def _flat(said: Any) -> str:
    """A message as one text. GitLab's may be a list, or lists by field: `title is too long`."""
    if isinstance(said, list):
        return "; ".join(map(_flat, said))
    if isinstance(said, dict):
        return "; ".join(f"{name} {_flat(why)}" for name, why in said.items())
    return str(said or "")


def _one_error(error: Any) -> str:
    """Such as `Label name: is too long` or `Issue title: missing_field` (GitHub's client errors)."""
    if not isinstance(error, dict):
        return str(error)
    field = " ".join(str(error[name]) for name in ("resource", "field") if error.get(name))
    why = str(error.get("message") or error.get("code") or "")
    return f"{field}: {why}" if field and why else field or why
