"""The plan of a box as commented TOML."""

import json
import re
from collections.abc import Sequence

from runners.alerting.notices.routes import Route
from runners.initializing.answers import Answers, Tracking
from runners.nightly.plan import Alerts, Plan

_BARE = re.compile(r"[A-Za-z0-9_-]+")

HEAD = """\
# The plan of the nightly service, written by ./tidemark runner init. docs/nightly.md describes every key.
# Nights read it anew. After changing a box, the tracker or a route, call ./tidemark runner install again;
# ./tidemark runner init --check says what is missing then.
"""

OWNERS = """\
# [[owners]]                    # whose changes are: the last entry that matches counts
# suites = ["write-heavy"]
# mention = "@org/performance"
"""


def plan_text(answers: Answers) -> str:
    """Return the text of a plan, which `load_plan` accepts."""
    parts = [
        HEAD,
        _whole(),
        _box(answers),
        *map(_engine, answers.tracked),
        *(_task(suite, answers.profile) for suite in answers.suites),
        _alerts(answers.alerts),
        *(_route(route) for route in answers.routes),
        "[site]\nwrite = true                    # pages with charts, in site/ of the home\n",
        OWNERS,
    ]
    return "\n".join(parts)


def _whole() -> str:
    keys = ("regression_percent", "backups", "digest_day")
    words = ("changes of at most so many percent are not reported", "copies of the history", "of the digest")
    defaults = (Plan.model_fields[key].default for key in keys)
    return "".join(
        _line(f"# {key}", value, comment) for key, value, comment in zip(keys, defaults, words, strict=True)
    )


def _box(answers: Answers) -> str:
    lines = [f"[boxes.{_key(answers.box)}]\n"]
    lines += [_line("label", f"tidemark-{answers.box}"[:63], "of its GitHub runner, if it has one")]
    if answers.hostname is not None:
        lines += [_line("hostname", answers.hostname)]
    lines += [_line("budget_minutes", answers.budget_minutes, "no session begins later in a night")]
    return "".join(lines)


def _engine(tracked: Tracking) -> str:
    lines = [f"[engines.{tracked.base.engine}]\n"]
    lines += [_line("base", str(tracked.base), "what everything is compared with")]
    lines += [_line("releases", _refs(tracked.releases), "measured once")]
    lines += [_line("branches", _refs(tracked.branches), "measured whenever they have moved")]
    lines += [_line("git", tracked.git, "of the branches")]
    lines += [_line("# follow", "minor", "measure new minor releases without naming them")]
    return "".join(lines)


def _task(suite: str, profile: str) -> str:
    return "".join(["[[tasks]]\n", _line("suite", suite), _line("profile", profile)])


def _alerts(alerts: Alerts) -> str:
    lines = ["[alerts]\n"]
    if alerts.repository is None:
        lines += [_line("# repository", "owner/name", "where issues are opened; without it, nowhere")]
    else:
        lines += [_line("tracker", alerts.tracker)]
        lines += [] if alerts.url is None else [_line("url", alerts.url)]
        lines += [_line("repository", alerts.repository, "where issues are opened")]
    return "".join([*lines, _line("labels", alerts.labels, "of every issue")])


def _route(route: Route) -> str:
    secret = f"its URL is the credential {route.credential}" if route.needs_credential else ""
    lines = ["[[notify]]\n", _line("name", route.name, secret)]
    lines += [] if route.url is None else [_line("url", route.url)]
    lines += [_line("# kinds", route.kinds, "of messages")]
    return "".join(lines)


def _refs(versions: Sequence[object]) -> list[str]:
    return [str(version).partition("@")[2] for version in versions]


def _line(key: str, value: object, comment: str = "") -> str:
    """Return a line of TOML, with a comment in the column of all comments if there is room."""
    text = f"{key} = {_value(value)}"
    return f"{text:<30}  # {comment}\n" if comment else f"{text}\n"


def _value(value: object) -> str:
    """Return a value as TOML: strings, numbers and arrays are as in JSON, but for one character."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else json.dumps(name)
