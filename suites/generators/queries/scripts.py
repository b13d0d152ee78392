"""The files of a suite with its statements, and what is filled in for a scale."""

from pathlib import Path
from string import Template

from build.version import Engine
from suites.keys.sql_statements import statements_in

HUNDREDTHS = 100
"""The units of the scale in a scale factor of 1."""


def statements_of(file: Path, scale: int) -> list[str]:
    """Return the statements of a file of SQL, in which `$scale_factor` becomes that of `scale` hundredths."""
    text = Template(file.read_text(encoding="utf-8")).safe_substitute(
        scale_factor=f"{scale / HUNDREDTHS:.2f}"
    )
    return [statement.text for statement in statements_in(text, Engine.POSTGRES)]
