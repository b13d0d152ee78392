"""The answers from which a plan is made, and the questions that lead to them."""

import argparse
import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import TypeAdapter, ValidationError

from build.addresses import without_secrets
from build.home import Home
from build.sources.git import require_address
from build.version import Engine, Version, parse_version
from runners.alerting.notices.routes import Route
from runners.alerting.tracker_registry import TRACKERS, WITH_SUBGROUPS, tracker_at
from runners.initializing import found
from runners.initializing.interview import NONE, InitError, InitQuestion, Interview, Words
from runners.nightly.plan import Alerts, Label
from runners.own_workload.arguments import USUAL_SUITE
from runners.values import minutes
from suites.definition import Suite, load_suite

BUDGET_MINUTES = 480.0
"""The budget that is offered: a night of eight hours."""


@dataclass(frozen=True)
class Tracking:
    """What is measured of one engine."""

    base: Version
    releases: tuple[Version, ...]
    branches: tuple[Version, ...]
    git: str

    @property
    def versions(self) -> int:
        """How many versions a session has at most."""
        return 1 + len(self.releases) + len(self.branches)


@dataclass(frozen=True)
class Answers:
    """What the plan of a box is made of."""

    box: str
    hostname: str | None
    """The host name, if it is not the name of the box."""

    budget_minutes: float
    tracked: tuple[Tracking, ...]
    suites: tuple[str, ...]
    profile: str
    alerts: Alerts
    routes: tuple[Route, ...]


def interview(asked: Interview, home: Home, folder: Path) -> Answers:
    """Return the answers to all questions. Raises InitError with all that are missing or refused.

    `home` is that of the box, and `folder` one on its disk that exists.
    """
    node = platform.node()
    name = asked.answer(_question("--box", "name of this box", found.box_name(), "box1"), _box)
    tracked = _tracked(asked, home)
    suites = asked.answer(
        _question("--suite", "suites to run", USUAL_SUITE, USUAL_SUITE), _suites_of(tracked)
    )
    versions = max(tracking.versions for tracking in tracked)
    offered = found.profile_of(suites, versions, folder)
    first = next(iter(suites[0].profiles))
    text = f"profile: {', '.join(suites[0].profiles)}"
    profile = asked.answer(_question("--profile", text, offered, first), _profile_of(suites))
    text = "minutes of a night in which sessions may begin"
    budget = asked.answer(_question("--budget", text, f"{BUDGET_MINUTES:g}", "480"), _minutes)
    alerts = _alerts(asked)
    text = "routes by which people are told, such as team"
    routes = asked.answer(_question("--notify", text, NONE, "team"), _routes)
    asked.require_complete()
    names = tuple(suite.name for suite in suites)
    return Answers(name, None if node == name else node, budget, tracked, names, profile, alerts, routes)


def _question(option: str, text: str, default: str | None, example: str) -> InitQuestion:
    return InitQuestion(option, text, None if default is None else default.split(), [example])


# --- what is measured


def _tracked(asked: Interview, home: Home) -> tuple[Tracking, ...]:
    there = found.clones()
    first = next(iter(there), next(iter(Engine)))
    base = str(found.base_of(first, home))
    bases = asked.answer(_question("--base", "release to compare with", base, base), _bases)
    engines = [version.engine for version in bases]
    newest = [str(release) for version in bases if (release := found.release_of(version, home))]
    offered = " ".join(newest) or NONE
    text = "other releases to measure"
    releases = asked.answer(_question("--release", text, offered, NONE), _versions(engines, release=True))
    offered = " ".join(str(found.branch_of(engine)) for engine in engines)
    text = "branches to measure when they move"
    branches = asked.answer(_question("--branch", text, offered, offered), _versions(engines, release=False))
    return tuple(
        Tracking(
            version,
            tuple(release for release in releases if release.engine is version.engine),
            tuple(branch for branch in branches if branch.engine is version.engine),
            _git(asked, version.engine, engines, found.source_of(version.engine, there)),
        )
        for version in bases
    )


def _git(asked: Interview, engine: Engine, engines: Sequence[Engine], offered: str) -> str:
    def accept(words: Words) -> str:
        for word in words:
            named, equals, source = word.partition("=")
            if not (equals and named in tuple(Engine)):
                if len(engines) > 1 and "--git" in asked.given:
                    raise InitError(f"{word} does not say of which engine", hint=f"{engine}={word}")
                named, source = str(engine), word
            if named != engine:
                continue
            require_address(source)
            if without_secrets(source) != source:
                raise InitError(
                    "it holds a user name, password or token, which git shows in the process list"
                )
            return source
        return offered

    return asked.answer(_question("--git", f"git source of {engine}", offered, offered), accept)


