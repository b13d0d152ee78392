"""Where each page of the site lies, relative to its root. Addresses never change, and are never reused.

They are made of names that hold in every history (uids, fingerprints, branches, hosts), never of the ids of
one database, which a merge changes. Text from outside becomes a file name only when it is harmless as one.
"""

import hashlib
import re

INDEX = "index.html"
CHANGES = "changes/index.html"
FEED = "changes/feed.atom"
BRANCHES = "branches/index.html"
TREND = "trend.html"
LADDERS = "compare/index.html"
SERIES = "series.html"
SESSIONS = "sessions/index.html"
MACHINES = "machines/index.html"
BISECTS = "bisects/index.html"
HELP = "help.html"

DIGITS = 12
"""Hexadecimal digits of a name that is a digest: 48 bits, for some ten thousand names."""

_HARMLESS = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
_LONGEST = 100
_UNFIT = re.compile(r"[^A-Za-z0-9._-]+")
_RESERVED = frozenset({"index", "setup"})


def digest(*parts: str) -> str:
    """Return the name of several texts in DIGITS hexadecimal digits."""
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:DIGITS]


def file_name(text: str) -> str:
    """Return a text as it is when it can be a file name, else what is harmless of it and its digest."""
    if _HARMLESS.fullmatch(text) and text not in _RESERVED and ".." not in text:
        return text
    readable = _UNFIT.sub("-", text)[:40].strip("-.").replace("..", ".")
    return f"{readable}-{digest(text)}" if readable else digest(text)


def change(fingerprint: str) -> str:
    """Return the page of a change, which issues link to."""
    return f"changes/{file_name(fingerprint)}.html"


def picture(fingerprint: str, series_key: str = "") -> str:
    """Return the chart of a change, or of one of its series, as a file to stand in other pages."""
    return f"changes/{file_name(fingerprint)}{f'-{series_key}' if series_key else ''}.svg"


def branch(name: str) -> str:
    """Return the page of a branch such as `postgres@REL_18_STABLE`."""
    engine, at, ref = name.partition("@")
    return f"branches/{file_name(f'{engine}-{ref}' if at and engine.isalpha() else name)}.html"


def ladder(suite: str, box: str, configuration: str, base: str) -> str:
    """Return the page with all versions of one box, suite and configuration with one base branch."""
    parts = (suite, box, configuration.replace(" ", "_"), base.replace("@", "-"))
    name = "--".join(parts)
    plain = all(_HARMLESS.fullmatch(part) and "--" not in part for part in parts) and "_" not in configuration
    if plain and len(name) <= _LONGEST:
        return f"compare/{name}.html"
    return f"compare/{digest(suite, box, configuration, base)}.html"


def series(key: str = "") -> str:
    """Return the series explorer, at one series if a key of `series_id` is given."""
    return f"{SERIES}#s={key}" if key else SERIES


def series_id(box: str, suite: str, configuration: str, branch_name: str, step: str, metric: str) -> str:
    """Return the name of a series: a digest of its key columns."""
    return digest(box, suite, configuration, branch_name, step, metric)


def session(uid: str, step: str = "") -> str:
    """Return the page of a session, at a step if one is given."""
    return f"sessions/{file_name(uid)}.html{f'#{anchor(step)}' if step else ''}"


def step(uid: str, name: str) -> str:
    """Return the page of one step of a session."""
    return f"sessions/{file_name(uid)}/{file_name(name)}.html"


def setup(uid: str) -> str:
    """Return the page with the settings and builds of a session."""
    return f"sessions/{file_name(uid)}/setup.html"


def machine(box: str) -> str:
    """Return the page of a box."""
    return f"machines/{file_name(box)}.html"


def bisect(uid: str) -> str:
    """Return the page of a bisect."""
    return f"bisects/{file_name(uid)}.html"


def shard_folder(box: str, suite: str, configuration: str) -> str:
    """Return where the data of all series of an environment lies."""
    return f"data/{digest(box, configuration)}/{file_name(suite)}"


def shard(box: str, suite: str, configuration: str, step_name: str, name: str) -> str:
    """Return the key of the data of a step in a period, and with `.js` the path of a file of such data."""
    return f"{shard_folder(box, suite, configuration)}/{file_name(step_name)}/{name}"


def flame_graph(uid: str, step_name: str, what: str) -> str:
    """Return the flame graph of a step: of a version, or of the difference of two."""
    return f"sessions/{file_name(uid)}/{file_name(step_name)}-{digest(what)}.svg"


def anchor(text: str) -> str:
    """Return the id of an element for a text; unlike the text, it has no space and begins with a letter."""
    return f"x-{file_name(text)}"


def way_to_root(path: str) -> str:
    """Return the way from a page to the root of the site: empty, or `../` once for each folder."""
    return "../" * path.count("/")
