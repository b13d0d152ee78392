"""A git history of Postgres in which one commit is slow on purpose: what `./tidemark bisect` has to find.

It is made from the release's tarball. Authors and dates are fixed, so that every commit is the same wherever
and whenever it is made: a build of it that lies in the build cache is found again.
"""

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from build.home import Home
from build.progress import Silent
from build.sources.source import obtain
from build.version import parse_version

RELEASE = parse_version("postgres@18.6")

BURN_MICROSECONDS = 60
"""That each update of a row takes longer from the culprit on: far more than a third of what it takes at all,
so that few rounds decide."""

BRANCH = "main"
FIRST_DAY = datetime(2026, 1, 1, 12, tzinfo=UTC)


@dataclass(frozen=True)
class Edit:
    """A text of one file that is there exactly once, and what stands there afterwards."""

    path: str
    old: str
    new: str


@dataclass(frozen=True)
class PlannedCommit:
    """One commit of the history, and what a bisect is to make of it."""

    message: str
    edits: tuple[Edit, ...]
    matters: bool = True
    """Whether it can change the server at all: documentation and tests cannot."""

    compiles: bool = True
    is_culprit: bool = False
    on_side: bool = False
    """Whether it is made on a side branch; the next one that is not merges it."""


@dataclass(frozen=True)
class PlantedHistory:
    """The repository. Commits are 40 hex digits; the first is good, the last is bad."""

    repository: Path
    """A folder with a work tree, to be named with --git."""

    commits: tuple[str, ...]
    """Along the first parent, oldest first."""

    good: str
    bad: str
    culprit: str
    before_culprit: str
    """The candidate that comes right before it."""

    broken: str
    """The one that does not compile."""

    collapsed: tuple[str, ...]
    """Those that cannot matter, side branches apart."""

    candidates: tuple[str, ...]
    """The others, good apart."""


_ADT = "src/backend/utils/adt"
_HEAP = "src/backend/access/heap/heapam.c"

_BURN = f"""
/*
 * Make sure that the tuple's successor is worth its place.
 */
static pg_noinline void
weigh_successor(void)
{{
	instr_time	began;
	instr_time	now;

	INSTR_TIME_SET_CURRENT(began);
	do
	{{
		INSTR_TIME_SET_CURRENT(now);
		INSTR_TIME_SUBTRACT(now, began);
	}} while (INSTR_TIME_GET_MICROSEC(now) < {BURN_MICROSECONDS});
}}

/*
 *	heap_update - replace a tuple
"""


def _equal(path: str, function: str, begin: str, names: tuple[str, str]) -> Edit:
    """An equality that is asked for the other way round: the same answer from other instructions."""
    head = f"{function}(PG_FUNCTION_ARGS)\n{{\n{begin}"
    one, other = names
    old = f"{head}\n\tPG_RETURN_BOOL({one} == {other});"
    return Edit(path, old, f"{head}\n\tPG_RETURN_BOOL(!({other} != {one}));")


_BOOLS = "\tbool\t\targ1 = PG_GETARG_BOOL(0);\n\tbool\t\targ2 = PG_GETARG_BOOL(1);\n"
_CHARS = "\tchar\t\targ1 = PG_GETARG_CHAR(0);\n\tchar\t\targ2 = PG_GETARG_CHAR(1);\n"
_PLACES = "\tXLogRecPtr\tlsn1 = PG_GETARG_LSN(0);\n\tXLogRecPtr\tlsn2 = PG_GETARG_LSN(1);\n"
_CODE = "\tint\t\t\tenc = PG_GETARG_INT32(1);\n\n\tif (!PG_VALID_ENCODING(enc))"
_WORDS = "\tCash\t\tvalue = PG_GETARG_CASH(0);\n\tuint64\t\tval;\n\tStringInfoData buf;\n"
_BROKEN = "\tCash\t\tvalue = PG_GETARG_CASH(0)\n\tuint64\t\tval;\n\tStringInfoData buf;\n"
_CHECK = (
    "\tAssert(ItemPointerIsValid(otid));\n\n"
    "\t/* Cheap, simplistic check that the tuple matches the rel's rowtype. */"
)
_CLOSE = "\t/* NULL means CLOSE ALL */\n\tif (name == NULL)\n"

