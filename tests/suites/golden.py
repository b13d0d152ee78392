"""Expected texts, which lie in tests/golden/suites/ when no other folder is named.

After a wanted change rewrite them, and read the difference before it is committed (CONTRIBUTING.md has all):

    TIDEMARK_REWRITE_GOLDENS=1 .venv/bin/python -m pytest tests/suites

The captures of sysbench and pgbench among them are inputs: tests/suites/record.py records them anew.
"""

import os
import re
from pathlib import Path

from build.home import ROOT

GOLDEN = ROOT / "tests/golden/suites"


def require_golden(name: str, text: str, folder: Path = GOLDEN) -> None:
    """Fail unless the golden file `name` holds `text`."""
    path = folder / name
    if os.environ.get("TIDEMARK_REWRITE_GOLDENS"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def of_any_checkout(text: str) -> str:
    """Return a text whose commands are those of a person in the checkout, with the usual home."""
    return re.sub(r"TIDEMARK_HOME=\S+ ", "", text).replace(f"{ROOT}/", "./")


def lines(name: str) -> list[str]:
    """The lines of a capture."""
    return (GOLDEN / name).read_text(encoding="utf-8").splitlines()
