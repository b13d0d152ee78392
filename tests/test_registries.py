"""The registries of engines are complete, and nothing outside of them knows one engine from another."""

import ast
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
import yaml

from build.engines import ENGINES, EngineRegistry, IncompleteRegistryError
from build.request import RECIPES
from build.sources.commits import IMMATERIAL
from build.sources.releases import VERSIONS
from build.version import Engine, parse_version

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("build", "suites", "history", "runners", "benchmarks")

MAY_NAME_AN_ENGINE = {
    "build/extension.py": "PGXS compiles extensions of Postgres",
    "runners/bisect/arguments.py": "the default of --engine",
    "runners/own_workload/kinds.py": "pgbench is a program of Postgres",
    "runners/trying/command.py": "the default of --engine",
    "runners/trying/entry.py": "the default of --engine",
    "suites/additions/registry.py": "the entry of a companion says beside which engines it runs",
    "suites/generators/pgbench/client.py": "pgbench is a program of Postgres",
    "suites/generators/queries/client.py": "the suite's own files are standard SQL, as Postgres reads it",
    "suites/keys/loaded_file.py": "pg_restore reads dumps of Postgres",
    "suites/metrics.py": "the row of a metric says which engines record it",
}
"""Modules that name an engine outside of a registry and of the engine's own modules, and why."""


def modules() -> list[Path]:
    """Every Python file of the program, relative to the checkout."""
    found = [path for room in ROOMS for path in (ROOT / room).rglob("*.py")]
    return sorted(path.relative_to(ROOT) for path in [*found, ROOT / "compare.py"])


def engines_named(source: str) -> list[int]:
    """The lines of a module that tell engines apart without a registry.

    These are `Engine.X` anywhere but as a key of an `EngineRegistry`, and a name such as "mysql" that is
    compared with, looked up, matched, or a key.
    """
    tree = ast.parse(source)
    entries = {id(key) for node in ast.walk(tree) for key in _registry_keys(node)}
    return sorted(
        {
            part.lineno
            for node in ast.walk(tree)
            for part in _telling_apart(node)
            if id(part) not in entries and _names_an_engine(part)
        }
    )


def _registry_keys(node: ast.AST) -> Iterator[ast.expr]:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "EngineRegistry":
        for table in node.args:
            if isinstance(table, ast.Dict):
                yield from filter(None, table.keys)


def _telling_apart(node: ast.AST) -> Iterator[ast.expr]:
    """The parts of a node that may not name an engine."""
    match node:
        case ast.Attribute():
            yield node
        case ast.Compare(left=left, comparators=others):
            for side in (left, *others):
                yield from side.elts if isinstance(side, ast.Tuple | ast.Set | ast.List) else [side]
        case ast.Dict(keys=keys):
            yield from filter(None, keys)
        case ast.Subscript(slice=index):
            yield index
        case ast.MatchValue(value=value):
            yield value
        case ast.Call(func=ast.Name(id="Engine"), args=arguments):
            yield from arguments


def _names_an_engine(part: ast.expr) -> bool:
    match part:
        case ast.Attribute(value=ast.Name(id="Engine"), attr=name):
            return name in Engine.__members__
        case ast.Constant(value=value):
            return value in set(Engine)
    return False


def is_of_one_engine(module: Path) -> bool:
    """Whether a module is an engine's own: it, or its folder, has the engine's name."""
    return bool({part.removesuffix(".py") for part in module.parts} & set(Engine))


@pytest.mark.deep("a whole command on a whole history")
def test_engines_are_told_apart_in_registries_only() -> None:
    own = [module for module in modules() if not is_of_one_engine(module)]
    naming = {str(module): lines for module in own if (lines := engines_named((ROOT / module).read_text()))}
    unexpected = {module: lines for module, lines in naming.items() if module not in MAY_NAME_AN_ENGINE}
    assert not unexpected, "make each an entry of an EngineRegistry, or of build/engines.py"
    assert naming.keys() == MAY_NAME_AN_ENGINE.keys(), "an exception is no longer needed"


@pytest.mark.parametrize(
    "source",
    [
        "if engine is Engine.MYSQL: pass",
        "DRIVERS = {Engine.POSTGRES: 'pgsql', Engine.MYSQL: 'mysql'}",
        "driver = 'mysql' if engine == 'mysql' else 'pgsql'",
        "if 'postgres' != engine: pass",
        "known = engine in ('postgres', 'oracle')",
        "match engine:\n  case 'mysql': pass",
        "match engine:\n  case Engine.MYSQL: pass",
        "table['postgres']",
        "version = Version(Engine('postgres'), '18.6')",
        "TAGS = EngineRegistry('tag', __name__, {Engine.MYSQL: 'x'})[Engine.MYSQL]",
    ],
)
def test_an_engine_that_is_told_apart_is_seen(source: str) -> None:
    assert engines_named(source)


