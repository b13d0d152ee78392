"""Commits between good and bad: in order, those that cannot matter apart, and what cannot be searched."""

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from build.home import Home
from build.sources import git
from build.sources.commits import CommitInfo, RangeError, collapse, commit_range, immaterial, is_immaterial
from build.sources.git import GitError, Mirror
from build.version import Engine
from tests.plain_repository import PlainRepository

POSTGRES = immaterial(Engine.POSTGRES)


@pytest.fixture
def work(tmp_path: Path) -> PlainRepository:
    return PlainRepository(tmp_path / "work")


def mirror(work: PlainRepository, home: Home) -> Mirror:
    return git.mirror(str(work.path), Engine.POSTGRES, home)


def between(
    work: PlainRepository, home: Home, good: str, bad: str = "main"
) -> tuple[list[str], list[tuple[str, str]]]:
    """Candidates, and what was collapsed with its reason."""
    found = commit_range(mirror(work, home), Engine.POSTGRES, good, bad)
    return [candidate.commit for candidate in found.candidates], [
        (left_out.commit, left_out.reason) for left_out in found.collapsed
    ]


def test_commits_come_in_order_and_those_of_documentation_only_apart(
    work: PlainRepository, home: Home
) -> None:
    good = work.commit("src/a.c")
    doc = work.commit("doc/src/sgml/a.sgml")
    two = work.commit("src/b.c", "Two\n\nwith a body | and <html> and\x1f signs")
    words = work.commit("src/backend/po/de.po")
    three = work.commit("src/a.c", "Three")
    found = commit_range(mirror(work, home), Engine.POSTGRES, good, "main")
    assert [candidate.commit for candidate in found.candidates] == [two, three]
    assert [left_out.commit for left_out in found.collapsed] == [doc, words]
    assert found.collapsed[0].reason == "touches only doc/src/sgml/a.sgml"
    first = found.candidates[0]
    assert (first.author, first.subject) == ("Ada | &b", "Two")
    assert first.message == "Two\n\nwith a body | and <html> and\x1f signs"
    assert first.paths == ("src/b.c",)
    assert (found.good.commit, found.bad.commit) == (good, three)


def test_a_commit_of_both_kinds_of_paths_matters(work: PlainRepository, home: Home) -> None:
    good = work.commit("src/a.c")
    (work.path / "doc").mkdir()
    (work.path / "doc/a.sgml").write_text("a")
    both = work.commit("src/b.c")
    assert between(work, home, good) == ([both], [])


def test_a_merge_without_changes_of_its_own_stands_for_its_branch(work: PlainRepository, home: Home) -> None:
    good = work.commit("src/a.c")
    work.git("checkout", "--quiet", "-b", "side")
    side, tip = work.commit("src/side.c"), work.commit("src/tip.c")
    work.git("checkout", "--quiet", "main")
    work.git("merge", "--quiet", "--no-ff", "-m", "merge it", "side")
    merge = work.git("rev-parse", "HEAD")
    reason = f"a merge that changes nothing but what {tip[:12]} has"
    assert between(work, home, good) == ([side, tip], [(merge, reason)])
    found = commit_range(mirror(work, home), Engine.POSTGRES, good, "main")
    assert (found.parents, found.merged_by) == ((), {side: merge, tip: merge})
    assert (found.bad.commit, found.candidates[-1].commit) == (merge, tip)


def test_the_commits_of_a_merged_branch_are_candidates_with_their_parents(
    work: PlainRepository, home: Home
) -> None:
    good = work.commit("src/a.c")
    work.git("checkout", "--quiet", "-b", "side")
    side = [work.commit("src/side.c"), work.commit("doc/side"), work.commit("src/side.c")]
    work.git("checkout", "--quiet", "main")
    main = [work.commit("src/b.c")]
    work.git("merge", "--quiet", "--no-ff", "-m", "merge it", "side")
    merge = work.git("rev-parse", "HEAD")
    main.append(work.commit("src/b.c"))
    found = commit_range(mirror(work, home), Engine.POSTGRES, good, "main")
    places = {one.commit: place for place, one in enumerate(found.candidates, 1)} | {good: 0}
    assert [left_out.commit for left_out in found.collapsed] == [side[1]]
    assert {one.commit: parents for one, parents in zip(found.candidates, found.parents, strict=True)} == {
        side[0]: (0,),
        side[2]: (places[side[0]],),
        main[0]: (0,),
        merge: (places[main[0]], places[side[2]]),
        main[1]: (places[merge],),
    }
    assert found.merged_by == {side[0]: merge, side[2]: merge}


