"""Change the program in small ways that are wrong, and name the changes that no test notices.

    .venv/bin/python -m tests.mutations
    .venv/bin/python -m tests.mutations --subject bisect --seed 7 --number 5

Each change inverts a condition, moves a limit by one, swaps two operators or alters a constant, at a place
drawn among all such places of a subject. It is made in a worktree of HEAD, where the tests of that subject
then run. Exits with 1 when more than MAX_SURVIVORS are left, counted over all subjects.
"""

import argparse
import ast
import copy
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

MAX_SURVIVORS = 5

TEST_SECONDS = 900
"""A change that makes the tests run longer counts as noticed: it loops."""


@dataclass(frozen=True)
class Subject:
    """What is changed, and the tests that should notice it; paths from the root, patterns as of Path.glob."""

    sources: tuple[str, ...]
    tests: tuple[str, ...]
    returning: str = ""
    """If not empty, only functions annotated to return this type are changed."""


SUBJECTS = {
    "verdicts": Subject(
        ("history/comparison/verdict.py", "history/comparison/contrary_evidence.py", "history/stats/*.py"),
        ("tests/history/comparison", "tests/history/stats", "tests/test_compare_rounds.py"),
    ),
    "change points": Subject(
        ("history/stats/change_points/*.py",),
        ("tests/history/stats", "tests/history/changes", "tests/history/series"),
    ),
    "resets": Subject(
        ("suites/postgres/reset.py", "suites/innodb/reset.py"),
        ("tests/suites/engines", "tests/test_metrics.py"),
    ),
    "bisect": Subject(
        ("runners/bisect/inference/**/*.py", "runners/bisect/domain/*.py", "runners/bisect/run/conductor.py"),
        ("tests/runners/bisect",),
    ),
    "trackers": Subject(("runners/alerting/**/*.py",), ("tests/runners/alerting", "tests/runners/nightly")),
    "exit codes": Subject(
        ("compare.py", "runners/commands/*.py", "runners/history/*.py", "runners/cli.py"),
        ("tests/runners", "tests/history", "tests/test_compare.py"),
        returning="int",
    ),
}


@dataclass(frozen=True)
class Mutation:
    """Replace the characters from `start` to `end` of a file."""

    path: Path
    line: int
    start: int
    end: int
    old: str
    new: str

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line}: {self.old} -> {self.new}"


def mutations(path: Path, returning: str = "") -> list[Mutation]:
    """All changes of one file, in the order of its text."""
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines(keepends=True)
    offsets = [0]
    for line in lines:
        offsets.append(offsets[-1] + len(line.encode()))
    found = []
    for node in _code(ast.parse(text), returning):
        for changed in _changes(node):
            assert node.end_lineno is not None
            assert node.end_col_offset is not None
            start = offsets[node.lineno - 1] + node.col_offset
            end = offsets[node.end_lineno - 1] + node.end_col_offset
            new = f"({ast.unparse(changed)})"
            found.append(Mutation(path, node.lineno, start, end, ast.unparse(node), new))
    return found


def _code(tree: ast.AST, returning: str) -> Iterator[ast.expr]:
    """Expressions that are carried out: no annotations, decorators, messages or texts."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and (not returning or _returns(node, returning)):
            for statement in node.body:
                yield from _below(statement)


def _returns(function: ast.FunctionDef, name: str) -> bool:
    return isinstance(function.returns, ast.Name) and function.returns.id == name


def _below(node: ast.AST) -> Iterator[ast.expr]:
    if isinstance(node, ast.JoinedStr | ast.Raise | ast.Assert | ast.FunctionDef | ast.ClassDef):
        return
    if isinstance(node, ast.expr):
        yield node
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _below(child)


COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}

OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
}


def _changes(node: ast.expr) -> Iterator[ast.expr]:
    changed = copy.deepcopy(node)
    match changed:
        case ast.Compare(ops=[operator]):
            changed.ops = [COMPARISONS[type(operator)]()]
            yield changed
        case ast.BoolOp():
            changed.op = ast.Or() if isinstance(changed.op, ast.And) else ast.And()
            yield changed
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield operand
        case ast.IfExp():
            changed.body, changed.orelse = changed.orelse, changed.body
            yield changed
        case ast.BinOp(op=operator) if type(operator) in OPERATORS:
            changed.op = OPERATORS[type(operator)]()
            yield changed
        case ast.Constant(value=bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(value=int(value)):
            yield ast.Constant(value + 1)
        case ast.Constant(value=float(value)):
            yield ast.Constant(value * 2 or 1.0)


def survives(mutation: Mutation, subject: Subject, tree: Path, number: int) -> bool:
    """Whether the tests pass with the change; those that name the changed module run first."""
    path = tree / mutation.path.relative_to(ROOT)
    content = path.read_bytes()
    path.write_bytes(content[: mutation.start] + mutation.new.encode() + content[mutation.end :])
    # Bytecode is compiled anew when the second of the source or its size has changed; both may be the same.
    os.utime(path, (number, number))
    try:
        near = [found for found in _modules(tree, subject) if path.stem in found.read_text(encoding="utf-8")]
        return (not near or passes(tree, near)) and passes(tree, [tree / name for name in subject.tests])
    finally:
        path.write_bytes(content)


def _modules(tree: Path, subject: Subject) -> list[Path]:
    return [
        found
        for name in subject.tests
        for found in ([tree / name] if name.endswith(".py") else sorted((tree / name).rglob("test_*.py")))
    ]


def passes(tree: Path, tests: list[Path]) -> bool:
    """Whether pytest passes, on two workers."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "2", "--dist", "loadscope", "-m", "not deep"]
    words = [*command, "-p", "no:cacheprovider", *(str(path) for path in tests if path.exists())]
    try:
        done = subprocess.run(words, cwd=tree, capture_output=True, timeout=TEST_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return False
    return done.returncode in (0, 5)  # 5: all tests of these modules are deep


def main() -> int:
    """Carry out what the command line asks for."""
    parser = argparse.ArgumentParser(description="Change the program in wrong ways that tests should notice.")
    parser.add_argument("--subject", choices=SUBJECTS, help="only this one")
    parser.add_argument("--number", type=int, default=10, metavar="N", help="of each subject; default 10")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="draws the places; default 1")
    parser.add_argument("--list", action="store_true", help="name the changes without making them")
    asked = parser.parse_args()
    survivors, made = [], 0
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        subprocess.run(["git", "worktree", "add", "--quiet", "--detach", tree, "HEAD"], cwd=ROOT, check=True)
        try:
            for name in [asked.subject] if asked.subject else SUBJECTS:
                subject = SUBJECTS[name]
                files = sorted({path for pattern in subject.sources for path in ROOT.glob(pattern)})
                places = [found for path in files for found in mutations(path, subject.returning)]
                drawn = random.Random(f"{name} {asked.seed}").sample(places, min(asked.number, len(places)))
                for mutation in drawn:
                    made += 1
                    if asked.list:
                        print(f"{name}: {mutation}", flush=True)
                        continue
                    alive = survives(mutation, subject, tree, made)
                    survivors += [mutation] * alive
                    print(f"{name}: {'SURVIVES' if alive else 'noticed '} {mutation}", flush=True)
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", tree], cwd=ROOT, check=True)
    print(f"{len(survivors)} of {made} changes survive" if not asked.list else f"{made} changes")
    return int(len(survivors) > MAX_SURVIVORS)


if __name__ == "__main__":
    sys.exit(main())
