"""A git history of Postgres with one deliberately slow commit, which `./tidemark bisect` has to find.

It is created from the tarball of a release. Authors and dates are fixed, so that commits have the same names
on every machine and at any time, and their builds are found in the build cache.
"""

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from build.home import Home
from build.progress import Silent
from build.sources.source import obtain
from build.version import parse_version

RELEASE = parse_version("postgres@18.6")

BURN_MICROSECONDS = 60
"""Time that the culprit adds to each update of a row: more than a third of an update, so that few rounds
suffice."""

LOOPS = 110
"""Passes of the loop that a culprit by instructions adds to each update of a row: about 1 % of what an update
by primary key executes."""

BRANCH = "main"
FIRST_DAY = datetime(2026, 1, 1, 12, tzinfo=UTC)


@dataclass(frozen=True)
class Edit:
    """The replacement of a text that occurs exactly once in a file."""

    path: str
    old: str
    new: str


@dataclass(frozen=True)
class PlannedCommit:
    """One commit of the history, and its role in a bisect."""

    message: str
    edits: tuple[Edit, ...]
    matters: bool = True
    """Whether it can change the server; documentation and tests cannot."""

    compiles: bool = True
    is_culprit: bool = False
    on_side: bool = False
    """Whether it is on a side branch, which the next commit that is not merges."""


@dataclass(frozen=True)
class PlantedHistory:
    """The repository and its commits, as 40 hex digits; the first is good, the last is bad."""

    repository: Path
    """The folder of the repository, for --git."""

    commits: tuple[str, ...]
    """The commits along first parents, oldest first."""

    good: str
    bad: str
    culprit: str
    before_culprit: str
    """The candidate immediately before the culprit."""

    broken: str
    """The commit that does not compile."""

    collapsed: tuple[str, ...]
    """The commits that cannot change the server, without those of side branches."""

    candidates: tuple[str, ...]
    """All other commits except good."""


_ADT = "src/backend/utils/adt"
_HEAP = "src/backend/access/heap/heapam.c"

_UPDATE = """
/*
 *	heap_update - replace a tuple
"""

_LOOP = f"""
/*
 * Make sure that the tuple's successor is worth its place.
 */
static pg_noinline void
weigh_successor(void)
{{
	volatile int weight = 0;

	for (int i = 0; i < {LOOPS}; i++)
		weight += i;
}}
{_UPDATE}"""

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
{_UPDATE}"""


def _equal(path: str, function: str, begin: str, names: tuple[str, str]) -> Edit:
    """Return an edit that rewrites an equality: the same result with other instructions."""
    head = f"{function}(PG_FUNCTION_ARGS)\n{{\n{begin}"
    first, other = names
    old = f"{head}\n\tPG_RETURN_BOOL({first} == {other});"
    return Edit(path, old, f"{head}\n\tPG_RETURN_BOOL(!({other} != {first}));")


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

_CALL = Edit(_HEAP, _CHECK, f"\tweigh_successor();\n\n{_CHECK}")
_CLOCK = Edit(
    _HEAP,
    '#include "access/heapam.h"\n',
    '#include "access/heapam.h"\n#include "portability/instr_time.h"\n',
)

BY_TIME = (Edit(_HEAP, _UPDATE, _BURN), _CLOCK, _CALL)
"""What the culprit does to the source: it burns time in each update."""

BY_INSTRUCTIONS = (Edit(_HEAP, _UPDATE, _LOOP), _CALL)
"""The same, but it executes a few hundred instructions more, and takes hardly any time."""

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
        BY_TIME,
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
"""One in this many source files of the server gets comments, so that all parts are included."""


def make_history(
    folder: Path, home: Home, fillers: int = 0, slow_down: tuple[Edit, ...] = BY_TIME
) -> PlantedHistory:
    """Write the history into the empty `folder`, which takes about 15 seconds.

    `fillers` is the number of further harmless commits, two thirds of them before the culprit. `slow_down` is
    what the culprit edits. The tarball comes from the source cache of `home`, or is downloaded. Raises
    TidemarkError if it is not available, ValueError if an edit does not apply.
    """
    tarball = obtain(RELEASE, home, Silent()).tarball
    assert tarball is not None
    folder.mkdir(parents=True, exist_ok=True)
    words = ["tar", "--extract", "--no-same-owner", "--strip-components=1", "--file", str(tarball)]
    subprocess.run(words, cwd=folder, check=True)
    git_at(folder, 0, "init", "--quiet", f"--initial-branch={BRANCH}")
    # --force, because the .gitignore files of the release must not exclude anything.
    git_at(folder, 0, "add", "--all", "--force")
    first = _commit(folder, 0, "Postgres 18.6, as it was released")
    made = [first]
    planned: list[tuple[PlannedCommit, str]] = []
    plan = [
        replace(planned_commit, edits=slow_down) if planned_commit.is_culprit else planned_commit
        for planned_commit in _filled(folder, fillers)
    ]
    for number, planned_commit in enumerate(plan, start=1):
        commit = _make(folder, number, planned_commit, plan[number - 2] if number > 1 else None)
        if not planned_commit.on_side:
            made.append(commit)
            planned.append((planned_commit, commit))
    return _history_of(folder, made, planned)


def _filled(folder: Path, fillers: int) -> Sequence[PlannedCommit]:
    """Return the plan, with `fillers` commits around it that only change comments of the server."""
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


def _history_of(
    folder: Path, made: Sequence[str], planned: Sequence[tuple[PlannedCommit, str]]
) -> PlantedHistory:
    candidates = [commit for plan, commit in planned if plan.matters]
    culprit = next(commit for plan, commit in planned if plan.is_culprit)
    return PlantedHistory(
        repository=folder,
        commits=tuple(made),
        good=made[0],
        bad=made[-1],
        culprit=culprit,
        before_culprit=candidates[candidates.index(culprit) - 1],
        broken=next(commit for plan, commit in planned if not plan.compiles),
        collapsed=tuple(commit for plan, commit in planned if not plan.matters),
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
        raise ValueError(
            f"{edit.path} has {text.count(edit.old)} occurrences, instead of one, of: {edit.old}"
        )
    path.write_text(text.replace(edit.old, edit.new), encoding="utf-8")


def _commit(folder: Path, number: int, message: str) -> str:
    git_at(folder, number, "commit", "--quiet", "--no-verify", "-m", message)
    return git_at(folder, number, "rev-parse", "HEAD")


def git_at(folder: Path, day: int, *words: str) -> str:
    """Run git in a repository with the date of a day of the history, and return its output."""
    date = (FIRST_DAY + timedelta(days=day)).isoformat()
    nothing = os.devnull  # the machine's own settings could change what is committed
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
