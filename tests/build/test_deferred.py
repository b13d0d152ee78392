"""Modules that are executed at first use, in processes of their own: here most are imported already."""

import subprocess
import sys
from pathlib import Path

from build.home import ROOT
from history.store import open_store
from tests.history.handmade import NIGHT
from tests.history.outcomes import BASE, CONTENDER, record_outcomes


def said(program: str, *arguments: str) -> str:
    """What a Python program prints that runs in the checkout."""
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def test_a_module_is_executed_at_first_use(tmp_path: Path) -> None:
    (tmp_path / "lazy_one.py").write_text("print('executed')\nvalue = 7\n")
    program = """
import sys
sys.path.append(sys.argv[1])
from build.deferred import import_when_used
import_when_used("lazy_one")
import lazy_one
import_when_used("lazy_one")
print("imported")
print(lazy_one.value, lazy_one.value, type(lazy_one).__name__)
try:
    lazy_one.nothing
except AttributeError as error:
    print(error)
"""
    assert said(program, str(tmp_path)).splitlines() == [
        "imported",
        "executed",
        "7 7 module",
        "module 'lazy_one' has no attribute 'nothing'",
    ]


def test_what_needs_asyncio_gets_it() -> None:
    program = """
import history, psycopg, sqlalchemy.dialects.postgresql.psycopg, asyncio, importlib.metadata
async def seven(): return 7
print(asyncio.run(seven()), importlib.metadata.version("sqlalchemy")[:2], asyncio.Queue.__name__)
"""
    assert said(program) == "7 2. Queue"


def test_compare_does_not_wait_for_what_it_does_not_use(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    with open_store(path, clock=lambda: NIGHT) as store:
        record_outcomes(store)
    program = f"""
import sys, compare
assert compare.main(["{BASE}", "{CONTENDER}", "--history", sys.argv[1]]) == 1
slow = ("scipy", "numpy", "rich", "pydantic", "asyncio.events", "psycopg")
print([name for name in slow if name in sys.modules])
"""
    assert said(program, str(path)).splitlines()[-1] == "[]"
