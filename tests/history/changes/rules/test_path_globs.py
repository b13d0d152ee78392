"""Patterns of paths match as those of a CODEOWNERS file do."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from history.changes.rules.path_globs import matches, problem_of

NAMES = st.text(string.ascii_lowercase + "_.", min_size=1, max_size=5).filter(lambda name: name.strip("."))
PATHS = st.lists(NAMES, min_size=1, max_size=5).map("/".join)


@pytest.mark.parametrize(
    ("pattern", "path", "is_match"),
    [
        ("*", "src/backend/main.c", True),
        ("*.c", "src/backend/main.c", True),
        ("*.c", "main.c", True),
        ("*.c", "main.cc", False),
        ("heap", "src/backend/access/heap/heapam.c", True),
        ("heap", "src/backend/access/heapam/x.c", False),
        ("/src/*", "src/Makefile", True),
        ("/src/*", "src/backend/main.c", False),
        ("src/backend/access/**", "src/backend/access/heap/heapam.c", True),
        ("src/backend/access/**", "src/backend/access", False),
        ("src/backend", "src/backend/main.c", True),
        ("src/backend", "contrib/src/backend/main.c", False),
        ("backend/", "src/backend/main.c", True),
        ("/backend/", "src/backend/main.c", False),
        ("main.c/", "src/main.c", False),
        ("**/heap/*.c", "heap/a.c", True),
        ("**/heap/*.c", "src/access/heap/a.c", True),
        ("src/**/a.c", "src/a.c", True),
        ("src/**/a.c", "src/x/y/a.c", True),
        ("src/**/a.c", "src/xa.c", False),
        ("a?c", "abc", True),
        ("a?c", "a/c", False),
        ("a.c", "abc", False),
        ("/", "a", False),
    ],
)
def test_a_pattern_matches_as_in_codeowners(pattern: str, path: str, is_match: bool) -> None:
    assert bool(not problem_of(pattern) and matches(pattern, path)) is is_match


@given(PATHS)
def test_a_path_matches_itself_its_folders_and_everything(path: str) -> None:
    names = path.split("/")
    for length in range(1, len(names) + 1):
        assert matches(f"/{'/'.join(names[:length])}", path)
    assert all(matches(pattern, path) for pattern in ("*", "**", "/**", f"**/{names[-1]}"))


@given(PATHS, PATHS)
def test_a_pattern_from_the_root_matches_nothing_beside_it(pattern: str, path: str) -> None:
    is_within = f"{path}/".startswith(f"{pattern}/")
    assert matches(f"/{pattern}", path) is is_within


@given(PATHS, PATHS)
def test_folders_before_a_pattern_without_a_slash_do_not_matter(path: str, folders: str) -> None:
    name = path.split("/")[-1]
    assert matches(name, path)
    assert matches(name, f"{folders}/{path}")


@pytest.mark.parametrize("pattern", ["", " ", "/", "!a", "a[b]", "a\\ b", "a//b", " a"])
def test_what_codeowners_has_no_meaning_for_is_refused(pattern: str) -> None:
    assert problem_of(pattern)
