"""The frame of a page: head with the content policy, navigation, footer; and the page that stands alone.

The policy was tried on `file://` and from a server: everything comes from the site's own folder, and neither
a script nor a style stands in a page. A page to mail has its style sheet inside, named by its digest.
"""

import base64
import hashlib
from dataclasses import dataclass
from datetime import datetime

import htpy as h
from markupsafe import Markup

from history.escaping.characters import visible
from report import addresses
from report.markup.formats import moment

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; frame-src 'self'; "
    "base-uri 'none'; form-action 'none'"
)
"""What a page of the site may load."""

NAVIGATION = (
    ("Overview", addresses.INDEX),
    ("Changes", addresses.CHANGES),
    ("Branches", addresses.BRANCHES),
    ("Versions", addresses.LADDERS),
    ("Series", addresses.SERIES),
    ("Sessions", addresses.SESSIONS),
    ("Machines", addresses.MACHINES),
    ("Bisects", addresses.BISECTS),
    ("Help", addresses.HELP),
)

WRITTEN = Markup("<!--written-->")
"""Stands in a rendered page for the time when its content was last written; no text can become a comment."""


@dataclass(frozen=True)
class Page:
    """A page before it is rendered."""

    path: str
    """Its place below the root of the site."""

    title: str
    body: h.Node
    """What stands below the heading."""

    data_until: datetime | None
    """The time of the newest data on it; None without any."""

    heading: h.Node = None
    """The heading, if it is more than the title."""

    crumbs: tuple[tuple[str, str], ...] = ()
    """Where the page belongs: names and paths, outermost first."""

    scripts: tuple[str, ...] = ()
    """Scripts besides those of every page, as paths below the root."""

    styles: tuple[str, ...] = ()

    @property
    def root(self) -> str:
        """The way to the root of the site."""
        return addresses.way_to_root(self.path)


def rendered(page: Page, *, public: bool = False) -> str:
    """Return a page of the site as HTML; WRITTEN stands in it for when it was written."""
    root = page.root
    head = h.head[
        _metas(page.title, POLICY),
        h.link(rel="icon", href=f"{root}static/icon.svg", type="image/svg+xml"),
        h.link(rel="alternate", type="application/atom+xml", title="Changes", href=f"{root}{addresses.FEED}"),
        [h.link(rel="stylesheet", href=f"{root}{path}") for path in ("static/site.css", *page.styles)],
        [
            h.script(src=f"{root}{path}", defer=True)
            for path in (
                "static/site.js",
                "static/tables.js",
                "static/charts.js",
                "data/written.js",
                *page.scripts,
            )
        ],
    ]
    body = h.body(data_root=root)[
        h.a("#skip", href="#content")["Skip to the content"],
        h.header(".top")[h.div(".inner")[_brand(root), _navigation(page, root)]],
        h.main("#content")[_crumbs(page, root), _heading(page), page.body],
        _footer(page, root, public),
    ]
    return _page(head, body)


def standalone(page: Page, style: str) -> str:
    """Return a page to mail: one file with its style sheet inside, without scripts and navigation."""
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"
    )
    head = h.head[_metas(page.title, policy), h.style[Markup(style)]]
    footer = h.footer(".bottom")[
        h.div(".inner")[h.p[_state(page), " Made by Tidemark; times are UTC. The page needs no network."]]
    ]
    body = h.body(".alone")[h.main("#content")[_heading(page), page.body], footer]
    return _page(head, body)


def _page(head: h.Node, body: h.Node) -> str:
    """Return the page, in which nothing is hidden: no markup of ours is made of such characters."""
    return visible(f"{h.html(lang='en')[head, body]}\n")


def dated(text: str, written: datetime) -> str:
    """Return a rendered page with the time when its content was written."""
    return text.replace(WRITTEN, moment(written))


def _metas(title: str, policy: str) -> h.Node:
    return [
        h.meta(charset="utf-8"),
        h.meta(http_equiv="Content-Security-Policy", content=policy),
        h.meta(name="viewport", content="width=device-width, initial-scale=1"),
        h.meta(name="color-scheme", content="light dark"),
        h.meta(name="referrer", content="no-referrer"),
        h.title[f"{title} · Tidemark"],
    ]


def _brand(root: str) -> h.Node:
    return h.a(".brand", href=f"{root}{addresses.INDEX}")[
        h.svg(".mark", viewBox="0 0 28 20", aria_hidden="true")[
            h.path(d="M1 5q3.25-4 6.5 0t6.5 0t6.5 0t6.5 0"),
            h.path(d="M1 11q3.25-4 6.5 0t6.5 0t6.5 0t6.5 0"),
            h.path(d="M1 17q3.25-4 6.5 0t6.5 0t6.5 0t6.5 0"),
        ],
        h.span["Tidemark"],
    ]


def _navigation(page: Page, root: str) -> h.Node:
    folder = page.path.split("/")[0]
    return h.nav(aria_label="Pages")[
        h.ul[
            (
                h.li[
                    h.a(
                        href=f"{root}{path}",
                        aria_current=_current(page.path, path, folder),
                    )[name]
                ]
                for name, path in NAVIGATION
            )
        ]
    ]


def _current(own: str, path: str, folder: str) -> str | None:
    if own == path:
        return "page"
    return "true" if "/" in path and path.split("/")[0] == folder else None


def _crumbs(page: Page, root: str) -> h.Node:
    if not page.crumbs:
        return None
    return h.nav(".crumbs", aria_label="You are here")[
        h.ol[(h.li[h.a(href=f"{root}{path}")[name]] for name, path in page.crumbs)]
    ]


def _heading(page: Page) -> h.Node:
    return h.h1[page.heading or page.title]


def _state(page: Page) -> h.Node:
    until = f"data up to {moment(page.data_until)}" if page.data_until else "no data yet"
    return [h.span(".until")[f"This page: {until}"], ", written ", h.span(".written")[WRITTEN], "."]


def _footer(page: Page, root: str, public: bool) -> h.Node:
    return h.footer(".bottom")[
        h.div(".inner")[
            h.p[_state(page), " ", h.span("#freshness", aria_live="polite")],
            h.p[
                "All times are UTC. ",
                h.a(href=f"{root}{addresses.HELP}")["Terms, colours and signs"],
                ". ",
                h.a(href=f"{root}{addresses.FEED}")["Changes as a feed"],
                ". Some details are left out of this public site." if public else ".",
            ],
        ]
    ]