def test_registries_and_examples_may_name_engines() -> None:
    assert not engines_named("TAGS = EngineRegistry('tag', __name__, {Engine.MYSQL: f, **others})")
    assert not engines_named("def f(engine: Engine = given) -> None: print('postgres', 'postgres@18.6')")
    assert is_of_one_engine(Path("suites/mysql/engine.py"))
    assert is_of_one_engine(Path("build/recipes/postgres.py"))
    assert not is_of_one_engine(Path("suites/mysqlish/server.py"))


def registries() -> dict[str, EngineRegistry[object]]:
    """Every registry of the program, by the module and the name it has there."""
    sources = {module: (ROOT / module).read_text() for module in modules()}
    holding = [module for module, source in sources.items() if "EngineRegistry(" in source]
    return {
        f"{module}: {name}": value
        for module in holding
        for name, value in vars(import_module(".".join(module.with_suffix("").parts))).items()
        if isinstance(value, EngineRegistry)
    }


def test_every_engine_has_an_entry_in_every_registry() -> None:
    found = registries()
    assert len(found) >= 5
    assert {name: set(registry) for name, registry in found.items() if set(registry) != set(Engine)} == {}


def test_a_registry_without_an_engine_is_refused() -> None:
    with pytest.raises(
        IncompleteRegistryError, match=r"no recipes for mysql, mariadb: add .* in build\.recipes"
    ):
        EngineRegistry("recipes", "build.recipes", {Engine.POSTGRES: 1})


def test_an_engine_without_entries_fails_at_import(tmp_path: Path) -> None:
    """The program with one more engine in its enumeration, and nothing else, does not even start."""
    text = (ROOT / "build/version.py").read_text()
    last = f'    {list(Engine)[-1].name} = "{list(Engine)[-1]}"\n'
    assert text.count(last) == 1
    (tmp_path / "version.py").write_text(text.replace(last, f'{last}    MADE_UP = "made-up"\n'))
    program = (
        "import sys, build; from importlib.util import module_from_spec, spec_from_file_location\n"
        f"spec = spec_from_file_location('build.version', {str(tmp_path / 'version.py')!r})\n"
        "sys.modules['build.version'] = module = module_from_spec(spec)\n"
        "spec.loader.exec_module(module)\n"
        "import runners.cli, build.provide\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert "IncompleteRegistryError: no description for made-up: add an entry" in done.stderr


@pytest.mark.parametrize(("path", "others"), [(VERSIONS, set()), (IMMATERIAL, {"extension"})])
def test_every_engine_has_a_table_in_the_data_files(path: Path, others: set[str]) -> None:
    assert tomllib.loads(path.read_text()).keys() == {*Engine, *others}


def test_every_engine_can_be_bisected_by_a_workflow() -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/bisect.yml").read_text())
    # YAML 1.1 reads the key `on` as true.
    assert workflow[True]["workflow_dispatch"]["inputs"]["engine"]["options"] == list(Engine)


def test_descriptions_do_not_contradict_each_other() -> None:
    descriptions = ENGINES.values()
    for name in ("title", "server_program", "compare_page", "commit_page", "upstream"):
        assert len({getattr(description, name) for description in descriptions}) == len(ENGINES)
    prefixes = [description.short_names.prefix for description in descriptions]
    assert len(set(prefixes)) == len(ENGINES)
    for engine, description in ENGINES.items():
        assert description.server_program in RECIPES[engine].PROGRAMS


def test_mariadb_is_not_taken_for_mysql() -> None:
    """Tags with dots, lines of two numbers, and short names of two digits for each number."""
    mariadb = ENGINES[parse_version("mariadb@10.11.18").engine]
    assert mariadb.release_tag("10.11.18") == "mariadb-10.11.18"
    assert mariadb.line("10.11.18") == "10.11"
    assert mariadb.short_names.release("100230") == "10.2.30"
    assert mariadb.short_names.release("10023") is None
    assert mariadb.upstream.pool_paths("11.8.6")[0] == "pool/main/m/mariadb/mariadb_11.8.6.orig.tar.gz"
