"""The scripts of sysbench that people have: the options that are left to them, and the files they need."""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

DECIDED_ELSEWHERE: Mapping[str, str] = {
    **dict.fromkeys(("threads", "num-threads"), "the number of clients is --clients, or clients of a step"),
    **dict.fromkeys(("rate", "tx-rate"), "the rate of arrivals is --rate, or rate of a step"),
    **dict.fromkeys(
        ("time", "max-time", "events", "max-requests", "forced-shutdown", "report-checkpoints"),
        "how long a run lasts is --seconds, or seconds of a profile",
    ),
    **dict.fromkeys(
        ("rand-seed", "report-interval", "histogram", "percentile", "verbosity", "debug", "db-debug"),
        "it is the same in all runs, so that their output can be compared",
    ),
    **dict.fromkeys(
        ("help", "version", "config-file", "db-driver"), "each server is told to sysbench by Tidemark"
    ),
}
"""General options of sysbench that a suite cannot set, by name, and the reason."""

_OF_DRIVER = re.compile(
    r"(?:mysql|pgsql)-(?:host|port|socket|user|password|db|ssl|ssl-cipher|compression|debug|dry-run)"
)
_STRING = re.compile(r"""(["'])([\w./-]+)\1""")
_REQUIRE = re.compile(r"""\brequire\s*\(?\s*(["'])([\w./-]+)\1""")


def plain_option(name: str) -> str:
    """Return the name of an option as sysbench compares it: underscores and hyphens are the same."""
    return name.replace("_", "-")


def require_free_options(names: Iterable[str]) -> None:
    """Raise ValueError, with the reason, for an option of sysbench that a suite cannot set."""
    for name in names:
        plain = plain_option(name)
        reason = DECIDED_ELSEWHERE.get(plain)
        if _OF_DRIVER.fullmatch(plain):
            reason = "each server is told to sysbench by Tidemark"
        if reason is not None:
            raise ValueError(f"{name}: not an option of the script; {reason}")


def files_of_script(script: Path) -> list[Path]:
    """Return a script and the Lua files in or below its folder that it and they name, each once.

    These are modules of `require`, and texts that end with `.lua`, as `dofile` takes them. Raises OSError.
    """
    found: dict[Path, None] = {}
    waiting = [script]
    while waiting:
        file = waiting.pop(0)
        if file not in found:
            found[file] = None
            waiting += _named_in(file.read_text(encoding="utf-8", errors="replace"), script.parent)
    return list(found)


def _named_in(text: str, folder: Path) -> Sequence[Path]:
    modules = [f"{match[2].replace('.', '/')}.lua" for match in _REQUIRE.finditer(text)]
    files = [match[2].removeprefix("./") for match in _STRING.finditer(text) if match[2].endswith(".lua")]
    inside = [name for name in (*modules, *files) if ".." not in name and not name.startswith("/")]
    return [folder / name for name in inside if (folder / name).is_file()]
