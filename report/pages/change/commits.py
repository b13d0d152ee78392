"""The commits between the two nights of a change, as a table: what to suspect before anything is bisected."""

from collections.abc import Iterator, Mapping

import htpy as h

from history.counts import counted
from history.numbers import DASH
from report.markup.formats import SHORT_HASH, probability
from report.markup.parts import note, section, table
from report.values.bisect_page import BisectPage
from report.values.commits import Commits, CommitsBetween, ListedCommit, NoCommits

HEADING = "Commits between the nights"


def commits_section(commits: Commits, bisect: BisectPage | None) -> h.Node:
    """Return the commits as a part of the page of a change, with their probabilities after a bisect."""
    if isinstance(commits, NoCommits):
        return section(HEADING, note(f"They are not listed: {commits.reason}."), id_="commits")
    chances = _chances(bisect)
    heads = ("commit", "subject", "author", "day", "files", *(["bisect"] if chances else []))
    return section(
        HEADING,
        table(heads, _rows(commits, chances), caption="Commits along first parents, newest first"),
        id_="commits",
        lead=commits_text(commits),
    )


def commits_text(commits: CommitsBetween) -> str:
    """Return how many commits there are, and how many of them can change the server."""
    listed, dropped = len(commits.newest), len(commits.newest) - len(commits.material)
    parts, of_these = [counted(commits.total, "commit")], ""
    if listed < commits.total:
        parts.append(f"the newest {listed} are listed")
        of_these = " of these"
    if dropped:
        parts.append(f"{dropped}{of_these} cannot change the server and {_are(dropped)} struck out")
    text = "; ".join(parts)
    if not commits.is_one_line:
        text += (
            ". The branch left the line of the earlier commit in between: these are the commits that only "
            "the later night has"
        )
    return f"{text}."


def _are(number: int) -> str:
    return "is" if number == 1 else "are"


def _chances(bisect: BisectPage | None) -> Mapping[str, str]:
    """Return the probability of each commit of a bisect by its beginning, or why it was left out."""
    if bisect is None or not bisect.rounds:
        return {}
    return {
        position.commit: "not measured" if position.excluded else probability(position.probability)
        for position in bisect.positions
        if position.position
    }


def _rows(commits: CommitsBetween, chances: Mapping[str, str]) -> Iterator[h.Node]:
    for commit in commits.newest:
        found = [text for beginning, text in chances.items() if commit.commit.startswith(beginning)]
        yield h.tr(class_="quiet" if commit.immaterial else None)[
            h.th(scope="row")[_name(commit)],
            h.td[_subject(commit)],
            h.td[commit.author or DASH],
            h.td(".day")[commit.date[:10]],
            h.td[_files(commit)],
            h.td(".n")[found[0] if found else DASH] if chances else None,
        ]


def _name(commit: ListedCommit) -> h.Node:
    name = h.code[commit.commit[:SHORT_HASH]]
    return h.a(href=commit.address, rel="noreferrer")[name] if commit.address.startswith("https:") else name


def _subject(commit: ListedCommit) -> h.Node:
    if not commit.immaterial:
        return commit.subject
    return [h.s[commit.subject], h.br, f"cannot change the server: {commit.immaterial}"]


def _files(commit: ListedCommit) -> h.Node:
    more = commit.file_count - len(commit.files)
    if not commit.files:
        return DASH
    return [
        [[", " if place else "", h.code[name]] for place, name in enumerate(commit.files)],
        f" and {more} more" if more else "",
    ]