PLAN = (
    PlannedCommit(
        "doc: say what the manual is for",
        (Edit("doc/src/sgml/README.links", "<!-- doc/src/sgml/README.links -->", "<!-- README.links -->"),),
        matters=False,
    ),
    PlannedCommit(
        "Ask for equal booleans the other way round",
        (_equal(f"{_ADT}/bool.c", "booleq", _BOOLS, ("arg1", "arg2")),),
    ),
    PlannedCommit(
        "Comment on what closing all portals means",
        (
            Edit(
                "src/backend/commands/portalcmds.c",
                _CLOSE,
                _CLOSE.replace("CLOSE ALL", "CLOSE ALL, as in the standard's grammar"),
            ),
        ),
    ),
    PlannedCommit(
        "Test advisory locks under another heading",
        (Edit("src/test/regress/sql/advisory_lock.sql", "-- ADVISORY LOCKS", "-- Advisory locks"),),
        matters=False,
    ),
    PlannedCommit(
        "Ask for equal characters the other way round",
        (_equal(f"{_ADT}/char.c", "chareq", _CHARS, ("arg1", "arg2")),),
    ),
    PlannedCommit(
        "Ask for equal places in the log the other way round",
        (_equal(f"{_ADT}/pg_lsn.c", "pg_lsn_eq", _PLACES, ("lsn1", "lsn2")),),
    ),
    PlannedCommit(
        "Refuse encodings below zero first",
        (Edit(f"{_ADT}/ascii.c", _CODE, _CODE.replace("if (!", "if (enc < 0 || !")),),
    ),
    PlannedCommit(
        "Write amounts of money in words, tidied up",
        (Edit(f"{_ADT}/cash.c", _WORDS, _BROKEN),),
        compiles=False,
    ),
    PlannedCommit("Put a semicolon back", (Edit(f"{_ADT}/cash.c", _BROKEN, _WORDS),)),
    PlannedCommit(
        "Weigh a tuple's successor before an update\n\nIt makes sure that a new version of a row is worth "
        "its place.\n\nReviewed-by: @nobody <nobody@example.org>\n",
        (
            Edit(_HEAP, "\n/*\n *\theap_update - replace a tuple\n", _BURN),
            Edit(
                _HEAP,
                '#include "access/heapam.h"\n',
                '#include "access/heapam.h"\n#include "portability/instr_time.h"\n',
            ),
            Edit(
                _HEAP,
                _CHECK,
                f"\tweigh_successor();\n\n{_CHECK}",
            ),
        ),
        is_culprit=True,
    ),
    PlannedCommit(
        "Translate a heading",
        (
            Edit(
                "src/backend/po/de.po",
                "# German message translation",
                "# Deutsch\n# German message translation",
            ),
        ),
        matters=False,
    ),
    PlannedCommit(
        "Ask for unequal booleans the other way round",
        (
            Edit(
                f"{_ADT}/bool.c",
                "PG_RETURN_BOOL(arg1 != arg2);",
                "PG_RETURN_BOOL(!(arg2 == arg1));",
            ),
        ),
    ),
    PlannedCommit(
        "doc: readme of locks on tuples",
        (Edit("src/backend/access/heap/README.tuplock", "Locking tuples\n", "Locks on tuples\n"),),
        matters=False,
        on_side=True,
    ),
    PlannedCommit(
        "Merge the readme",
        (),
        matters=False,
    ),
    PlannedCommit(
        "Ask for unequal characters the other way round",
        (Edit(f"{_ADT}/char.c", "PG_RETURN_BOOL(arg1 != arg2);", "PG_RETURN_BOOL(!(arg2 == arg1));"),),
    ),
    PlannedCommit(
        "Comment on the words of money",
        (
            Edit(
                f"{_ADT}/cash.c",
                "cash_words(PG_FUNCTION_ARGS)\n{\n",
                "cash_words(PG_FUNCTION_ARGS)\n{\n\t/* in English */\n",
            ),
        ),
    ),
    PlannedCommit(
        "A readme for visitors",
        (
            Edit(
                "README.md",
                "PostgreSQL Database Management System\n",
                "PostgreSQL, a database management system\n",
            ),
        ),
        matters=False,
    ),
)


_ENTITLED = " * IDENTIFICATION\n"

_APART = 20
"""Every so many-th file of the server gets comments: some of each of its parts."""