def test_a_merge_of_documentation_cannot_matter(work: PlainRepository, home: Home) -> None:
    good = work.commit("src/a.c")
    work.git("checkout", "--quiet", "-b", "side")
    work.commit("doc/side")
    work.git("checkout", "--quiet", "main")
    code = work.commit("src/b.c")
    work.git("merge", "--quiet", "--no-ff", "-m", "merge it", "side")
    merge = work.git("rev-parse", "HEAD")
    candidates, collapsed = between(work, home, good)
    assert candidates == [code]
    assert collapsed[-1] == (merge, "a merge that touches only doc/side")


def test_a_merge_that_keeps_nothing_cannot_matter(work: PlainRepository, home: Home) -> None:
    good = work.commit("src/a.c")
    work.git("checkout", "--quiet", "-b", "side")
    side = work.commit("src/side.c")
    work.git("checkout", "--quiet", "main")
    code = work.commit("src/b.c")
    work.git("merge", "--quiet", "-s", "ours", "-m", "keep ours", "side")
    candidates, collapsed = between(work, home, good)
    assert candidates == [code]
    assert set(collapsed) == {
        (side, "came with a merge that keeps nothing of it"),
        (work.git("rev-parse", "HEAD"), "a merge that changes nothing"),
    }


def test_an_empty_commit_cannot_matter(work: PlainRepository, home: Home) -> None:
    good = work.commit("src/a.c")
    work.git("commit", "--quiet", "--allow-empty", "-m", "nothing")
    empty = work.git("rev-parse", "HEAD")
    code = work.commit("src/b.c")
    assert between(work, home, good) == ([code], [(empty, "changes nothing")])


def test_a_file_that_became_documentation_matters(work: PlainRepository, home: Home) -> None:
    good = work.commit("src/a.c")
    (work.path / "doc").mkdir()
    work.git("mv", "src/a.c", "doc/a.c")
    work.git("commit", "--quiet", "-m", "move")
    assert between(work, home, good)[0] == [work.git("rev-parse", "HEAD")]


def test_a_name_with_strange_characters_matters(work: PlainRepository, home: Home) -> None:
    good = work.commit("src/a.c")
    odd = work.commit('doc/a\n"b')
    assert between(work, home, good)[0] == [odd]


# --- what cannot be searched


def test_a_ref_that_does_not_exist(work: PlainRepository, home: Home) -> None:
    work.commit("src/a.c")
    with pytest.raises(GitError, match="no tag, branch or commit 'REL_17_0'") as caught:
        between(work, home, "17.0")
    assert caught.value.hint == f"list tags and branches with: git ls-remote {work.path}"


def test_good_and_bad_swapped(work: PlainRepository, home: Home) -> None:
    good, bad = work.commit("src/a.c"), work.commit("src/b.c")
    with pytest.raises(RangeError, match="swapped") as caught:
        between(work, home, bad, good)
    assert f"--good {good} --bad {bad}" in caught.value.hint


def test_not_ancestors_of_each_other(work: PlainRepository, home: Home) -> None:
    base = work.commit("src/a.c")
    work.git("checkout", "--quiet", "-b", "REL_17_STABLE")
    work.commit("src/b.c")
    work.git("tag", "REL_17_0")
    work.git("checkout", "--quiet", "main")
    work.commit("src/c.c")
    with pytest.raises(RangeError, match=f"different branches, which diverge at {base[:12]}") as caught:
        between(work, home, "17.0")
    assert caught.value.hint.endswith(f"--good {base[:12]} --bad main")


def test_nothing_in_common(work: PlainRepository, home: Home) -> None:
    work.commit("src/a.c")
    work.git("checkout", "--quiet", "--orphan", "other")
    work.commit("src/b.c")
    with pytest.raises(RangeError, match="no common ancestor"):
        between(work, home, "main", "other")


