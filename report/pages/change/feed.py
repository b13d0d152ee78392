"""The changes as an Atom feed (RFC 4287), for a reader of feeds or a chat."""

import uuid
from collections.abc import Sequence
from datetime import datetime

from markupsafe import Markup

from history.changes.report import ChangeReport
from history.escaping.characters import one_line, visible
from history.timestamps import to_text
from report import addresses
from report.markup.template import Template, joined
from report.pages.change.commits import commits_text
from report.pages.changes import change_sentence, headline
from report.values.clearance import Clearance
from report.values.commits import Commits, CommitsBetween

MAX_ENTRIES = 100
"""The most changes in the feed: those that changed last."""

_NAMES = uuid.UUID("5ac63ee3-6b0c-5a0f-8d1c-1f0f6d0a0f0e")
"""The namespace of the ids, which are UUIDs of version 5: a fingerprint has the same id on every site."""

_FEED = Template(
    '<?xml version="1.0" encoding="utf-8"?>\n'
    '<feed xmlns="http://www.w3.org/2005/Atom" xml:lang="en"{}>\n'
    "<id>{}</id>\n<title>Changes · Tidemark</title>\n<updated>{}</updated>\n"
    "<author><name>Tidemark</name></author>\n"
    '<link rel="self" type="application/atom+xml" href="feed.atom"/>\n'
    '<link rel="alternate" type="text/html" href="index.html"/>\n{}</feed>\n'
)
_BASE = Template(' xml:base="{}"')
_ENTRY = Template(
    "<entry>\n<id>{}</id>\n<title>{}</title>\n<updated>{}</updated>\n<published>{}</published>\n"
    '<link rel="alternate" type="text/html" href="{}"/>\n<category term="{}"/>\n<summary>{}</summary>\n'
    "</entry>\n"
)


def change_feed(
    changes: Sequence[tuple[ChangeReport, Commits]],
    clearance: Clearance,
    site: str,
    address: str,
    when: datetime,
) -> str:
    """Return the feed of changes with the commits between their nights.

    `site` tells sites apart: the oldest session's uid. Links are relative to `address`, that of the site's
    root; where it is unknown, to where the feed was read. `when` is the time of a feed without changes, which
    stays the same.
    """
    newest = sorted(changes, key=lambda found: found[0].change.updated_at, reverse=True)[:MAX_ENTRIES]
    updated = newest[0][0].change.updated_at if newest else when
    base = _BASE(f"{address.rstrip('/')}/changes/") if address else ""
    entries = joined(_entry(report, commits, clearance) for report, commits in newest)
    return visible(_FEED(base, _id("site", site), to_text(updated), entries))


def _id(kind: str, name: str) -> str:
    return uuid.uuid5(_NAMES, f"{kind} {name}").urn


def _entry(report: ChangeReport, commits: Commits, clearance: Clearance) -> Markup:
    change = report.change
    return _ENTRY(
        _id("change", change.fingerprint),
        one_line(f"{headline(report)}: {change.branch}"),
        to_text(change.updated_at),
        to_text(change.found_at),
        addresses.change(change.fingerprint).rpartition("/")[2],
        str(change.status),
        one_line(f"{change_sentence(report, clearance)}{_commits(commits)} Status: {change.status}."),
    )


def _commits(commits: Commits) -> str:
    """Return how many commits there are between the nights, and the subject of the only one."""
    if not isinstance(commits, CommitsBetween):
        return ""
    only = commits.material[0].subject if len(commits.material) == 1 == commits.total else ""
    return f" {commits_text(commits)}" + (f" It is: {only}." if only else "")