def make_history(folder: Path, home: Home, fillers: int = 0) -> PlantedHistory:
    """Write the history into the empty `folder`; takes about a quarter of a minute.

    `fillers` are further harmless commits, two in three of them before the culprit. The tarball comes from
    the source cache of `home`, or is fetched. Raises TidemarkError when it cannot be had, ValueError when an
    edit does not fit.
    """
    tarball = obtain(RELEASE, home, Silent()).tarball
    assert tarball is not None
    folder.mkdir(parents=True, exist_ok=True)
    words = ["tar", "--extract", "--no-same-owner", "--strip-components=1", "--file", str(tarball)]
    subprocess.run(words, cwd=folder, check=True)
    git_at(folder, 0, "init", "--quiet", f"--initial-branch={BRANCH}")
    # Of the release's own .gitignore files none may decide what is committed.
    git_at(folder, 0, "add", "--all", "--force")
    first = _commit(folder, 0, "Postgres 18.6, as it was released")
    made = [first]
    planned: list[tuple[PlannedCommit, str]] = []
    plan = _filled(folder, fillers)
    for number, each in enumerate(plan, start=1):
        commit = _make(folder, number, each, plan[number - 2] if number > 1 else None)
        if not each.on_side:
            made.append(commit)
            planned.append((each, commit))
    return _described(folder, made, planned)


def _filled(folder: Path, fillers: int) -> Sequence[PlannedCommit]:
    """The plan, and around it so many comments in files of the server."""
    if not fillers:
        return PLAN
    files = [
        path.relative_to(folder).as_posix()
        for path in sorted((folder / "src/backend").rglob("*.c"))
        if path.read_text(encoding="utf-8").count(_ENTITLED) == 1
    ][::_APART]
    more = [
        PlannedCommit(
            f"Comment on {path}, {number}",
            (Edit(path, _said(number // len(files)), _said(number // len(files) + 1)),),
        )
        for number, path in ((number, files[number % len(files)]) for number in range(fillers))
    ]
    before = fillers * 2 // 3
    return [*more[:before], *PLAN, *more[before:]]


def _said(times: int) -> str:
    return _ENTITLED if times == 0 else f" * IDENTIFICATION, said {times} times\n"


def _described(
    folder: Path, made: Sequence[str], planned: Sequence[tuple[PlannedCommit, str]]
) -> PlantedHistory:
    candidates = [commit for each, commit in planned if each.matters]
    culprit = next(commit for each, commit in planned if each.is_culprit)
    return PlantedHistory(
        repository=folder,
        commits=tuple(made),
        good=made[0],
        bad=made[-1],
        culprit=culprit,
        before_culprit=candidates[candidates.index(culprit) - 1],
        broken=next(commit for each, commit in planned if not each.compiles),
        collapsed=tuple(commit for each, commit in planned if not each.matters),
        candidates=tuple(candidates),
    )


def _make(folder: Path, number: int, planned: PlannedCommit, before: PlannedCommit | None) -> str:
    if planned.on_side:
        git_at(folder, number, "checkout", "--quiet", "-b", "side")
    elif before is not None and before.on_side:
        git_at(folder, number, "checkout", "--quiet", BRANCH)
        git_at(folder, number, "merge", "--quiet", "--no-ff", "-m", planned.message, "side")
        return git_at(folder, number, "rev-parse", "HEAD")
    for edit in planned.edits:
        _apply(folder, edit)
    git_at(folder, number, "add", *(edit.path for edit in planned.edits))
    return _commit(folder, number, planned.message)


def _apply(folder: Path, edit: Edit) -> None:
    path = folder / edit.path
    text = path.read_text(encoding="utf-8")
    if text.count(edit.old) != 1:
        raise ValueError(f"{edit.path} has {text.count(edit.old)} times: {edit.old}")
    path.write_text(text.replace(edit.old, edit.new), encoding="utf-8")


def _commit(folder: Path, number: int, message: str) -> str:
    git_at(folder, number, "commit", "--quiet", "--no-verify", "-m", message)
    return git_at(folder, number, "rev-parse", "HEAD")


def git_at(folder: Path, day: int, *words: str) -> str:
    """What git prints in a repository, with the author and the date of that day of the history."""
    date = (FIRST_DAY + timedelta(days=day)).isoformat()
    nothing = os.devnull  # settings of the machine's own could change what is committed
    identity = {
        f"GIT_{who}_{what}": value
        for who in ("AUTHOR", "COMMITTER")
        for what, value in (("NAME", "Ada Planter"), ("EMAIL", "ada@example.org"), ("DATE", date))
    }
    own = {"GIT_CONFIG_GLOBAL": nothing, "GIT_CONFIG_SYSTEM": nothing, "LC_ALL": "C"}
    plain = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    settings = ("-c", "core.autocrlf=false", "-c", "core.fileMode=true", "-c", "gc.auto=0")
    command = ["git", "-C", str(folder), *settings, *words]
    done = subprocess.run(
        command, env={**plain, **identity, **own}, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()