def test_good_on_a_merged_branch(work: PlainRepository, home: Home) -> None:
    work.commit("src/a.c")
    work.git("checkout", "--quiet", "-b", "side")
    side = work.commit("src/side.c")
    work.git("checkout", "--quiet", "main")
    code = work.commit("src/b.c")
    work.git("merge", "--quiet", "--no-ff", "-m", "merge it", "side")
    merge = work.git("rev-parse", "HEAD")
    found = commit_range(mirror(work, home), Engine.POSTGRES, side, "main")
    assert [one.commit for one in found.candidates] == [code, merge]
    # The merge differs from good by what the other line brought.
    assert found.parents == ()


def test_the_same_commit(work: PlainRepository, home: Home) -> None:
    work.commit("src/a.c")
    work.git("tag", "v1")
    with pytest.raises(RangeError, match="the same commit"):
        between(work, home, "v1", "main")


def test_no_candidate_is_left(work: PlainRepository, home: Home) -> None:
    good = work.commit("src/a.c")
    work.commit("doc/a")
    work.commit("doc/b")
    with pytest.raises(RangeError, match="none of the 2 commits between good and bad"):
        between(work, home, good)


@pytest.mark.parametrize("bare", [False, True])
def test_a_shallow_clone(work: PlainRepository, home: Home, tmp_path: Path, bare: bool) -> None:
    for name in "abc":
        work.commit(f"src/{name}.c")
    words = ["git", "clone", "--quiet", "--depth", "2", *(["--bare"] if bare else [])]
    subprocess.run([*words, f"file://{work.path}", str(tmp_path / "shallow")], check=True)
    source = git.mirror(str(tmp_path / "shallow"), Engine.POSTGRES, home)
    with pytest.raises(GitError, match="shallow clone") as caught:
        commit_range(source, Engine.POSTGRES, "main", "main")
    assert f"git -C {tmp_path / 'shallow'} fetch --unshallow" in caught.value.hint


# --- what matters


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("doc/src/sgml/ref/alter.sgml", True),
        ("src/test/regress/sql/a.sql", True),
        ("src/backend/po/de.po", True),
        ("src/backend/access/heap/README", True),
        ("src/backend/access/heap/README.HOT", True),
        ("src/tools/pgindent/pgindent", True),
        ("src/tools/gen_keywordlist.pl", False),
        ("src/backend/doc/a.c", False),
        ("src/backend/port/README.c/x.c", False),
        ("contrib/pgcrypto/pgcrypto--1.0.sql", False),
        ("contrib/pgcrypto/sql/a.sql", True),
        ("src/include/catalog/pg_proc.dat", False),
        ("src/backend/snowball/stopwords/danish.stop", False),
        ("configure", False),
    ],
)
def test_paths_of_postgres(path: str, wanted: bool) -> None:
    assert is_immaterial(path, POSTGRES) is wanted


def test_paths_of_mysql() -> None:
    patterns = immaterial(Engine.MYSQL)
    assert is_immaterial("mysql-test/t/a.test", patterns)
    assert not is_immaterial("sql/sql_parse.cc", patterns)
    assert not is_immaterial("share/messages_to_clients.txt", patterns)


def test_paths_of_mariadb() -> None:
    patterns = immaterial(Engine.MARIADB)
    assert is_immaterial("storage/rocksdb/ha_rocksdb.cc", patterns)
    assert is_immaterial("mysql-test/main/a.test", patterns)
    assert not is_immaterial("storage/maria/ma_open.c", patterns)
    assert not is_immaterial("scripts/mariadb_system_tables.sql", patterns)


_NAMES = st.sampled_from(["doc/a", "src/a.c", "src/test/b", "x.po", "README.md", "src/b.h", "doc/b/c"])
_COMMITS = st.lists(st.lists(_NAMES, max_size=4), max_size=12)


@given(_COMMITS)
def test_every_commit_is_kept_or_collapsed_and_the_order_stays(paths: list[list[str]]) -> None:
    commits = [
        CommitInfo(f"{number:040x}", "a", "2026-01-01", f"c{number}", "", ("p",), tuple(touched))
        for number, touched in enumerate(paths)
    ]
    candidates, collapsed = collapse(commits, POSTGRES)
    kept = [candidate.commit for candidate in candidates]
    assert sorted([*kept, *(left_out.commit for left_out in collapsed)]) == [
        commit.commit for commit in commits
    ]
    assert kept == sorted(kept)
    for commit in commits:
        matters = any(not is_immaterial(path, POSTGRES) for path in commit.paths)
        assert (commit.commit in kept) is matters
    assert all(left_out.reason for left_out in collapsed)
