"""The suite tpcc with a thirtieth of its customers and orders, a tenth of the last names, few items."""

import re
from collections.abc import Callable
from pathlib import Path

from suites.definition import Suite, load_suite

CUSTOMERS = 100
"""Of a district."""
ITEMS = 1000
DISTRICTS = 10
WAREHOUSES = 2


def smaller(folder: Path) -> Suite:
    """Write the smaller suite to `folder`, and return it. Its statements are the suite's own."""
    own = load_suite("tpcc").folder
    for file in own.iterdir():
        (folder / file.name).write_text(file.read_text(encoding="utf-8"), encoding="utf-8")
    _change(
        folder / "draws.lua",
        (r"CUSTOMERS = 3000\b", f"CUSTOMERS = {CUSTOMERS}"),
        (r"LAST_NAMES = 1000\b", "LAST_NAMES = 100"),
        (r"ITEMS = 100000\b", f"ITEMS = {ITEMS}"),
    )
    _change(
        folder / "suite.toml",
        (r"rows = 100_000\b", f"rows = {ITEMS}"),
        (r"rows = (30|9|300)_000\b", lambda found: f"rows = {int(found[1]) * CUSTOMERS // 3}"),
        (r"\b3001\b", str(CUSTOMERS + 1)),
        (r"> 3000\b", f"> {CUSTOMERS}"),
        (r"<> 2100\b", f"<> {CUSTOMERS * 7 // 10}"),
    )
    return load_suite(f"{folder}/")


def _change(file: Path, *changes: tuple[str, str | Callable[[re.Match[str]], str]]) -> None:
    text = file.read_text(encoding="utf-8")
    for pattern, replacement in changes:
        text, found = re.subn(pattern, replacement, text)
        assert found, f"{pattern} is not in {file.name}"
    file.write_text(text, encoding="utf-8")