def _bases(words: Words) -> list[Version]:
    bases = _parsed(words)
    for version in bases:
        if not version.is_release or version.variant:
            raise InitError(f"{version} is no release", hint="a base is such as postgres@17.11")
    if len({version.engine for version in bases}) < len(bases):
        raise InitError("an engine has one base only")
    return bases


def _versions(engines: Sequence[Engine], *, release: bool) -> Callable[[Words], list[Version]]:
    def accept(words: Words) -> list[Version]:
        versions = [] if list(words) == [NONE] else _parsed(words)
        for version in versions:
            if version.variant:
                raise InitError(f"{version} is a variant", hint="add it to the plan when it is written")
            if version.engine not in engines:
                raise InitError(
                    f"{version.engine} has no base", hint=f"name one: --base {version.engine}@..."
                )
            if version.is_release is not release:
                what = "is no release, but may be a branch" if release else "is a release, and no branch"
                raise InitError(f"{version} {what}")
        return versions

    return accept


def _parsed(words: Words) -> list[Version]:
    return [parse_version(part) for word in words for part in word.split(",") if part]


def _suites_of(tracked: Sequence[Tracking]) -> Callable[[Words], list[Suite]]:
    def accept(words: Words) -> list[Suite]:
        suites = [load_suite(name) for word in words for name in word.split(",") if name]
        for suite in suites:
            if not any(tracking.base.engine in suite.engines for tracking in tracked):
                raise InitError(f"{suite.name} runs on none of the engines: {', '.join(suite.engines)}")
        return suites

    return accept


def _profile_of(suites: Sequence[Suite]) -> Callable[[Words], str]:
    def accept(words: Words) -> str:
        name = " ".join(words)
        for suite in suites:
            suite.profile(name)
        return name

    return accept


# --- the box, and whom it tells


def _box(words: Words) -> str:
    try:
        return TypeAdapter[str](Label).validate_python(" ".join(words))
    except ValidationError:
        raise InitError("a name has letters, digits, dots, - and _ only, at most 63") from None


def _minutes(words: Words) -> float:
    try:
        return minutes(" ".join(words))
    except argparse.ArgumentTypeError as error:
        raise InitError(str(error)) from None


def _alerts(asked: Interview) -> Alerts:
    text = "address of the repository in which issues are opened"
    example = "https://github.com/owner/name"
    address = asked.answer(_question("--issues", text, NONE, example), _address)
    if address == NONE:
        return Alerts()
    host = urlsplit(address).hostname or ""
    kind = tracker_at(host)
    if kind is None or "--tracker" in asked.given:
        example = next(iter(TRACKERS))
        kind = asked.answer(_question("--tracker", f"what runs at {host}", None, example), _tracker)
    try:
        return _alerts_at(address, kind)
    except ValidationError as error:
        asked.refused.append(f"--issues {address}: {error.errors()[0]['msg'].removeprefix('Value error, ')}")
        return Alerts()


def _alerts_at(address: str, tracker: str) -> Alerts:
    """Return where issues are opened.

    The last two parts of the path are the repository, or all of it where groups may lie in groups. A tracker
    at an address of its own is named by it.
    """
    parts = urlsplit(address)
    names = parts.path.strip("/").removesuffix(".git").split("/")
    count = len(names) if tracker in WITH_SUBGROUPS else 2
    pages = "/".join([f"{parts.scheme}://{parts.netloc}", *names[:-count]])
    return Alerts(
        tracker=tracker,
        url=None if pages == f"https://{tracker}.com" else pages,
        repository="/".join(names[-count:]),
    )


def _address(words: Words) -> str:
    text = " ".join(words)
    parts = urlsplit(text)
    if text != NONE and not (parts.scheme in ("http", "https") and parts.netloc and "/" in parts.path[1:]):
        raise InitError("it is no address of a repository", hint="copy that of its page in a browser")
    if parts.username or parts.query or parts.fragment:
        raise InitError("it is more than the address of a repository: leave out user name, ? and #")
    return text


def _tracker(words: Words) -> str:
    name = " ".join(words)
    if name not in TRACKERS:
        raise InitError(f"there is no tracker {name!r}: the trackers are {', '.join(TRACKERS)}")
    return name


def _routes(words: Words) -> tuple[Route, ...]:
    routes = []
    for word in [] if list(words) == [NONE] else words:
        name, _, url = word.partition("=")
        if "://" in name:
            raise InitError("a URL without the name of its route", hint="use NAME=URL, such as team=URL")
        try:
            routes.append(Route(name=name, url=url or None))
        except ValidationError as error:
            reason = error.errors(include_url=False)[0]["msg"].removeprefix("Value error, ")
            raise InitError(f"route {name}: {reason}") from None
    return tuple(routes)
