"""A bisect of a repository with criss-cross merges, beside git's own."""

import subprocess
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

from build.home import Home
from build.version import Engine
from runners.bisect.domain.ancestry import ancestry_of
from runners.bisect.domain.question import CandidateRange
from runners.bisect.domain.rules import Measure, Observation
from runners.bisect.inference.branched.search import BranchedSearch
from runners.bisect.report.costs import changed_costs
from runners.bisect.report.render import markdown, text
from runners.bisect.report.state import BisectState
from runners.bisect.run.candidates import candidate_range
from tests.plain_repository import PlainRepository
from tests.runners.bisect.stand import QPS, Stand, a_question, version_of

PARENTS = {
    1: [0], 2: [1], 3: [1], 4: [3], 5: [2, 4], 6: [4, 2], 7: [5], 8: [6], 9: [8], 10: [7, 9], 11: [9, 7],
    12: [10], 13: [11], 14: [13], 15: [14], 16: [15], 17: [12], 18: [17, 16], 19: [18], 20: [19],
}  # fmt: skip
"""Two branches that merge each other twice, then once more into one."""

SLOWER = 0.85


def _stream() -> Iterator[str]:
    """What git fast-import reads: each commit changes a file of its own, a merge as well."""
    files: dict[int, set[int]] = {}
    for number in range(21):
        parents = PARENTS.get(number, [])
        files[number] = {number}.union(*(files[parent] for parent in parents))
        yield f"commit refs/heads/main\nmark :{number + 1}\n"
        yield f"committer A <a@example.org> {1_760_000_000 + number} +0000\n"
        subject = f"Commit {number}"
        yield f"data {len(subject)}\n{subject}\n"
        for word, parent in zip(["from", *["merge"] * 9], parents, strict=False):
            yield f"{word} :{parent + 1}\n"
        for name in sorted(files[number]):
            yield f"M 100644 inline src/{name}.c\ndata 1\nx\n"


@pytest.fixture(scope="module")
def merged(tmp_path_factory: pytest.TempPathFactory) -> PlainRepository:
    work = PlainRepository(tmp_path_factory.mktemp("merged") / "work")
    subprocess.run(
        ["git", "-C", str(work.path), "fast-import", "--quiet"],
        input="".join(_stream()),
        text=True,
        check=True,
    )
    return work


@pytest.fixture(scope="module")
def commits(merged: PlainRepository) -> list[str]:
    """The commits by number."""
    listed = merged.git("log", "--format=%s %H", "main").splitlines()
    by_number = {int(line.split()[1]): line.split()[2] for line in listed}
    return [by_number[number] for number in range(21)]


def steps_of_git(work: PlainRepository, good: str, culprit: str) -> int:
    """How many commits git's own bisect asks for until it names the culprit."""
    work.git("bisect", "start", "--no-checkout", "main", good)
    check = f"! git merge-base --is-ancestor {culprit} BISECT_HEAD"
    said = work.git("bisect", "run", "sh", "-c", check)
    log = work.git("bisect", "log").splitlines()
    work.git("bisect", "reset")
    assert f"{culprit} is the first bad commit" in said
    return sum(line.startswith("git bisect ") for line in log) - 1


def steps_of_search(span: CandidateRange, culprit: str, work: PlainRepository) -> int:
    """How many commits the search asks for, without noise."""
    ancestry = ancestry_of(span.parents)
    assert ancestry is not None
    search, asked = BranchedSearch(ancestry), set[int]()
    place = [point.commit for point in span.points].index(culprit)
    while isinstance(wanted := search.next(), Measure):
        asked.update(wanted.positions)
        for position in wanted.positions * wanted.rounds:
            has = ancestry.contains[position, place - 1]
            search.observe(Observation(position, -0.1 if has else 0.0))
    assert (wanted.kind, wanted.suspects) == ("culprit", (place,))
    return len(asked - {ancestry.length})


@pytest.mark.deep("searches that are simulated many times")
def test_it_asks_for_as_many_commits_as_git(
    merged: PlainRepository, commits: list[str], tmp_path: Path
) -> None:
    span = candidate_range(Engine.POSTGRES, commits[0], "main", str(merged.path), Home(tmp_path))
    assert {point.commit for point in span.points} == set(commits)
    for number in (4, 7, 13, 18):
        git = steps_of_git(merged, commits[0], commits[number])
        assert steps_of_search(span, commits[number], merged) <= git + 1


@pytest.mark.deep("searches that are simulated many times")
def test_the_report_names_the_merge_that_brought_the_culprit(
    merged: PlainRepository, commits: list[str], stand: Callable[..., Stand]
) -> None:
    @cache
    def has(number: int) -> bool:
        return number == 13 or any(map(has, PARENTS.get(number, ())))

    rates = {
        version_of(commit): QPS * (SLOWER if has(number) else 1) for number, commit in enumerate(commits)
    }
    machine = stand(rates=rates, address=str(merged.path))
    log = machine.bisect(a_question(commits[0], "main"))
    state = BisectState(log)
    names = f"{commits[13][:12]} (merged by {commits[18][:12]})"
    assert f"{names} (Commit 13) changes qps of" in text(state)
    assert f"merged by {commits[18]}" in markdown(state)
    ((cost,),) = changed_costs(machine.store, log).values()
    assert cost.value == pytest.approx(1 / SLOWER, rel=0.02)
    assert [version.ref for version in state.pair()] == [f"git:{commits[at][:12]}" for at in (11, 13)]
    # The same command finds it again, and its log says the same.
    assert machine.bisect(a_question(commits[0], "main")).bisect.uid == log.bisect.uid
