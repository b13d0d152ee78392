"""Where people are told: the routes of a plan, what each of them wants, and where its URL comes from."""

import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from runners.alerting.notices.apprise_urls import RouteError, holds_secret, require_known
from runners.alerting.notices.outbox import NoticeKind
from runners.alerting.tokens import STORE, token

KINDS = (
    NoticeKind.NEW,
    NoticeKind.RETURNED,
    NoticeKind.CONFIRMED,
    NoticeKind.FIXED,
    NoticeKind.TROUBLE,
    NoticeKind.DIGEST,
)
"""What a route may ask for, and gets by default."""


@dataclass(frozen=True)
class About:
    """What a notice is about, as far as routes choose by it. What is None or empty suits every route."""

    suites: Collection[str] = ()
    branches: Collection[str] = ()
    """Without variants: `postgres@master`."""

    boxes: Collection[str] = ()
    percent: float | None = None
    """How large the largest change is; None if it is not about changes."""

    is_confirmed: bool = False
    """Whether it is about a change that was measured again, so that who wants confirmed ones wants it."""


class Route(BaseModel):
    """One place where people are told."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{0,31}$")]
    url: str | None = None
    """A URL of Apprise without a secret."""

    url_file: str | None = None
    """The absolute path of a file with the URL."""

    kinds: tuple[str, ...] = tuple(KINDS)
    suites: tuple[str, ...] = ()
    branches: tuple[str, ...] = ()
    """As `postgres@master`; their variants belong to them."""

    boxes: tuple[str, ...] = ()
    min_percent: Annotated[float, Field(ge=0, lt=100)] = 0.0
    """Changes that are smaller are not told here."""

    @field_validator("kinds")
    @classmethod
    def _known_kinds(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for kind in value:
            if kind not in KINDS:
                raise ValueError(f"'{kind}' is none of {', '.join(KINDS)}")
        return value

    @model_validator(mode="after")
    def _usable(self) -> "Route":
        if self.url is not None and self.url_file is not None:
            raise ValueError("url and url_file: one of them is enough")
        if self.url_file is not None and not self.url_file.startswith("/"):
            raise ValueError("url_file is not an absolute path")
        try:
            if self.url is not None and holds_secret(self.url, self.where):
                raise ValueError(
                    f"url holds a secret, which is not for a plan: set {self.variable}, or write it to "
                    f"{STORE}/{self.credential} of the box, or to a file that url_file names"
                )
        except RouteError as error:
            raise ValueError(f"url: {error.what}") from None
        return self

    @property
    def where(self) -> str:
        """What messages call it."""
        return f"route {self.name}"

    @property
    def variable(self) -> str:
        """The environment variable with its URL."""
        return f"TIDEMARK_NOTIFY_{self.name.replace('-', '_').upper()}"

    @property
    def credential(self) -> str:
        """The systemd credential with its URL."""
        return f"tidemark-notify-{self.name}"

    @property
    def needs_credential(self) -> bool:
        """Whether the plan says nothing of its URL."""
        return self.url is None and self.url_file is None

    def address(self) -> str:
        """Return its URL. Raises RouteError when there is none, or Apprise does not know it."""
        if self.url is not None:
            return self.url
        if self.url_file is not None:
            try:
                found: str | None = Path(self.url_file).read_text(encoding="utf-8").strip()
            except (OSError, UnicodeDecodeError) as error:
                raise RouteError(
                    f"{self.url_file} cannot be read: {getattr(error, 'strerror', None) or 'it is no text'}",
                    where=self.where,
                    hint=f"write the URL to it, readable by user {os.getuid()}",
                ) from None
        else:
            found = token(self.variable, self.credential)
        if not found:
            raise RouteError(
                f"{self.url_file} is empty"
                if self.url_file
                else f"{self.variable} is not set, and there is no credential {self.credential}",
                where=self.where,
                hint=f"write its URL to {self.url_file or f'{STORE}/{self.credential}'}",
            )
        require_known(found, self.where)
        return found

    def wants(self, kind: NoticeKind, about: About) -> bool:
        """Return whether a notice is told here."""
        asked = {NoticeKind.TROUBLE if kind is NoticeKind.OVER else kind}
        if about.is_confirmed and kind in (NoticeKind.NEW, NoticeKind.RETURNED):
            asked.add(NoticeKind.CONFIRMED)
        return not asked.isdisjoint(self.kinds) and self.covers(about)

    def covers(self, about: About) -> bool:
        """Return whether it lies within what messages here are about, of whatever kind."""
        return (
            _meet(self.suites, about.suites)
            and _meet(self.branches, about.branches)
            and _meet(self.boxes, about.boxes)
            and (about.percent is None or about.percent >= self.min_percent)
        )


def wanting(routes: Sequence[Route], kind: NoticeKind, about: About) -> list[str]:
    """Return the names of the routes that want a notice."""
    return [route.name for route in routes if route.wants(kind, about)]


def _meet(chosen: Collection[str], found: Collection[str]) -> bool:
    return not chosen or not found or not set(chosen).isdisjoint(found)
